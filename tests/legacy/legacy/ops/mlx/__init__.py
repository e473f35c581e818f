"""MLX's functions."""
