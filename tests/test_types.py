"""The types that users annotate with: what checkers see of a tensor is what every engine's tensor has."""

import operator

import pytest

from ember_ml import ops
from ember_ml.nn.tensor import EmberTensor
from ember_ml.types import Tensor

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne")
BITS = ("and_", "or_", "xor", "lshift", "rshift")
UNARY = ("neg", "pos", "abs")


def test_tensors_of_every_engine_are_tensors(backend):
    for x in (ops.ones((2, 3)), ops.ones(2, dtype="bool"), ops.asarray(1), EmberTensor([1.0])):
        assert isinstance(x, Tensor)


@pytest.mark.parametrize("name", BINARY + BITS + UNARY)
def test_checkers_see_the_operators_of_tensors(name, backend):
    method = f"__{name.rstrip('_')}__"
    assert method in vars(Tensor), f"a checker refuses {method} of ember_ml.types.Tensor"
    x = ops.asarray([1, 2], dtype="int32" if name in BITS else "float32")
    result = getattr(operator, name)(*(x, x)[: 1 if name in UNARY else 2])
    assert result.shape == x.shape
    if name in BINARY[:7]:
        assert getattr(operator, name)(2, x).shape == x.shape


def test_a_number_of_a_tensor_is_an_item(backend):
    assert "item" in vars(Tensor)
    assert ops.asarray(3.0).item() == 3.0
