"""The category control."""
