"""Checks of shapes, one file per category, for the definitions of operations and for the engines."""
