"""Vectors and waves on NumPy: all by definition."""
