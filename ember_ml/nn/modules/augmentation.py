"""Augmentation of images in training: random flips, crops, rotations and noise, and mixtures of examples.

The layers draw from the random stream, so a seed gives the same augmentation on every engine. In evaluation mode they
return what they are given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ember_ml import ops
from ember_ml.extend import activate, backend_of, current_backend, holds_wrapped, is_tensor, unwrap
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.shape import check_rate


class Augmentation(Module):
    """Base class of augmentations of images with the axes (batch, height, width, channels).

    With ``data_format="channels_first"``, the axes are (batch, channels, height, width).
    """

    data_format = "channels_last"

    def forward(self, x: Any, *, key: Any = None) -> Any:
        """Augmented images; in evaluation mode, ``x`` itself.

        Args:
            key: random key, with the same result on every engine; by default the next keys of the current stream.
        """
        return _run(self, (x,), key)

    def augment(self, x: Any, key: Any) -> Any:
        """Augmented images, of the shape and dtype of ``x`` unless the class says otherwise."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Augmentation must define augment, got none")

    def check(self, x: Any, *, floating: bool = False) -> tuple[int, int]:
        """Axes of height and width, for images of the right rank and dtype."""
        if len(x.shape) != 4:
            order = "channels, height, width" if self.data_format == "channels_first" else "height, width, channels"
            raise ValueError(f"{type(self).__name__}: images must have shape (batch, {order}), got {list(x.shape)}")
        if floating:
            _check_floating(self, x)
        return (2, 3) if self.data_format == "channels_first" else (1, 2)


class RandomFlip(Augmentation):
    """Images reversed at random, each separately.

    Args:
        mode: ``"horizontal"`` (left and right are exchanged), ``"vertical"``, or ``"horizontal_and_vertical"``, which
            decides on each.
        rate: probability that an image is reversed.

    >>> RandomFlip(rate=1.0)(ops.reshape(ops.arange(3.0), (1, 1, 3, 1)))[0, 0, :, 0].tolist()
    [2.0, 1.0, 0.0]
    """

    def __init__(self, mode: str = "horizontal", rate: float = 0.5, *, data_format: str = "channels_last") -> None:
        if mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError(
                f"{type(self).__name__}: mode must be 'horizontal', 'vertical' or 'horizontal_and_vertical', got "
                f"{mode!r}"
            )
        self.mode, self.rate, self.data_format = mode, check_rate(self, rate), data_format

    def augment(self, x: Any, key: Any) -> Any:
        rows, columns = self.check(x)
        for name, axis, one in zip(("vertical", "horizontal"), (rows, columns), _keys(key, 2), strict=True):
            if name in self.mode:
                chosen = ops.less(_uniform(x, one), self.rate)
                x = ops.where(_per_image(chosen, x), ops.flip(x, axis=axis), x)
        return x


