"""Vectors and waves on JAX, all by their definitions."""
