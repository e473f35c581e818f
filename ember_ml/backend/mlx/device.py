"""The category device."""
