"""The windows of convolutions and pools, and the kernels that go with them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any, NamedTuple


class Windows(NamedTuple):
    """The windows over the spatial axes, one entry per axis: how many there are, how large, and how far apart."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    spans: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    counts: tuple[int, ...]


def windows(sizes: tuple[int, ...], kernel: Any, strides: Any, padding: Any, dilation: Any = 1) -> Windows:
    """The windows of that kernel over axes of these sizes."""
    rank = len(sizes)
    kernel = several(kernel, rank, "the window")
    strides = several(strides, rank, "strides")
    dilation = several(dilation, rank, "dilation_rate")
    spans = spans_of(kernel, dilation)
    if padding == "same":
        pads = tuple(_balanced(*axis) for axis in zip(sizes, spans, strides, strict=True))
    else:
        pads = pads_of(padding, rank)
    counts = tuple(
        (size + low + high - span) // stride + 1
        for size, (low, high), span, stride in zip(sizes, pads, spans, strides, strict=True)
    )
    if min(counts) < 1:
        raise ValueError(
            f"the window must fit into the padded axes, got windows of {list(spans)} for axes of {list(sizes)} with "
            f"padding={padding!r}"
        )
    return Windows(sizes, kernel, spans, strides, dilation, pads, counts)


def transposed(sizes: tuple[int, ...], kernel: Any, strides: Any, padding: Any, extra: Any, dilation: Any) -> Windows:
    """The windows that a transposed convolution spreads its input over; pads say what is cut off, or added if negative.

    ``sizes`` of the answer are those of the whole output, ``counts`` those of the input.
    """
    rank = len(sizes)
    kernel = several(kernel, rank, "the window")
    strides = several(strides, rank, "strides")
    dilation = several(dilation, rank, "dilation_rate")
    more = several(0 if extra is None else extra, rank, "output_padding", least=0)
    spans = spans_of(kernel, dilation)
    if padding == "same":
        spare = [span - stride for span, stride in zip(spans, strides, strict=True)]
        pads = tuple((max(one, 0) // 2, one - max(one, 0) // 2) for one in spare)
    else:
        pads = pads_of(padding, rank)
    pads = tuple((low, high - add) for (low, high), add in zip(pads, more, strict=True))
    whole = tuple((size - 1) * stride + span for size, stride, span in zip(sizes, strides, spans, strict=True))
    found = Windows(whole, kernel, spans, strides, dilation, pads, sizes)
    if min(trimmed(found)) < 1:
        raise ValueError(f"padding must leave elements of the result of shape {list(whole)}, got {padding!r}")
    return found


def trimmed(found: Windows) -> tuple[int, ...]:
    """The sizes of a transposed convolution's output, after ``pads`` are cut off."""
    return tuple(size - low - high for size, (low, high) in zip(found.sizes, found.pads, strict=True))


def pools(sizes: tuple[int, ...], pool_size: Any, strides: Any, padding: Any) -> Windows:
    """The windows of a pool, none of them in the padding alone."""
    found = windows(sizes, pool_size, pool_size if strides is None else strides, padding)
    if any(max(pads) >= size for pads, size in zip(found.pads, found.kernel, strict=True)):
        raise ValueError(f"padding must be less than the window, {list(found.kernel)}, got {padding!r}")
    return found


def cuts(found: Windows) -> Iterator[tuple[slice, ...]]:
    """For each place in the kernel, in order, the elements of the padded axes that it meets."""
    for places in product(*(range(size) for size in found.kernel)):
        yield tuple(cut(found, axis, place) for axis, place in enumerate(places))


def cut(found: Windows, axis: int, place: int) -> slice:
    """The elements of a padded axis that one place in the kernel meets."""
    start, stride = place * found.dilation[axis], found.strides[axis]
    return slice(start, start + (found.counts[axis] - 1) * stride + 1, stride)


def shares(found: Windows, axis: int) -> list[int]:
    """How many elements of each window along an axis are not padding."""
    low, size, kernel = found.pads[axis][0], found.sizes[axis], found.kernel[axis]
    starts = [i * found.strides[axis] - low for i in range(found.counts[axis])]
    return [min(start + kernel, size) - max(start, 0) for start in starts]


def spans_of(kernel: tuple[int, ...], dilation: tuple[int, ...]) -> tuple[int, ...]:
    """How far windows reach."""
    return tuple((size - 1) * rate + 1 for size, rate in zip(kernel, dilation, strict=True))


def several(value: Any, count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """One number for each axis, given as such or as one for all."""
    numbers = (value,) * count if isinstance(value, int) else tuple(value)
    if len(numbers) != count or min(numbers, default=least) < least:
        raise ValueError(f"{name} must be an integer >= {least}, or {count} of them, got {value!r}")
    return numbers


def pads_of(padding: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """How much is added before and after each axis, where that does not depend on sizes."""
    if padding == "valid":
        padding = 0
    if isinstance(padding, str):
        raise ValueError(f"padding must be 'valid', 'same', an integer, or one or two for each axis, got {padding!r}")
    each = (padding,) * rank if isinstance(padding, int) else tuple(padding)
    pads = tuple((one, one) if isinstance(one, int) else tuple(one) for one in each)
    if len(pads) != rank or any(len(pair) != 2 or min(pair) < 0 for pair in pads):
        raise ValueError(f"padding must be one integer >= 0, or one or two for each of {rank} axes, got {padding!r}")
    return pads


def _balanced(size: int, span: int, stride: int) -> tuple[int, int]:
    """The padding that leaves as many windows as there are strides in the axis; the odd one goes to the end."""
    total = max((-(-size // stride) - 1) * stride + span - size, 0)
    return total // 2, total - total // 2


def is_last(data_format: str) -> bool:
    """Whether channels are the last axis, or else the second."""
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"data_format must be 'channels_last' or 'channels_first', got {data_format!r}")
    return data_format == "channels_last"


def spatial(shape: Any, data_format: str) -> tuple[int, ...]:
    """The sizes of the axes that are neither batch nor channels."""
    if not 3 <= len(shape) <= 5:
        raise ValueError(f"x must have a batch axis, one of channels and 1 to 3 spatial axes, got shape {list(shape)}")
    sizes = tuple(shape[1:-1]) if is_last(data_format) else tuple(shape[2:])
    if 0 in sizes:
        raise ValueError(f"spatial axes must not be empty, got shape {list(shape)}")
    return sizes


def check_kernel(shape: Any, kernel: Any, data_format: str, groups: int, across: bool = False) -> None:
    """A kernel (spatial..., in / groups, out) goes with the input; one (spatial..., out / groups, in) if ``across``."""
    rank = len(spatial(shape, data_format))
    channels = shape[-1 if is_last(data_format) else 1]
    if len(kernel) != rank + 2:
        raise ValueError(f"kernel must have {rank} spatial axes and two of channels, got shape {list(kernel)}")
    if groups < 1 or channels % groups or (kernel[-1] % groups and not across):
        raise ValueError(f"groups must divide the channels, {channels}, and the filters, {kernel[-1]}, got {groups}")
    wanted, given = (channels, kernel[-1]) if across else (channels // groups, kernel[-2])
    if given != wanted:
        raise ValueError(f"x and kernel must have as many channels, got {wanted} and {given} (kernel {list(kernel)})")


def folding(shape: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Windows:
    """The windows that columns of that shape come from."""
    found = windows(several(output_size, 2, "output_size"), kernel_size, stride, padding, dilation)
    if len(shape) != 3 or shape[1] % prod(found.kernel) or shape[2] != prod(found.counts):
        raise ValueError(
            f"x must have shape (batch, channels * {prod(found.kernel)}, {prod(found.counts)}), got {list(shape)}"
        )
    return found


def framed(found: Windows) -> tuple[tuple[int, ...], tuple[slice, ...]]:
    """The sizes of the axes with their padding, and where in them the axes lie."""
    pairs = list(zip(found.sizes, found.pads, strict=True))
    return tuple(n + low + high for n, (low, high) in pairs), tuple(slice(low, low + n) for n, (low, _) in pairs)


def sliding_pads(a: Any, v: Any, mode: str) -> tuple[int, int]:
    """Zeros before and after ``a`` for the products of ``v`` with its windows, as in ``convolve`` and ``correlate``."""
    if len(a.shape) != 1 or len(v.shape) != 1 or not v.shape[0]:
        raise ValueError(
            f"a and v must have 1 axis and at least 1 element, got shapes {list(a.shape)} and {list(v.shape)}"
        )
    rest = v.shape[0] - 1
    pads = {"full": (rest, rest), "same": (rest - rest // 2, rest // 2), "valid": (0, 0)}
    if mode not in pads:
        raise ValueError(f"mode must be 'full', 'same' or 'valid', got {mode!r}")
    return pads[mode]
