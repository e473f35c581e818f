"""The category vector."""
