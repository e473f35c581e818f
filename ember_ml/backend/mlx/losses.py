"""Losses on MLX, all by their definitions."""
