"""``x.flat`` of an EmberTensor, compared with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml.backend import Backend
from ember_ml.nn import tensor

ROWS = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize("key", [0, -1, slice(None, None, 4), [1, 3]])
def test_elements_are_read_and_assigned(backend: Backend, key: Any) -> None:
    x, expected = tensor.asarray(ROWS), np.asarray(ROWS)
    assert x.flat[key].tolist() == expected.flat[key].tolist()
    x.flat[key] = expected.flat[key] = 9.0
    assert x.tolist() == expected.tolist()


def test_elements_are_a_sequence(backend: Backend) -> None:
    x = tensor.asarray(ROWS)
    assert len(x.flat) == 6
    assert [element.item() for element in x.flat] == [1, 2, 3, 4, 5, 6]
    assert np.asarray(x.flat).tolist() == [1, 2, 3, 4, 5, 6]
    assert np.asarray(tensor.asarray(2.0).flat).tolist() == [2]


def test_an_index_out_of_range_raises(backend: Backend) -> None:
    x = tensor.asarray(ROWS)
    with pytest.raises(IndexError):
        x.flat[6]
