"""The category bitwise."""
