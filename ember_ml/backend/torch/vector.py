"""Vectors and waves on torch, all by their definitions."""
