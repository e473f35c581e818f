"""Fourier transforms, their frequencies, and cosine and short-time Fourier transforms.

Transforms keep the precision of their argument: float64 and complex128 are transformed in double precision; float32,
complex64 and 16-bit floats in single precision; integers in the precision of the default float. MLX has no complex128:
in double precision, transforms with a complex result raise ``UnsupportedError`` there, and those with a real result are
computed by NumPy.

All functions are in ``ops`` and also attributes of ``ops.fft``: ``ops.ifft`` is ``ops.fft.ifft``.

Common arguments:
    n, s: the length of the transformed axis, or of each of them. Longer axes are cut, shorter ones padded with zeros. A
        length of -1 leaves an axis unchanged.
    axis, axes: the axis or axes to transform; by default the last one, or all (the last ones if ``s`` is given).
    norm: which transform has the factor ``1/n``: the ``"backward"`` one, the ``"forward"`` one, or both with its square
        root (``"ortho"``).
"""

from __future__ import annotations

import math as _math
from collections.abc import Sequence
from typing import Any

from ember_ml.dispatch import op
from ember_ml.dtypes import as_dtype, default_float, floating, free, kept
from ember_ml.ops import comparison, creation, device, dtypes, manipulation, math, stats
from ember_ml.shapes.axes import axes_of as _axes
from ember_ml.shapes.axes import axis_of as _axis
from ember_ml.types import DeviceLike, DTypeLike, Tensor, TensorLike


