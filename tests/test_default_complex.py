"""The dtype of a Python complex number with tensors of integers follows the default float, as that of a float does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.errors import UnsupportedError
from ember_ml.nn import tensor


@pytest.fixture
def wide() -> Iterator[None]:
    before = ops.get_default_dtype()
    ops.set_default_dtype("float64")
    try:
        yield
    finally:
        ops.set_default_dtype(before)


@pytest.mark.parametrize("values", [[1, 2], [True, False]])
def test_complex_numbers_have_the_default_width(backend: Backend, wide: None, values: list[int]) -> None:
    for x in (tensor.asarray(values), ops.asarray(values)):
        try:
            found = 2j * x if isinstance(x, tensor.EmberTensor) else ops.multiply(x, 2j)
        except UnsupportedError as error:
            assert "complex128" in str(error)  # noqa: PT017 - an engine without it must name it
        else:
            assert ops.dtype(found) == "complex128"


def test_the_default_is_narrow(backend: Backend) -> None:
    assert ops.dtype(ops.multiply(tensor.asarray([1, 2]), 2j)) == "complex64"
    assert ops.dtype(ops.multiply(tensor.asarray([1.0], dtype="float32"), 2j)) == "complex64"
