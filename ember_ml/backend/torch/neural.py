"""The category neural."""
