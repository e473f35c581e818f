"""Vectors and waves on NumPy, all by their definitions."""
