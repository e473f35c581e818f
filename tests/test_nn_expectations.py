"""What users of NumPy, torch and Keras expect of tensors, modules and layers, on every engine."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.nn.tensor import EmberTensor, wrap
from ember_ml.testing.comparison import host

X = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]], np.float32)


class TestNumpyArraysAsData:
    """A NumPy array is data for the active engine, as a list is."""

    @pytest.mark.parametrize("data", [X, X.astype(">f4"), np.float32(1.5), X[::-1]], ids=["c", "swapped", "0d", "view"])
    def test_they_go_to_the_active_engine(self, backend: Backend, data: Any) -> None:
        x = EmberTensor(data)
        assert x.backend == EmberTensor(data.tolist()).backend == backend.name
        assert (x.dtype, x.shape) == ("float32", data.shape)
        np.testing.assert_array_equal(x.numpy(), data)

    def test_they_compute_with_tensors_of_the_active_engine(self, backend: Backend) -> None:
        np.testing.assert_array_equal((EmberTensor(X) + ops.ones((2, 3))).numpy(), X + 1)
        np.testing.assert_array_equal((EmberTensor(X) * EmberTensor([1.0, 2.0, 3.0])).numpy(), X * [1.0, 2.0, 3.0])

    def test_numpy_shares_its_memory(self) -> None:
        with ember_ml.use_backend("numpy"):
            assert EmberTensor(X).native is X

    def test_wrap_leaves_them_on_numpy(self, backend: Backend) -> None:
        assert wrap(X).backend == "numpy"
        assert wrap(X).native is X

    def test_errors_advise_the_active_engine(self, backend: Backend) -> None:
        other = next(name for name in ember_ml.get_available_backends() if name != backend.name)
        x, y = EmberTensor(X), EmberTensor(X).to_backend(other)
        for pair in ((x, y), (y, x)):
            with pytest.raises(TypeError, match=f"add: tensors must be of one engine.*to_backend\\('{backend.name}'"):
                ops.add(*pair)

    def test_pickles_keep_the_engine_of_a_model(self, backend: Backend) -> None:
        model = nn.Linear(3, 2).to_backend("numpy")
        with ember_ml.use_backend(backend.name):
            assert pickle.loads(pickle.dumps(model)).backend == "numpy"