class RandomCrop(Augmentation):
    """A part of each image, of height and width ``size``, at a random place.

    In evaluation mode the images keep their size. To train and evaluate with one size, crop to the size of the images
    after padding them, as in ``RandomCrop(32, padding=4)`` for images of 32 by 32.

    Args:
        size: height and width of the parts, or one number for both.
        padding: number of pixels to add on each side first.
        fill: value of the added pixels.

    >>> tuple(RandomCrop(2)(ops.ones((3, 5, 4, 1))).shape)
    (3, 2, 2, 1)
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int = 0,
        *,
        fill: float = 0.0,
        data_format: str = "channels_last",
    ) -> None:
        height, width = (size, size) if isinstance(size, int) else size
        if min(height, width) < 1 or padding < 0:
            raise ValueError(
                f"{type(self).__name__}: size must be >= 1, and padding >= 0, got size={size}, padding={padding}"
            )
        self.size, self.padding, self.fill, self.data_format = size, padding, fill, data_format

    def augment(self, x: Any, key: Any) -> Any:
        axes = self.check(x)
        sizes = (self.size, self.size) if isinstance(self.size, int) else tuple(self.size)
        if self.padding:
            around = [(self.padding, self.padding) if axis in axes else (0, 0) for axis in range(4)]
            x = ops.pad(x, around, constant_values=self.fill)
        for axis, size, one in zip(axes, sizes, _keys(key, 2), strict=True):
            count = x.shape[axis] - size + 1
            if count < 1:
                raise ValueError(
                    f"{type(self).__name__}: images must be at least {list(sizes)} after padding, got shape "
                    f"{list(x.shape)}"
                )
            start = ops.random.randint((x.shape[0],), 0, count, device=ops.get_device(x), key=one)
            places = ops.add(ops.expand_dims(start, axis=1), ops.arange(size, device=ops.get_device(x)))
            shape = [x.shape[0], 1, 1, 1]
            shape[axis] = size
            x = ops.take_along_axis(x, ops.reshape(places, shape), axis=axis)
        return x


class RandomRotation(Augmentation):
    """Images rotated about their centers by random angles, with bilinear interpolation.

    Args:
        degrees: the largest angle in either direction, or the smallest and the largest, counterclockwise.
        fill: value of the pixels from outside of an image.

    >>> x = ops.asarray([[[[1.0], [2.0]], [[3.0], [4.0]]]])
    >>> ops.round(RandomRotation((90, 90))(x))[0, :, :, 0].tolist()
    [[2.0, 4.0], [1.0, 3.0]]
    """

    def __init__(
        self, degrees: float | Sequence[float], *, fill: float = 0.0, data_format: str = "channels_last"
    ) -> None:
        low, high = (-degrees, degrees) if isinstance(degrees, (int, float)) else degrees
        if low > high:
            raise ValueError(f"{type(self).__name__}: degrees must be >= 0, or a range, got {degrees}")
        self.degrees, self.fill, self.data_format = degrees, fill, data_format

    def augment(self, x: Any, key: Any) -> Any:
        self.check(x, floating=True)
        low, high = (-self.degrees, self.degrees) if isinstance(self.degrees, (int, float)) else self.degrees
        turn = ops.multiply(ops.add(ops.multiply(_uniform(x, key), high - low), low), math.pi / 180)
        if self.data_format == "channels_first":
            return ops.moveaxis(self._rotated(ops.moveaxis(x, 1, -1), turn), -1, 1)
        return self._rotated(x, turn)

    def _rotated(self, x: Any, turn: Any) -> Any:
        """Images with the channels last, rotated by angles in radians."""
        batch, height, width, channels = x.shape
        down = ops.subtract(ops.arange(height, dtype="float32", device=ops.get_device(x)), (height - 1) / 2)
        right = ops.subtract(ops.arange(width, dtype="float32", device=ops.get_device(x)), (width - 1) / 2)
        down, right = ops.reshape(down, (1, height, 1)), ops.reshape(right, (1, 1, width))
        cos, sin = (ops.reshape(f(turn), (batch, 1, 1)) for f in (ops.cos, ops.sin))
        # Where each pixel comes from.
        row = ops.add(ops.add(ops.multiply(right, sin), ops.multiply(down, cos)), (height - 1) / 2)
        column = ops.add(ops.subtract(ops.multiply(right, cos), ops.multiply(down, sin)), (width - 1) / 2)
        pixels = ops.reshape(x, (batch, height * width, channels))
        top, left = ops.floor(row), ops.floor(column)
        part_below, part_right = ops.subtract(row, top), ops.subtract(column, left)
        result: Any = self.fill
        for i, vertical in enumerate((ops.subtract(1, part_below), part_below)):
            for j, horizontal in enumerate((ops.subtract(1, part_right), part_right)):
                r, c = ops.add(top, i), ops.add(left, j)
                inside = ops.logical_and(_is_within(r, height), _is_within(c, width))
                place = ops.add(ops.multiply(ops.clip(r, 0, height - 1), width), ops.clip(c, 0, width - 1))
                place = ops.reshape(ops.cast(place, "int32"), (batch, height * width, 1))
                pixel = ops.reshape(ops.take_along_axis(pixels, place, axis=1), (batch, height, width, channels))
                weight = ops.where(inside, ops.multiply(vertical, horizontal), 0)
                weight = ops.expand_dims(ops.cast(weight, x.dtype), axis=-1)
                result = ops.add(result, ops.multiply(weight, ops.subtract(pixel, self.fill)))
        return result


class RandomNoise(Augmentation):
    """``x`` plus normal noise. ``x`` may have any shape.

    Args:
        stddev: standard deviation of the noise.

    >>> tuple(RandomNoise(0.1)(ops.ones((2, 3))).shape)
    (2, 3)
    """

    def __init__(self, stddev: float = 0.1) -> None:
        if stddev < 0:
            raise ValueError(f"{type(self).__name__}: stddev must be >= 0, got {stddev}")
        self.stddev = stddev

    def augment(self, x: Any, key: Any) -> Any:
        _check_floating(self, x)
        noise = ops.random.normal(tuple(x.shape), dtype="float32", device=ops.get_device(x), key=key)
        return ops.add(x, ops.cast(ops.multiply(noise, self.stddev), x.dtype))


class Mixture(Augmentation):
    """Base class of augmentations that mix examples of a batch, and their targets in the same proportions."""

    def __init__(self, alpha: float, num_classes: int | None) -> None:
        if alpha <= 0:
            raise ValueError(f"{type(self).__name__}: alpha must be > 0, got {alpha}")
        self.alpha, self.num_classes = alpha, num_classes

    def forward(self, x: Any, y: Any, *, key: Any = None) -> Any:  # type: ignore[override]
        """Pair of mixed examples and mixed targets; in evaluation mode, ``x`` and ``y`` themselves.

        Args:
            y: floating targets, such as one-hot labels; or integer labels, if ``num_classes`` was given.
            key: random key, with the same result on every engine; by default the next keys of the current stream.
        """
        return _run(self, (x, y), key)

    def augment(self, x: Any, y: Any, key: Any) -> Any:  # type: ignore[override]
        _check_floating(self, x)
        if not ops.is_float(y):
            if self.num_classes is None:
                raise TypeError(
                    f"{type(self).__name__}: y must be floating, or num_classes be given, got {ops.dtype(y).name}"
                )
            y = ops.one_hot(y, self.num_classes)
        first, second, third = _keys(key, 3)
        share = ops.random.beta(
            (x.shape[0],), self.alpha, self.alpha, dtype="float32", device=ops.get_device(x), key=first
        )
        partner = ops.random.permutation(x.shape[0], device=ops.get_device(x), key=second)
        x, share = self.mix(x, ops.take(x, partner, axis=0), share, third)
        return x, _blend(y, ops.take(y, partner, axis=0), share)

    def mix(self, x: Any, other: Any, share: Any, key: Any) -> tuple[Any, Any]:
        """Examples mixed with others, and the share of ``x`` in each of them."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Mixture must define mix, got none")


