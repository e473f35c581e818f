"""The category manipulation."""
