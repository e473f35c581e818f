"""The category losses."""
