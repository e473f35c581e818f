"""The category io."""
