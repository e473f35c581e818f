"""The MLX engine."""

from ember_ml.backend.mlx import core as core
