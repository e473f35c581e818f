"""What users of NumPy, torch and Keras expect of tensors, modules and layers, on every engine."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, transform
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


class Holder(nn.Module):
    """A module that keeps whatever it is given in an attribute."""

    def __init__(self, value: Any) -> None:
        self.held = value

    def forward(self, x: Any) -> Any:
        return ops.multiply(x, self.held)


class TestUnregisteredAttributes:
    """A tensor that is neither parameter nor buffer, and a module of another library, are reported once."""

    @pytest.fixture
    def holder(self) -> type[Holder]:
        return type("Holder", (Holder,), {})

    @pytest.mark.parametrize("wrapped", [False, True])
    def test_a_floating_tensor_is_reported_where_it_is_assigned(
        self, holder: Any, wrapped: bool, backend: Backend
    ) -> None:
        value: Any = ops.ones((2, 3))
        module = nn.Module()
        with pytest.warns(UserWarning, match=r"Holder: a tensor .* Parameter\(.* Buffer\(.* float32\[2, 3\] in 'held'"):
            module = holder(EmberTensor(value) if wrapped else value)
        with pytest.warns(UserWarning, match="in 'later'") as caught:
            module.later = value
        assert [warning.filename for warning in caught] == [__file__]
        assert module.tensors() == {}
        # Once for a class and a name.
        module.later = value
        holder(value)

    def test_what_is_registered_or_no_floating_tensor_is_not(self, holder: Any, backend: Backend) -> None:
        module = holder(nn.Buffer(ops.ones(2), persistent=False))
        module.held = ops.zeros(2)
        for value in (ops.asarray([1, 2]), ops.asarray([True]), np.array(["a"]), 1.5, None, print, object(), X.shape):
            holder(value)
        assert list(module.tensors()) == ["held"]

    def test_compiled_code_is_not(self, holder: Any, backend: Backend) -> None:
        if backend.name != "torch":
            pytest.skip("only torch's compiler says that it traces")

        def run(x: Any) -> Any:
            module = holder(nn.Parameter(ops.ones(2)))
            module.last = ops.multiply(x, 2.0)
            return module.last

        np.testing.assert_array_equal(host(transform.compile(run)(ops.ones(2))), [2.0, 2.0])

    def test_a_module_of_torch_is(self, holder: Any) -> None:
        torch = pytest.importorskip("torch")
        with pytest.warns(UserWarning, match=r"Holder: a module .* got Linear of torch\.nn in 'held'.*load_state_dict"):
            holder(torch.nn.Linear(2, 2))

    def test_a_module_of_mlx_is(self, holder: Any) -> None:
        pytest.importorskip("mlx.core")
        mlx_nn = pytest.importorskip("mlx.nn")
        with pytest.warns(UserWarning, match=r"Holder: a module .* got Linear of mlx\.nn in 'held'"):
            holder(mlx_nn.Linear(2, 2))
