"""Losses on MLX: their definitions serve."""
