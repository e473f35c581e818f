"""What the package promises, on the engine that EMBER_ML_BACKEND names."""

import math

import pytest

from ember_ml import ops as portable
from legacy import nn, ops


def tensor(values):
    return portable.asarray(values, dtype="float32")


def near(result, wanted):
    return result.tolist() == pytest.approx(wanted, rel=1e-5)


def test_arithmetic():
    assert near(ops.add(tensor([1, 2]), tensor([3, 4])), [4, 6])
    assert near(ops.divide(tensor([1, 2]), tensor([2, 4])), [0.5, 0.5])
    assert near(ops.clip(tensor([-1, 0.5, 2])), [0, 0.5, 1])
    assert near(ops.clip(tensor([-1, 0.5, 2]), high=0.25), [0, 0.25, 0.25])


def test_divisors_stay_away_from_zero():
    assert near(ops.divide(tensor([1.0]), tensor([0.0]), tiny=0.5), [2.0])


def test_logsumexp_is_finite():
    assert near(ops.logsumexp(tensor([1000.0, 1000.0])), 1000.0 + math.log(2))
    with pytest.raises(ValueError, match="out of range"):
        ops.logsumexp(tensor([1.0]), 3)


def test_statistics():
    x = tensor([[1, 2], [3, 6]])
    assert near(ops.mean(x), [2, 4])
    assert near(ops.variance(x), [1, 4])
    assert ops.standardize(x).tolist() == [pytest.approx([-1, -1]), pytest.approx([1, 1])]


def test_activations():
    assert near(ops.relu(tensor([-1, 2])), [0, 2])
    assert near(ops.softmax(tensor([0, 0])), [0.5, 0.5])
    assert near(ops.softmax(tensor([0, 0]), axis=0), [0.5, 0.5])


def test_swish():
    try:
        result = ops.swish(tensor([0.0, 1.0]))
    except NotImplementedError:
        pytest.skip("swish was never written for MLX")
    else:
        assert near(result, [0, 1 / (1 + math.exp(-1))])


def test_layers():
    layer = nn.Linear(tensor([[1.0], [-1.0]]), tensor([0.5]))
    assert layer(tensor([[1.0, 0.0], [0.0, 3.0]])).tolist() == [[1.5], [0.0]]
