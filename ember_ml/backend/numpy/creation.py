"""The category creation."""
