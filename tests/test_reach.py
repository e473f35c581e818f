"""What a transformed function reaches without being given it, and what it draws when it runs again."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from agreement import assert_same, host

import ember_ml
from ember_ml import nn, ops, transform
from ember_ml.backend import Backend
from ember_ml.transform import checkpoint, grad, hessian, value_and_grad, vjp, vmap

X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)


def test_checkpoint_draws_the_same_numbers_again(backend: Backend) -> None:
    """What is computed again for the gradient drops the same elements, and the stream goes on as without it."""
    x = ops.ones((400,))

    def f(x: Any) -> Any:
        return ops.sum(ops.multiply(x, ops.dropout(x, 0.5)))

    found = []
    for function in (f, transform.checkpoint(f)):
        ops.random.set_seed(1)
        alone = value_and_grad(function)(x)
        after = ops.random.uniform(())
        with ops.random.stream(5):
            within = value_and_grad(function)(x), ops.random.uniform(())
        found.append((alone, after, within))
        value, slopes = alone
        assert float(ops.sum(slopes)) == 2 * float(value)
    assert_same(found[1], found[0], tolerance=0.0)


@pytest.mark.parametrize("style", ["module", "method", "partial", "closure"])
def test_checkpoint_sees_what_a_function_reaches(style: str, backend: Backend) -> None:
    """Models and tensors that a function closes over have their gradients, as without the checkpoint."""
    x = ops.asarray(X)
    others = [name for name in ember_ml.get_available_backends() if name not in ("numpy", backend.name)]
    with ember_ml.use_backend((others or ["numpy"])[0]):
        elsewhere, other = ops.ones((1,)), nn.Linear(2, 2)

    class Network(nn.Module):
        def __init__(self) -> None:
            self.body = nn.Sequential(nn.Linear(X.shape[-1], 4), nn.BatchNorm(4), nn.Dropout(0.5))

        def forward(self, x: Any, scale: Any, style: str) -> Any:
            if style == "plain":
                return ops.multiply(self.body(x), scale)
            function = {
                "module": self.body,
                "method": self.body.forward,
                "partial": partial(lambda model, x: model(x), self.body),
                # What it reaches of another engine is no matter.
                "closure": lambda x: (elsewhere, other) and ops.multiply(self.body(x), scale),
            }[style]
            seen = checkpoint(function)(x)
            return seen if style == "closure" else ops.multiply(seen, scale)

    found = []
    for way in ("plain", style):
        ops.random.set_seed(3)
        model = Network()
        loss = lambda model, scale: ops.sum(ops.exp(model(x, scale, way)))  # noqa: B023, E731 - called at once
        value, slopes = value_and_grad(loss, argnums=(0, 1))(model, ops.asarray([2.0]))
        found.append((value, slopes, model.tensors()))
    assert_same(found[1], found[0], tolerance=1e-5)


@pytest.mark.parametrize("style", ["module", "method", "closure", "global"])
def test_compiled_code_sees_what_a_function_reaches(style: str, backend: Backend) -> None:
    """Models and tensors that a function closes over are inputs of its program, not what they were when it was made."""
    # torch takes long, and sees them by itself.
    is_compiled = backend.name != "torch" or style == "module"
    model, factor = nn.Linear(2, 1, weight_init=1.0), ops.asarray(1.0)
    functions = {
        "module": model,
        "method": model.forward,
        "closure": lambda x: ops.multiply(model(x), factor),
        "global": eval("lambda x: model(x)", {"model": model}),
    }
    run = transform.compile(functions[style]) if is_compiled else functions[style]
    x = ops.ones((1, 2))
    assert run(x).tolist() == [[2.0]]
    model.weight = ops.multiply(model.weight, 10.0)
    assert run(x).tolist() == [[20.0]]
    if style == "closure":
        factor = ops.asarray(3.0)
        assert run(x).tolist() == [[60.0]]
    if backend.name != "torch":
        slopes = grad(lambda model: ops.sum(transform.compile(lambda x: model(x))(x)))(model)
        assert slopes["weight"].tolist() == [[1.0], [1.0]]


def test_a_function_that_runs_again_draws_the_same_numbers(backend: Backend) -> None:
    """Engines that run a function more than once, for a gradient or for slices, are no different from others."""
    x = ops.ones((30,))

    def f(x: Any) -> Any:
        return ops.multiply(x, ops.dropout(x, 0.5))

    def total(x: Any) -> Any:
        return ops.sum(f(x))

    ops.random.set_seed(1)
    expected, after = host(f(x)), float(ops.random.uniform(()))

    def pulled() -> Any:
        value, pull = vjp(total, x)
        return float(value), host(pull(ops.ones(()))[0]), host(pull(ops.ones(()))[0])

    def check(name: str, found: Any, wanted: Any) -> None:
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=name)
        assert float(ops.random.uniform(())) == after, name

    ops.random.set_seed(1)
    value, *slopes = pulled()
    check("vjp", [value, *(slope.sum() for slope in slopes)], [expected.sum()] + [2 * expected.sum()] * 2)
    ops.random.set_seed(1)
    check("jacobian", host(transform.jacobian(f)(x)), np.diag(2 * expected))
    ops.random.set_seed(1)
    check("hessian", host(hessian(total)(x)), np.diag(2 * expected))
    ops.random.set_seed(1)
    check("vmap", host(vmap(f)(ops.ones((4, 30)))), [expected] * 4)
    ops.random.set_seed(1)
    check("vmap of grad", host(vmap(grad(total))(ops.ones((4, 30)))), [2 * expected] * 4)
    with ops.random.stream(7):
        value, pull = vjp(total, x)
        drawn = float(ops.random.uniform(()))
    assert float(ops.sum(pull(ops.ones(()))[0])) == 2 * float(value)
    with ops.random.stream(7):
        total(x)
        assert float(ops.random.uniform(())) == drawn
