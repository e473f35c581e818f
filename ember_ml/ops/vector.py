"""Vectors and waves: norms, distances, decay, energy and interference.

16-bit floats are computed in float32 and rounded once at the end.
"""

from __future__ import annotations

import math as _math
from typing import Any

from ember_ml.dispatch import op
from ember_ml.dtypes import floating, measured
from ember_ml.ops import comparison, creation, device, dtypes, indexing, manipulation, math, stats
from ember_ml.ops._halves import narrow_like as _like
from ember_ml.ops._halves import widen as _wide
from ember_ml.ops.fft import rfft as _rfft
from ember_ml.types import Tensor, TensorLike


@op(floating)
def normalize_vector(x: TensorLike, /, axis: int = -1, eps: float = 1e-12) -> Tensor:
    """``x / max(|x|, eps)`` with the Euclidean norm along ``axis``: of unit length, or zero where ``x`` is zero.

    >>> normalize_vector([3.0, 4.0, 0.0]).tolist()[2]
    0.0
    >>> normalize_vector([[0.0, -2.0], [0.0, 0.0]]).tolist()
    [[0.0, -1.0], [0.0, 0.0]]
    """
    return _like(x, _normalized(_wide(x), axis, eps))


@op(measured)
def euclidean_distance(x: TensorLike, y: TensorLike, /, axis: int = -1) -> Tensor:
    """Euclidean distance of ``x`` and ``y`` along ``axis``, with broadcasting.

    The gradient is zero where the two are equal.

    >>> euclidean_distance([[0.0, 0.0], [3.0, 4.0]], [3.0, 4.0]).tolist()
    [5.0, 0.0]
    """
    return _like(x, _root(_energy(math.subtract(_wide(x), _wide(y)), axis)))


