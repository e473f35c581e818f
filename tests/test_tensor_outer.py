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
    with pytest.raises(TypeError, match=r"numpy\.add\.at: arguments must not be EmberTensors"):
        np.add.at(asarray([1.0]), [0], 1.0)