class MixUp(Mixture):
    """Weighted means of pairs of examples, and of their targets. ``x`` may have any shape (batch, ...).

    The shares are drawn from the beta distribution, for each example.

    Args:
        alpha: both parameters of the beta distribution; smaller values mix less.
        num_classes: number of classes, if the targets are integers; they become one-hot.

    >>> x, y = MixUp(num_classes=3)(ops.ones((2, 4)), [0, 2])
    >>> tuple(x.shape), tuple(y.shape)
    ((2, 4), (2, 3))
    """

    def __init__(self, alpha: float = 0.2, num_classes: int | None = None) -> None:
        super().__init__(alpha, num_classes)

    def mix(self, x: Any, other: Any, share: Any, key: Any) -> tuple[Any, Any]:
        return _blend(x, other, share), share


class CutMix(Mixture):
    """Images with a rectangle from another image, and their targets, mixed in proportion to the areas.

    Args:
        alpha: both parameters of the beta distribution of the part of an image that is kept.
        num_classes: number of classes, if the targets are integers; they become one-hot.

    >>> x, y = CutMix(num_classes=3)(ops.ones((2, 4, 4, 1)), [0, 2])
    >>> tuple(x.shape), tuple(y.shape)
    ((2, 4, 4, 1), (2, 3))
    """

    def __init__(
        self, alpha: float = 1.0, num_classes: int | None = None, *, data_format: str = "channels_last"
    ) -> None:
        super().__init__(alpha, num_classes)
        self.data_format = data_format

    def mix(self, x: Any, other: Any, share: Any, key: Any) -> tuple[Any, Any]:
        rows, columns = self.check(x)
        side = ops.sqrt(ops.subtract(1, share))
        inside: Any = True
        for axis, one in zip((rows, columns), _keys(key, 2), strict=True):
            length = x.shape[axis]
            center = ops.multiply(_uniform(x, one), length)
            half = ops.multiply(side, length / 2)
            shape = [1, 1, 1, 1]
            shape[axis] = length
            place = ops.reshape(ops.arange(length, dtype="float32", device=ops.get_device(x)), shape)
            first, end = (_per_image(ops.floor(f(center, half)), x) for f in (ops.subtract, ops.add))
            inside = ops.logical_and(inside, ops.logical_and(ops.greater_equal(place, first), ops.less(place, end)))
        kept = ops.subtract(1, ops.mean(ops.cast(inside, "float32"), axis=(1, 2, 3)))
        return ops.where(inside, other, x), kept


def _run(layer: Any, tensors: tuple[Any, ...], key: Any) -> Any:
    """Result of the layer for tensors, with their engine active for its draws; the tensors in evaluation mode."""
    tensors = tuple(x if is_tensor(x) else ops.asarray(x) for x in tensors)
    if not layer.training:
        return tensors if len(tensors) > 1 else tensors[0]
    backend = backend_of(unwrap(tensors[0]), host=holds_wrapped(tensors[0])) or current_backend()
    with nullcontext() if backend is current_backend() else activate(backend):
        return layer.augment(*tensors, key)


def _keys(key: Any, count: int) -> list[Any]:
    """Keys of several draws; without a key, those of the stream."""
    return [None] * count if key is None else list(ops.unstack(ops.random.split(key, count)))


def _uniform(x: Any, key: Any) -> Any:
    """A number from 0 to 1 for each image."""
    return ops.random.uniform((x.shape[0],), dtype="float32", device=ops.get_device(x), key=key)


def _per_image(values: Any, x: Any) -> Any:
    """``values``, with axes to broadcast over all but the first axis of ``x``."""
    return ops.reshape(values, (x.shape[0], *(1,) * (len(x.shape) - 1)))


def _blend(x: Any, other: Any, share: Any) -> Any:
    """``share * x + (1 - share) * other``."""
    share = _per_image(ops.cast(share, x.dtype), x)
    return ops.add(ops.multiply(share, x), ops.multiply(ops.subtract(1, share), other))


def _is_within(place: Any, length: int) -> Any:
    return ops.logical_and(ops.greater_equal(place, 0), ops.less(place, length))


def _check_floating(layer: Module, x: Any) -> None:
    if not ops.is_float(x):
        raise TypeError(f"{type(layer).__name__}: x must be floating, got {ops.dtype(x).name}")
