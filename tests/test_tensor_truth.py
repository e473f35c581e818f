"""The truth value of an EmberTensor, which is NumPy's."""

from __future__ import annotations

import pytest

from ember_ml.backend import Backend
from ember_ml.nn import tensor


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_element_has_a_truth_value(backend: Backend, shape: tuple[int, ...]) -> None:
    assert bool(tensor.ones(shape)) is True
    assert bool(tensor.zeros(shape)) is False


@pytest.mark.parametrize("shape", [(0,), (2,), (1, 2)])
def test_several_or_no_elements_have_none(backend: Backend, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"bool: the tensor must have one element, got shape"):
        bool(tensor.ones(shape))
