"""``checkpoint=True`` of transformer stacks: the same gradients, of layers that are computed twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops, transform
from ember_ml.backend import Backend


class Counted(nn.TransformerEncoderLayer):
    calls = 0

    def forward(self, x: Any, **options: Any) -> Any:
        type(self).calls += 1
        return super().forward(x, **options)


class Stack(nn.TransformerEncoder):
    layer = Counted


def gradients(stack: type[Any], *inputs: Any, checkpoint: bool, precision: str = "fp32", **options: Any) -> Any:
    ops.random.set_seed(0)
    model = stack(3, 8, 2, 16, dropout=0.25, norm_first=True, checkpoint=checkpoint)
    given = [ops.asarray(x, dtype="float32") for x in inputs]
    policy = nn.Precision(precision)
    return transform.value_and_grad(lambda model: ops.sum(ops.square(policy.apply(model, *given, **options))))(model)


DRAWN = np.random.default_rng(0).standard_normal((2, 2, 4, 8))


@pytest.mark.parametrize("precision", ["fp32", "bf16-mixed"])
def test_gradients_are_equal_and_layers_are_computed_twice(backend: Backend, precision: str) -> None:
    """With the same random numbers for dropout."""
    found = []
    for checkpoint in (False, True):
        Counted.calls = 0
        found.append(gradients(Stack, DRAWN[0], checkpoint=checkpoint, precision=precision, is_causal=True))
        # JAX traces a layer once, and computes it twice.
        assert Counted.calls == (6 if checkpoint and backend.name != "jax" else 3)
    (value, expected), (other, grads) = found
    assert float(value) == float(other)
    for path, x in expected.items():
        np.testing.assert_allclose(ops.to_numpy(grads[path]), ops.to_numpy(x), rtol=1e-5, atol=1e-6)


def test_a_decoder(backend: Backend) -> None:
    (value, expected), (other, grads) = (
        gradients(nn.TransformerDecoder, *DRAWN, checkpoint=checkpoint) for checkpoint in (False, True)
    )
    assert float(value) == float(other)
    for path, x in expected.items():
        np.testing.assert_allclose(ops.to_numpy(grads[path]), ops.to_numpy(x), rtol=1e-5, atol=1e-6)


def test_nothing_is_computed_twice_without_a_gradient(backend: Backend) -> None:
    model = Stack(3, 8, 2, 16, checkpoint=True)
    Counted.calls = 0
    model(ops.ones((1, 2, 8)))
    assert Counted.calls == 3
    assert "checkpoint=True" in repr(model)
