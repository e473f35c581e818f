"""``np.add.outer`` and its kin with EmberTensors."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml.backend import Backend
from ember_ml.nn.tensor import EmberTensor, asarray


@pytest.mark.parametrize("ufunc", [np.add, np.divide, np.maximum])
def test_outer(backend: Backend, ufunc: np.ufunc) -> None:
    x, y = [1.0, 2.0], [[1.0, 4.0, 8.0]]
    expected = ufunc.outer(np.asarray(x), np.asarray(y)).tolist()
    for left, right in ((asarray(x), asarray(y)), (asarray(x), np.asarray(y, dtype="float32")), (x, asarray(y))):
        found = ufunc.outer(left, right)
        assert isinstance(found, EmberTensor)
        assert found.tolist() == expected


def test_other_methods_are_refused(backend: Backend) -> None:
    with pytest.raises(TypeError, match=r"numpy\.add\.accumulate: .* x\.numpy\(\) is an array for it"):
        np.add.accumulate(asarray([1.0]))


@pytest.mark.parametrize(
    ("ufunc", "operands", "statement"),
    [
        (np.add, [1.0], "x = tensor.index_add(x, i, v)"),
        (np.subtract, [1.0], "x = tensor.index_add(x, i, -v)"),
        (np.maximum, [1.0], "x = tensor.index_update(x, i, tensor.maximum(x[i], v)) if no index repeats"),
        (np.negative, [], "x = tensor.index_update(x, i, tensor.negative(x[i])) if no index repeats"),
    ],
)
def test_changes_at_indices_name_the_operation(ufunc: np.ufunc, operands: list[float], statement: str) -> None:
    """``x.numpy()`` is a copy: NumPy would change it, and not the tensor."""
    with pytest.raises(TypeError) as raised:
        ufunc.at(asarray([1.0, 2.0]), [0, 0], *operands)
    message = f"numpy.{ufunc.__name__}.at: the array to change must be NumPy's, got an EmberTensor; write {statement}"
    assert str(raised.value).splitlines()[0] == message


def test_arrays_are_changed_at_indices_that_are_not_tensors(backend: Backend) -> None:
    with pytest.raises(TypeError, match=r"numpy\.add\.at: .* x\.numpy\(\) is an array for it"):
        np.add.at(np.zeros(2), asarray([0, 0]), 1.0)