@op(floating, kinds="real")
def cosine_similarity(x: TensorLike, y: TensorLike, /, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between ``x`` and ``y`` along ``axis``; 0 where a vector is zero.

    ``sum(x * y) / (max(|x|, eps) * max(|y|, eps))``

    >>> cosine_similarity([[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]], [4.0, 0.0]).tolist()
    [1.0, 0.0, 0.0]
    """
    products = math.multiply(_normalized(_wide(x), axis, eps), _normalized(_wide(y), axis, eps))
    return _like(x, stats.sum(products, axis=axis))


@op(floating)
def exponential_decay(v: TensorLike, rate: TensorLike, time: TensorLike, /) -> Tensor:
    """``v * exp(-rate * time)``, with broadcasting.

    >>> exponential_decay([1.0, 2.0], 0.5, [0.0, 0.0]).tolist()
    [1.0, 2.0]
    """
    return math.multiply(v, math.exp(math.negative(math.multiply(rate, time))))


@op(floating, kinds="real")
def compute_energy_stability(wave: TensorLike, /, window_size: int = 100, *, axis: int = -1) -> Tensor:
    """``1 - var(E) / mean(E)``, clipped to [0, 1], for the energies ``E`` of consecutive windows along ``axis``.

    ``E[w]`` is the sum of ``wave[i]²`` for ``w * window_size <= i < (w + 1) * window_size``. Samples after the last
    whole window are ignored, and ``var`` divides by the number of windows. The result is 1 for fewer than two windows
    and for a wave of zeros.

    >>> compute_energy_stability([1.0, 1.0, -1.0, 1.0], 2).tolist()
    1.0
    >>> compute_energy_stability([1.0, 0.0, 0.5, 0.5], 2).tolist()
    0.9166666865348816
    """
    row: Any = manipulation.moveaxis(_wide(wave), axis, -1)
    if window_size < 1:
        raise ValueError(f"window_size must be >= 1, got {window_size}")
    *batch, length = row.shape
    count = length // window_size
    if count < 2:
        return creation.ones(tuple(batch), dtype=dtypes.dtype(wave), device=device.get_device(wave))
    windows = manipulation.reshape(row[..., : count * window_size], (*batch, count, window_size))
    energies = _energy(windows, -1)
    mean = stats.mean(energies, axis=-1)
    ratio = math.divide(stats.var(energies, axis=-1), _nonzero(mean))
    return _like(wave, math.clip(math.subtract(1, ratio), 0, 1))


@op(floating, kinds="real")
def compute_interference_strength(wave1: TensorLike, wave2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """Correlation ``r`` of two waves along ``axis`` times the agreement ``g`` of their phases, from -1 to 1.

    With ``a`` and ``b`` the waves minus their means, and ``A`` and ``B`` their transforms (``rfft``)::

        r = sum(a b) / sqrt(sum(a²) sum(b²))
        g = |sum(A conj(B))| / sum(|A| |B|)

    ``g`` is 1 if the phase difference is the same at all frequencies that the waves share, and 0 if the differences
    cancel. So 1 is constructive interference, -1 destructive, and 0 none. The result is 0 if a wave is constant up to
    rounding.

    >>> wave = [0.0, 1.0, 0.0, -1.0]
    >>> round(compute_interference_strength(wave, [0.0, -2.0, 0.0, 2.0])).tolist()
    -1.0
    >>> compute_interference_strength(wave, [5.0, 5.0, 5.0, 5.0]).tolist()
    0.0
    """
    return _like(wave1, _strength(*_rows(wave1, wave2, axis)))


@op(floating, kinds="real")
def compute_phase_coherence(
    wave1: TensorLike, wave2: TensorLike, /, freq_range: tuple[float, float] | None = None, *, axis: int = -1
) -> Tensor:
    """Phase coherence of two waves along ``axis``: ``|mean(exp(i * (phase(A) - phase(B))))|``, from 0 to 1.

    ``A`` and ``B`` are the transforms (``rfft``) of the waves, and the mean is over their frequencies. Frequencies at
    which the amplitude of a wave is rounding error, up to ``64 eps`` of its largest, are ignored. If none is left, as
    for a wave of zeros, the result is 0.

    Args:
        freq_range: the lowest and the highest frequency to include, in cycles per sample (0 to 0.5).

    >>> wave = [0.0, 1.0, 0.0, -1.0]
    >>> compute_phase_coherence(wave, [1.0, 0.0, -1.0, 0.0]).tolist()
    1.0
    >>> compute_phase_coherence(wave, [0.0, 0.0, 0.0, 0.0]).tolist()
    0.0
    """
    rows = _rows(wave1, wave2, axis)
    (one, size), (other, size_too) = (_spectrum(row) for row in rows)
    counts = comparison.logical_and(comparison.not_equal(size, 0), comparison.not_equal(size_too, 0))
    turn = math.multiply(one, math.conj(other))
    weight = math.divide(dtypes.cast(counts, dtypes.dtype(size)), _nonzero(math.multiply(size, size_too)))
    parts = [math.multiply(math.real(turn), weight), math.multiply(math.imag(turn), weight)]
    if freq_range is not None:
        places = _places(freq_range, rows[0].shape[-1])
        counts, parts = counts[..., places], [part[..., places] for part in parts]
    number = math.maximum(indexing.count_nonzero(counts, axis=-1), 1)
    squares = [math.square(math.divide(stats.sum(part, axis=-1), number)) for part in parts]
    return _like(wave1, _root(math.add(*squares)))


@op(floating, kinds="real")
def partial_interference(wave1: TensorLike, wave2: TensorLike, /, window_size: int = 100, *, axis: int = -1) -> Tensor:
    """``compute_interference_strength`` of each window of ``window_size`` samples along ``axis``.

    Element ``i`` of the result is for the samples ``i`` to ``i + window_size - 1`` of both waves.

    >>> wave = [0.0, 1.0, 0.0, -1.0, 0.0, 1.0]
    >>> round(partial_interference(wave, [0.0, 1.0, 0.0, -1.0, 0.0, -1.0], 4)).tolist()
    [1.0, 1.0, 0.0]
    """
    if window_size < 1:
        raise ValueError(f"window_size must be >= 1, got {window_size}")
    windows = [manipulation.sliding_window(row, window_size, -1) for row in _rows(wave1, wave2, axis)]
    strength = _strength(*windows)
    return manipulation.moveaxis(_like(wave1, strength), -1, axis)


def _rows(wave1: Any, wave2: Any, axis: int) -> list[Any]:
    """Two waves broadcast to one shape, along the last axis."""
    waves = manipulation.broadcast_arrays(wave1, wave2)
    return [manipulation.moveaxis(_wide(wave), axis, -1) for wave in waves]


def _real_dtype(x: Any) -> str:
    return "float64" if dtypes.dtype(x).bits == 64 else "float32"


def _noise(x: Any) -> float:
    """Threshold relative to the largest value below which values are rounding errors."""
    return 64 * (2.0**-52 if _real_dtype(x) == "float64" else 2.0**-23)


def _energy(x: Any, axis: int, *, keepdims: bool = False) -> Any:
    return stats.sum(math.square(math.abs(x)), axis=axis, keepdims=keepdims)


def _nonzero(x: Any) -> Any:
    """``x`` with zeros replaced by one, as a safe divisor."""
    return comparison.where(comparison.equal(x, 0), 1, x)


def _root(x: Any) -> Any:
    """Square root, with a gradient of zero at zero."""
    return comparison.where(comparison.equal(x, 0), 0, math.sqrt(_nonzero(x)))


def _normalized(x: Any, axis: int, eps: float) -> Any:
    # The maximum of the squares, not of the roots, keeps the gradient at zero finite.
    return math.divide(x, math.sqrt(math.maximum(_energy(x, axis, keepdims=True), eps * eps)))


def _scaled(x: Any) -> Any:
    """``x`` divided by its largest magnitude along the last axis, so that squares neither overflow nor underflow."""
    return math.divide(x, _nonzero(stats.max(math.abs(x), axis=-1, keepdims=True)))


def _strength(one: Any, other: Any) -> Any:
    """Interference strength of waves along the last axis."""
    one, other = _standardized(one), _standardized(other)
    correlation = stats.sum(math.multiply(one, other), axis=-1)
    one, other = _rfft(one), _rfft(other)
    shared = stats.sum(math.multiply(math.abs(one), math.abs(other)), axis=-1)
    resultant = math.abs(stats.sum(math.multiply(one, math.conj(other)), axis=-1))
    return math.multiply(correlation, math.divide(resultant, _nonzero(shared)))


def _standardized(wave: Any) -> Any:
    """A wave with mean 0 and energy 1; zero if it is constant."""
    wave = _scaled(wave)
    centred = math.subtract(wave, stats.mean(wave, axis=-1, keepdims=True))
    energy = _energy(centred, -1, keepdims=True)
    constant = comparison.less_equal(energy, math.multiply(_energy(wave, -1, keepdims=True), _noise(wave) ** 2))
    return comparison.where(constant, 0, math.divide(centred, math.sqrt(comparison.where(constant, 1, energy))))


def _spectrum(wave: Any) -> tuple[Any, Any]:
    """Transform of a wave along the last axis, and its magnitude, zero where that is only rounding error."""
    spectrum = _rfft(_scaled(wave))
    size = math.abs(spectrum)
    least = math.multiply(stats.max(size, axis=-1, keepdims=True), _noise(size))
    return spectrum, comparison.where(comparison.less_equal(size, least), 0, size)


def _places(freq_range: tuple[float, float], length: int) -> slice:
    """Indices of the frequencies in ``freq_range``, ends included, in the ``rfft`` of ``length`` samples."""
    low, high = freq_range
    least, greatest = max(low, 0.0) * length, min(high, 0.5) * length
    return slice(_math.ceil(least - 1e-6), max(0, _math.floor(greatest + 1e-6) + 1))