@op(free, engine="x, *, n, axis, norm")
def fft(x: TensorLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Discrete Fourier transform along ``axis``: ``sum over j of x[j] exp(-2 pi i j k / n)``; complex.

    Args:
        n: the length of the transform; the axis is cut or padded with zeros to it. By default the length of the axis.
        axis: the axis to transform.
        norm: which transform has the factor ``1/n``: the ``"backward"`` one (``ifft``), the ``"forward"`` one
            (``fft``), or both with its square root (``"ortho"``).

    >>> fft([1.0, 2.0, 3.0, 4.0]).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """
    ...


@op(free, engine="x, *, n, axis, norm")
def ifft(x: TensorLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Inverse of ``fft``: ``1/n sum over k of x[k] exp(2 pi i j k / n)``; complex.

    Args:
        n, axis, norm: as in ``fft``.

    >>> ifft([10, -2 + 2j, -2, -2 - 2j]).tolist()
    [(1+0j), (2+0j), (3+0j), (4+0j)]
    """
    ...


@op(free)
def fft2(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """Discrete Fourier transform along two axes; complex.

    Args:
        s, axes, norm: as in ``fftn``.

    >>> fft2([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return fftn(x, s=s, axes=axes, norm=norm)


@op(free)
def ifft2(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """Inverse of ``fft2``; complex.

    Args:
        s, axes, norm: as in ``fftn``.

    >>> ifft2([[10.0, -2.0], [-4.0, 0.0]]).tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


@op(free, engine="x, *, s, axes, norm")
def fftn(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """Discrete Fourier transform along several axes; complex.

    Args:
        s: the lengths of the transform along each of ``axes``, as ``n`` in ``fft``; -1 leaves an axis unchanged.
        axes: the axes to transform; by default all, or the last ones if ``s`` is given.
        norm: as in ``fft``.

    >>> fftn([[1.0, 2.0], [3.0, 4.0]], axes=(0,)).tolist()
    [[(4+0j), (6+0j)], [(-2+0j), (-2+0j)]]
    """
    ...


@op(free, engine="x, *, s, axes, norm")
def ifftn(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """Inverse of ``fftn``; complex.

    Args:
        s, axes, norm: as in ``fftn``.

    >>> ifftn([[4.0, 6.0], [-2.0, -2.0]], axes=(0,)).tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]
    """
    ...


@op(free, kinds="real", engine="x, *, n, axis, norm")
def rfft(x: TensorLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """First ``n // 2 + 1`` elements of ``fft`` of real numbers; the rest are their conjugates.

    Args:
        n, axis, norm: as in ``fft``.

    >>> rfft([1.0, 2.0, 3.0, 4.0]).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    ...


@op(free, engine="x, *, n, axis, norm")
def irfft(x: TensorLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Inverse of ``rfft``; real.

    Args:
        n: the length of the result, by default ``2 * (m - 1)`` for ``m`` elements. It must be given if it is odd.
        axis, norm: as in ``fft``.

    >>> irfft([10, -2 + 2j, -2]).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    ...


@op(free, kinds="real")
def rfft2(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """Discrete Fourier transform of real numbers along two axes, the last as in ``rfft``; complex.

    Args:
        s, axes, norm: as in ``fftn``.

    >>> rfft2([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


@op(free)
def irfft2(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """Inverse of ``rfft2``; real.

    Args:
        s, axes, norm: as in ``fftn``.

    >>> irfft2([[10.0, -2.0], [-4.0, 0.0]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


@op(free, kinds="real", engine="x, *, s, axes, norm")
def rfftn(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """Discrete Fourier transform of real numbers along several axes, the last as in ``rfft``; complex.

    Args:
        s, axes, norm: as in ``fftn``.

    >>> rfftn([[1.0, 2.0], [3.0, 4.0]], axes=(1, 0)).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]
    """
    ...


@op(free, engine="x, *, s, axes, norm")
def irfftn(
    x: TensorLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """Inverse of ``rfftn``; real.

    Args:
        s, axes, norm: as in ``fftn``.

    >>> irfftn([[10.0, -2.0], [-4.0, 0.0]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    ...


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _opposite(norm: str) -> str:
    if norm not in _OPPOSITE:
        raise ValueError(f"norm must be 'backward', 'forward' or 'ortho', got {norm!r}")
    return _OPPOSITE[norm]


@op(free)
def hfft(x: TensorLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Discrete Fourier transform of a Hermitian signal, of which ``x`` is the first half; real.

    The second half of the signal is the reversed conjugate of the first.

    Args:
        n: the length of the result, by default ``2 * (m - 1)`` for ``m`` elements. It must be given if it is odd.
        axis, norm: as in ``fft``.

    >>> hfft([1.0, 2.0, 3.0]).tolist()
    [8.0, -2.0, 0.0, -2.0]
    """
    mirrored = math.conj(x) if dtypes.is_complex(x) else x
    return irfft(mirrored, n=n, axis=axis, norm=_opposite(norm))


@op(free, kinds="real")
def ihfft(x: TensorLike, /, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Inverse of ``hfft``: first half of the signal whose transform is real; complex.

    Args:
        n, axis, norm: as in ``fft``.

    >>> ihfft([8.0, -2.0, 0.0, -2.0]).tolist()
    [(1-0j), (2-0j), (3-0j)]
    """
    return math.conj(rfft(x, n=n, axis=axis, norm=_opposite(norm)))


@op(free, differentiable=False)
def fftfreq(n: int, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Frequencies of the ``n`` elements of ``fft``, in cycles per unit.

    Args:
        d: spacing of the samples.
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    steps = creation.arange(-(n // 2), (n + 1) // 2, device=device)
    return _frequencies(ifftshift(steps), n, d, dtype)


@op(free, differentiable=False)
def rfftfreq(n: int, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """Frequencies of the ``n // 2 + 1`` elements of ``rfft``, in cycles per unit.

    Args:
        d: spacing of the samples.
        dtype: the dtype of the result, by default the default float.
        device: the device of the result, by default the default device.

    >>> rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies(creation.arange(n // 2 + 1, device=device), n, d, dtype)


def _frequencies(steps: Any, n: int, d: float, dtype: Any) -> Tensor:
    if n < 1:
        raise ValueError(f"n must be >= 1, got {n}")
    own = default_float() if dtype is None else as_dtype(dtype)
    if own.kind != "real floating":
        raise TypeError(f"dtype must be real floating, got {own.name}")
    wide = dtypes.cast(steps, "float64" if own.bits == 64 else "float32")
    return dtypes.cast(math.multiply(wide, 1 / (n * d)), own)


@op(kept)
def fftshift(x: TensorLike, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """``x`` with its halves swapped along ``axes``, which moves frequency zero to the middle.

    Args:
        axes: one axis, several, or ``None`` for all.

    >>> fftshift([0, 1, 2, -2, -1]).tolist()
    [-2, -1, 0, 1, 2]
    """
    return _shifted(x, axes, lambda length: length // 2)


@op(kept)
def ifftshift(x: TensorLike, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Inverse of ``fftshift``; the two differ for odd lengths.

    Args:
        axes: one axis, several, or ``None`` for all.

    >>> ifftshift([-2, -1, 0, 1, 2]).tolist()
    [0, 1, 2, -2, -1]
    """
    return _shifted(x, axes, lambda length: -(length // 2))


def _shifted(x: Any, axes: int | Sequence[int] | None, step: Any) -> Tensor:
    places = _axes(axes, x.ndim)
    shifts = [step(x.shape[place]) for place in places]
    return manipulation.roll(x, shifts, axis=places) if shifts else x


@op(free, kinds="real")
def stft(
    x: TensorLike,
    /,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: object = "hann",
    center: bool = True,
) -> Tensor:
    """Short-time Fourier transform of the last axis: ``rfft`` of overlapping frames; complex.

    The result has the shape ``(..., frames, fft_length // 2 + 1)`` and the values of ``torch.stft``.

    Args:
        sequence_length: the length of the window.
        sequence_stride: the distance between the starts of two frames.
        fft_length: the length of a frame; a shorter window is centered in it.
        window: the weights of a frame: ``"hann"`` or ``"hamming"`` (both periodic), a tensor, or ``None`` for ones.
        center: whether the signal is padded by reflection with half a frame at both ends, so that frame ``t`` is
            centered at ``t * sequence_stride``.

    >>> stft([1.0, 2.0, 3.0, 4.0], 2, 2, 2, window=None, center=False).tolist()
    [[(3+0j), (-1+0j)], [(7+0j), (-1+0j)]]
    """
    signal: Any = _single(x)
    _check_stretches(sequence_length, sequence_stride, fft_length)
    if signal.ndim == 0:
        raise ValueError("x must have at least 1 axis, got a 0-d tensor")
    if center:
        half = fft_length // 2
        signal = manipulation.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(half, half)], "reflect")
    stretches = manipulation.sliding_window(signal, fft_length, -1)[..., ::sequence_stride, :]
    return rfft(math.multiply(stretches, _window(window, sequence_length, fft_length, signal)))


@op(free, kinds="complex floating")
def istft(
    x: TensorLike,
    /,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: object = "hann",
    center: bool = True,
) -> Tensor:
    """Inverse of ``stft``: the signal whose frames are closest to those of ``x`` by least squares; real.

    Samples that no window covers are zero. The other options are those of ``stft``.

    Args:
        length: the length of the signal, which is cut or padded with zeros. By default it is the span of the frames,
            without half a frame at both ends if ``center`` is true.

    >>> istft([[3 + 0j, -1 + 0j], [7 + 0j, -1 + 0j]], 2, 2, 2, window=None, center=False).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    spectra: Any = x
    _check_stretches(sequence_length, sequence_stride, fft_length)
    if spectra.ndim < 2 or spectra.shape[-2] == 0 or spectra.shape[-1] != fft_length // 2 + 1:
        raise ValueError(
            f"x must have shape (..., frames, {fft_length // 2 + 1}) for fft_length={fft_length}, got "
            f"{list(spectra.shape)}"
        )
    if length is not None and length < 0:
        raise ValueError(f"length must be >= 0, got {length}")
    stretches = irfft(spectra, n=fft_length)
    factors = _window(window, sequence_length, fft_length, stretches)
    total = _overlapped(math.multiply(stretches, factors), sequence_stride)
    squares = manipulation.broadcast_to(math.square(factors), tuple(stretches.shape[-2:]))
    weight = _overlapped(squares, sequence_stride)
    reached = comparison.greater(weight, 1e-11)
    signal: Any = comparison.where(reached, math.divide(total, comparison.where(reached, weight, 1)), 0)
    trim = fft_length // 2 if center else 0
    end = signal.shape[-1] - trim if length is None else trim + length
    return _resized(signal[..., trim:end], length)


def _check_stretches(sequence_length: int, sequence_stride: int, fft_length: int) -> None:
    if not 0 < sequence_length <= fft_length:
        raise ValueError(f"sequence_length must be from 1 to fft_length={fft_length}, got {sequence_length}")
    if sequence_stride < 1:
        raise ValueError(f"sequence_stride must be >= 1, got {sequence_stride}")


_WINDOWS = {"hann": creation.hanning, "hamming": creation.hamming}


def _window(window: Any, length: int, fft_length: int, like: Any) -> Any:
    """Weights of a frame, with the dtype and device of ``like``."""
    place: dict[str, Any] = {"dtype": dtypes.dtype(like), "device": device.get_device(like)}
    if window is None or (isinstance(window, str) and length == 1):
        window = creation.ones(length, **place)
    elif isinstance(window, str):
        if window not in _WINDOWS:
            raise ValueError(f"window must be 'hann', 'hamming', a tensor or None, got {window!r}")
        # A periodic window is a symmetric window of one more point without the last.
        window = _WINDOWS[window](length + 1, **place)[:-1]
    else:
        window = creation.asarray(window, **place)
    if tuple(window.shape) != (length,):
        raise ValueError(f"window must have shape [{length}], got {list(window.shape)}")
    before = (fft_length - length) // 2
    return manipulation.pad(window, (before, fft_length - length - before)) if length < fft_length else window


def _overlapped(stretches: Any, stride: int) -> Any:
    """Sum of frames that start at multiples of ``stride``."""
    *batch, count, length = stretches.shape
    parts = -(-length // stride)
    still = [(0, 0)] * len(batch)
    blocks = manipulation.pad(stretches, [*still, (0, 0), (0, parts * stride - length)])
    blocks = manipulation.swapaxes(manipulation.reshape(blocks, (*batch, count, parts, stride)), -3, -2)
    # Rows that are read one block shorter than they were written shift by one more block each.
    padded = manipulation.pad(blocks, [*still, (0, 0), (0, parts), (0, 0)])
    rows = manipulation.reshape(padded, (*batch, parts * (count + parts) * stride))
    width = count + parts - 1
    rows = manipulation.reshape(rows[..., : parts * width * stride], (*batch, parts, width * stride))
    return stats.sum(rows, axis=-2)[..., : length + (count - 1) * stride]


def _single(x: Any) -> Any:
    """``x`` in the precision of its transform: 16-bit floats in float32, integers in the default float."""
    own = dtypes.dtype(x)
    if own.kind in ("real floating", "complex floating"):
        return x if own.bits > 16 else dtypes.cast(x, "float32")
    return dtypes.cast(x, "float64" if default_float().bits == 64 else "float32")


@op(floating, kinds="real")
def dct(x: TensorLike, /, kind: int = 2, *, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Discrete cosine transform along ``axis``, of one of four types, as in ``scipy.fft.dct``.

    With ``n`` the length of the axis and ``j`` from 0 to ``n - 1``, element ``k`` is

    - type 1: ``x[0] + (-1)^k x[n-1] + 2 sum over 0 < j < n-1 of x[j] cos(pi j k / (n-1))``
    - type 2: ``2 sum over j of x[j] cos(pi (2j+1) k / 2n)``
    - type 3: ``x[0] + 2 sum over j > 0 of x[j] cos(pi j (2k+1) / 2n)``
    - type 4: ``2 sum over j of x[j] cos(pi (2j+1) (2k+1) / 4n)``

    Args:
        kind: the type, from 1 to 4.
        n: the length of the transform; the axis is cut or padded with zeros to it. By default the length of the axis.
        norm: ``None`` or ``"backward"`` for these sums; ``"forward"`` for the sums divided by ``2n`` (``2n - 2`` for
            type 1); ``"ortho"`` for the orthonormal transform, which also scales the first element and, for type 1, the
            last.

    >>> dct([1.0, 2.0, 3.0], 1).tolist()
    [8.0, -2.0, 0.0]
    >>> [f"{y:.4f}" for y in dct([1.0, 2.0], norm="ortho").tolist()]
    ['2.1213', '-0.7071']
    """
    return _cosine(x, kind, n, axis, norm or "backward")


@op(floating, kinds="real")
def idct(x: TensorLike, /, kind: int = 2, *, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of ``dct`` of the same ``kind`` and ``norm``.

    Args:
        n: the length of the transform; the axis is cut or padded with zeros to it. By default the length of the axis.

    >>> idct([8.0, -2.0, 0.0], 1).tolist()
    [1.0, 2.0, 3.0]
    """
    return _cosine(x, _INVERSE.get(kind, kind), n, axis, _opposite(norm or "backward"))


_INVERSE = {2: 3, 3: 2}


def _cosine(x: Any, kind: int, n: int | None, axis: int, norm: str) -> Tensor:
    _opposite(norm)
    if kind not in _COSINES:
        raise ValueError(f"type must be 1, 2, 3 or 4, got {kind!r}")
    _axis(axis, x.ndim)
    if n is not None and n < 1:
        raise ValueError(f"n must be >= 1, got {n}")
    row: Any = _resized(manipulation.moveaxis(_single(x), axis, -1), n)
    length = row.shape[-1]
    least = 2 if kind == 1 else 1
    if length < least:
        raise ValueError(f"x must have at least {least} elements along axis for type {kind}, got {length}")
    period = 2 * (length - 1 if kind == 1 else length)
    if norm == "ortho" and kind in (1, 3):
        row = _with_ends(row, _math.sqrt(2), both=kind == 1)
    row = _COSINES[kind](row)
    if norm == "ortho" and kind in (1, 2):
        row = _with_ends(row, _math.sqrt(0.5), both=kind == 1)
    if norm != "backward":
        row = math.multiply(row, 1 / period if norm == "forward" else _math.sqrt(1 / period))
    row, own = manipulation.moveaxis(row, -1, axis), dtypes.dtype(x)
    return dtypes.cast(row, own) if own.kind == "real floating" and own.bits == 16 else row


def _resized(row: Any, n: int | None) -> Tensor:
    """``row`` cut or padded with zeros to ``n`` elements."""
    lacking = 0 if n is None else n - row.shape[-1]
    if lacking > 0:
        return manipulation.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, lacking)])
    cut: Tensor = row if lacking == 0 else row[..., :n]
    return cut


def _with_ends(row: Any, factor: float, *, both: bool) -> Any:
    """``row`` with its first element, or its first and last, multiplied by ``factor``."""
    if not both:
        return manipulation.concat([math.multiply(row[..., :1], factor), row[..., 1:]], axis=-1)
    first, last = (math.multiply(end, factor) for end in (row[..., :1], row[..., -1:]))
    return manipulation.concat([first, row[..., 1:-1], last], axis=-1)


def _angles(like: Any, count: int, step: float, first: float = 0.0) -> tuple[Any, Any]:
    """Cosines and sines of ``first``, ``first + step`` and so on, with the dtype and device of ``like``."""
    steps = creation.arange(count, dtype=dtypes.dtype(like), device=device.get_device(like))
    turned = math.add(math.multiply(steps, step), first)
    return math.cos(turned), math.sin(turned)


def _complex(real: Any, imag: Any) -> Any:
    return manipulation.view_as_complex(manipulation.stack([real, imag], axis=-1))


def _reversed(row: Any) -> Any:
    return manipulation.flip(row, axis=-1)


def _first(row: Any) -> Any:
    """Type 1: the transform of the row and its mirror image, which is real."""
    return math.real(rfft(manipulation.concat([row, _reversed(row[..., 1:-1])], axis=-1)))


def _second(row: Any) -> Any:
    """Type 2, by one real transform of the even elements followed by the reversed odd ones (Makhoul 1980)."""
    n = row.shape[-1]
    spectrum = rfft(manipulation.concat([row[..., ::2], _reversed(row[..., 1::2])], axis=-1))
    real, imag = math.real(spectrum), math.imag(spectrum)
    cos, sin = _angles(row, n // 2 + 1, _math.pi / (2 * n))
    low, high = real * cos + imag * sin, real * sin - imag * cos
    return manipulation.concat([low, _reversed(high[..., 1 : (n + 1) // 2])], axis=-1) * 2


def _third(row: Any) -> Any:
    """Type 3: the steps of type 2 in reverse."""
    n = row.shape[-1]
    low, cut = row[..., : n // 2 + 1], n - n // 2
    high = manipulation.concat([creation.zeros_like(row[..., :1]), _reversed(row[..., cut:])], axis=-1)
    cos, sin = _angles(row, n // 2 + 1, _math.pi / (2 * n))
    mixed = irfft(_complex(low * cos + high * sin, low * sin - high * cos), n=n, norm="forward")
    half = (n + 1) // 2
    pairs = manipulation.stack([mixed[..., :half], _reversed(mixed)[..., :half]], axis=-1)
    return manipulation.reshape(pairs, (*row.shape[:-1], 2 * half))[..., :n]


def _fourth(row: Any) -> Any:
    """Type 4 of an even length, by a complex transform of pairs of an element from the front and one from the back."""
    n = row.shape[-1]
    if n % 2:
        return _fourth_of_odd(row)
    front, back = row[..., ::2], _reversed(row)[..., ::2]
    cos, sin = _angles(row, n // 2, _math.pi / n, _math.pi / (4 * n))
    spectrum = fft(_complex(front * cos + back * sin, back * cos - front * sin))
    real, imag = math.real(spectrum), math.imag(spectrum)
    cos, sin = _angles(row, n // 2, _math.pi / n)
    pairs = manipulation.stack([real * cos + imag * sin, _reversed(real * sin - imag * cos)], axis=-1)
    return manipulation.reshape(pairs, row.shape) * 2


def _fourth_of_odd(row: Any) -> Any:
    """Type 4 of an odd length, by a transform of twice the length."""
    n = row.shape[-1]
    cos, sin = _angles(row, n, _math.pi / (2 * n))
    spectrum = fft(_complex(row * cos, row * -sin), n=2 * n)[..., :n]
    cos, sin = _angles(row, n, _math.pi / (2 * n), _math.pi / (4 * n))
    return (math.real(spectrum) * cos + math.imag(spectrum) * sin) * 2


_COSINES = {1: _first, 2: _second, 3: _third, 4: _fourth}

# In ``ops``, the function shadows this module, so it carries the module's operations as attributes.
for _function in [value for value in vars().values() if getattr(value, "__module__", None) == __name__]:
    if hasattr(_function, "__operation__"):
        setattr(fft, _function.__name__, _function)
