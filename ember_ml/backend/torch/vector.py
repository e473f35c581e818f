"""Vectors and waves on PyTorch: all by definition."""
