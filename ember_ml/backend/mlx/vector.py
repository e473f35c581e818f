"""Vectors and waves on MLX, which transforms in single precision only; NumPy computes float64 on the host."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend import use_backend
from ember_ml.backend.mlx.fft import _to_real
from ember_ml.dispatch import definition_of


def compute_interference_strength(wave1: mx.array, wave2: mx.array, /, *, axis: int = -1) -> mx.array:
    wave1 = _to_real(wave1)
    with use_backend("mlx"):
        return definition_of("compute_interference_strength")(wave1, wave2, axis=axis)


def compute_phase_coherence(
    wave1: mx.array, wave2: mx.array, /, freq_range: tuple[float, float] | None = None, *, axis: int = -1
) -> mx.array:
    wave1 = _to_real(wave1)
    with use_backend("mlx"):
        return definition_of("compute_phase_coherence")(wave1, wave2, freq_range, axis=axis)


def partial_interference(wave1: mx.array, wave2: mx.array, /, window_size: int = 100, *, axis: int = -1) -> mx.array:
    wave1 = _to_real(wave1)
    with use_backend("mlx"):
        return definition_of("partial_interference")(wave1, wave2, window_size, axis=axis)
