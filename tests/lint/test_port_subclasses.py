"""A port to EmberTensors of subclasses of NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import programs

from ember_ml.backend import Backend

PROGRAM = """
    import numpy as np


    class Vector(np.ndarray):
        def __new__(cls, values):
            made = np.array(values, dtype=np.float64)
            made = np.exp(made)
            return made.view(cls)

        def doubled(self):
            product = self * 2
            return product.view(type(self))

        def other(self):
            return np.zeros(3).view(Vector)


    def bits(x):
        return np.asarray(x, dtype=np.float64).view(np.int64)
"""


def ported() -> str:
    return programs.ported(PROGRAM).after.decode()


def test_instances_stay_arrays(backend: Backend) -> None:
    space: dict[str, Any] = {}
    exec(ported(), space)
    vector = space["Vector"]([0.0, 0.0])
    assert type(vector) is type(vector.doubled()) is type(vector.other()) is space["Vector"]
    assert isinstance(vector, np.ndarray)
    assert vector.doubled().tolist() == [2.0, 2.0]
    assert space["bits"]([1.0]).tolist() == np.asarray([1.0]).view(np.int64).tolist()


def test_what_is_rewritten() -> None:
    text = ported()
    assert "made = tensor.exp(made)" in text
    assert "return np.asarray(made).view(cls)" in text
    assert "return np.asarray(product).view(type(self))" in text
    assert "return np.zeros(3).view(Vector)" in text
