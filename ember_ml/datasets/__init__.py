"""Small data sets that come with the package."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import NamedTuple

from ember_ml import ops
from ember_ml.types import Tensor


class Digits(NamedTuple):
    """Handwritten digits: images of 8 by 8 values from 0 to 1, and which digit each shows."""

    images: Tensor
    labels: Tensor


def digits() -> Digits:
    """The 1797 images of the UCI test set of handwritten digits, as tensors of the active engine.

    E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998,
    https://doi.org/10.24432/C50P49, under the Creative Commons Attribution 4.0 licence.

    >>> images, labels = digits()
    >>> tuple(images.shape), labels[:5].tolist()
    ((1797, 8, 8), [0, 1, 2, 3, 4])
    """
    with as_file(files(__name__) / "digits.npz") as path:
        found = ops.load(path)
    return Digits(ops.divide(ops.cast(found["images"], "float32"), 16.0), ops.cast(found["labels"], "int64"))
