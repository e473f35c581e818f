"""What every rank computes and compares with NumPy: ``ember-ml launch -n 2 tests/distributed_cases.py kill``.

Each rank prints a line of JSON for every case. Then, by the argument, the last rank ends itself (``kill``) or does not
come to a collective (``hang``), and the others must report it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import ember_ml
from ember_ml import distributed, ops
from ember_ml.backend import load
from ember_ml.dispatch import operation_of
from ember_ml.distributed.buckets import Overlap
from ember_ml.errors import DistributedError, UnsupportedError
from ember_ml.nn.tensor import EmberTensor
from ember_ml.ops import collectives

RANK, SIZE = distributed.rank(), distributed.size()

# The others wait this long for a rank that does not come.
TIMEOUT = 6.0

# The rank that sends, that makes other calls, and that ends.
ROOT = SIZE - 1


def values(shape: tuple[int, ...], dtype: str = "float32", rank: int = RANK) -> Any:
    """Small values of one rank, which differ by rank and element, and whose sums every dtype holds."""
    host = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    found = (np.arange(int(np.prod(shape))).reshape(shape) * 3 + rank * 2) % 7
    return (found % 2 == rank % 2 if dtype == "bool" else found).astype(host)


def expected(name: str, shape: tuple[int, ...], dtype: str) -> Any:
    """Result of a collective on this rank, from the values of all."""
    every = [values(shape, dtype, rank) for rank in range(SIZE)]
    own = slice(RANK * shape[0] // SIZE, (RANK + 1) * shape[0] // SIZE) if shape else None
    total = sum(x.astype(np.complex128) for x in every)
    return {
        "all_sum": lambda: total,
        "all_mean": lambda: total / SIZE,
        "all_max": lambda: np.max(every, axis=0),
        "all_gather": lambda: np.concatenate([np.atleast_1d(x) for x in every]),
        "broadcast": lambda: every[ROOT],
        "scatter": lambda: every[ROOT][own],
        "reduce_scatter": lambda: total[own],
    }[name]()


NAMES = ("all_sum", "all_mean", "all_max", "all_gather", "broadcast", "scatter", "reduce_scatter")
ROOTED = ("broadcast", "scatter")


def call_of(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(collectives, name)
    return found


def call(name: str, x: Any) -> Any:
    return call_of(name)(x, *([ROOT] if name in ROOTED else []))


def compare(name: str, shape: tuple[int, ...], dtype: str) -> None:
    x = ops.asarray(values(shape, dtype))
    result = call(name, x)
    found, wanted = ops.to_numpy(result), expected(name, shape, dtype)
    is_float = name == "all_mean" and "float" not in dtype and "complex" not in dtype
    assert ops.dtype(result) == ("float32" if is_float else dtype), (name, dtype, ops.dtype(result))
    assert found.shape == np.shape(wanted), (name, dtype, found.shape)
    rough = 1e-2 if dtype in ("float16", "bfloat16") else 1e-6
    np.testing.assert_allclose(found.astype(np.complex128), wanted.astype(np.complex128), rough, 0, err_msg=name)
    np.testing.assert_array_equal(ops.to_numpy(x), values(shape, dtype))


def case_every_dtype() -> None:
    """All of them on two ranks; JAX compiles each, so more ranks take every other one."""
    dtypes = list(load(ember_ml.get_backend()).dtypes)[:: SIZE - 1]
    pairs = [(name, dtype) for dtype in dtypes for name in NAMES if dtype in operation_of(call_of(name)).dtypes]
    assert len(pairs) > 100 / SIZE
    for name, dtype in pairs:
        compare(name, (2 * SIZE, 3), dtype)


def case_every_shape() -> None:
    for name in NAMES:
        for shape in ((), (0,), (0, 2), (SIZE,), (SIZE, 0), (SIZE, 2, 2)):
            if shape or "scatter" not in name:
                compare(name, shape, "float32")


def case_views() -> None:
    """Tensors that are not contiguous."""
    whole = values((3, 2 * SIZE))
    x = ops.transpose(ops.asarray(whole))
    for name in ("all_sum", "all_gather", "broadcast", "scatter", "reduce_scatter"):
        np.testing.assert_array_equal(
            ops.to_numpy(call(name, x)), ops.to_numpy(call(name, ops.asarray(whole.T.copy())))
        )


def case_nan_is_the_largest() -> None:
    x = ops.asarray(np.array([float("nan") if RANK == 0 else 1.0, -0.5 * RANK], np.float32))
    found = ops.to_numpy(distributed.all_max(x))
    assert np.isnan(found[0])
    assert found[1] == 0.0


def case_trees() -> None:
    tree: Any = {"a": [ops.asarray(values((2,))), None], "b": (float(RANK), EmberTensor([1.0 + RANK]))}
    found = distributed.all_sum(tree)
    assert found["a"][1] is None
    assert isinstance(found["b"], tuple)
    assert isinstance(found["b"][1], EmberTensor)
    np.testing.assert_array_equal(ops.to_numpy(found["a"][0]), expected("all_sum", (2,), "float32").real)
    assert found["b"][0].item() == sum(range(SIZE))
    assert found["b"][1].tolist() == [sum(range(1, SIZE + 1))]
    assert distributed.broadcast({"rank": RANK}, root=1)["rank"].item() == 1
    assert distributed.all_gather(RANK).tolist() == list(range(SIZE))
    assert distributed.scatter([ops.arange(SIZE)])[0].tolist() == [RANK]


def case_gradients() -> None:
    """Of the sum over ranks of rank + 1 times the sum of the result."""
    every = sum(range(1, SIZE + 1))
    one = float(RANK == ROOT)
    wanted = {
        "all_sum": [every] * SIZE,
        "all_mean": [every / SIZE] * SIZE,
        "all_max": [every * one] * SIZE,
        "all_gather": [every] * SIZE,
        "broadcast": [every * one] * SIZE,
        "scatter": [(i + 1) * one for i in range(SIZE)],
        "reduce_scatter": [i + 1.0 for i in range(SIZE)],
    }
    for name in NAMES:
        gradient = ember_ml.grad(lambda x, name=name: ops.sum(call(name, x)) * (RANK + 1))
        found = ops.to_numpy(gradient(ops.ones(SIZE) * (RANK + 1)))
        np.testing.assert_allclose(found, wanted[name], 1e-6, err_msg=name)


def case_average_gradients() -> None:
    tree = {
        "weight": ops.asarray(values((5, 3))),
        "half": [ops.asarray(values((4,), "float16")), None],
        "bias": EmberTensor(values(())),
        "none": ops.zeros((0,)),
    }
    for size in (1, 24, None):
        found = distributed.average_gradients(tree, bucket_bytes=size)
        assert found["half"][1] is None
        assert isinstance(found["bias"], EmberTensor)
        for x, shape, dtype in (
            (found["weight"], (5, 3), "float32"),
            (found["half"][0], (4,), "float16"),
            (found["bias"], (), "float32"),
            (found["none"], (0,), "float32"),
        ):
            assert ops.dtype(x) == dtype
            np.testing.assert_allclose(ops.to_numpy(x), expected("all_mean", shape, dtype).real, 1e-2)
    assert distributed.average_gradients({"a": None}) == {"a": None}
    raises(TypeError, "floating", lambda: distributed.average_gradients([ops.arange(3)]))


def case_gradients_averaged_during_the_backward_pass() -> None:
    """Of parameters that are used twice, once, through a zero gradient, and not at all; in several buckets."""
    assert Overlap.is_available() == (ember_ml.get_backend() == "torch")
    if not Overlap.is_available():
        return
    names = {"twice": "float32", "once": "float64", "sign": "float32", "unused": "float32", "large": "float32"}
    shapes = {name: (600, 500) if name == "large" else (2, 3) for name in names}
    parameters = {name: ops.asarray(values(shapes[name], dtype)) for name, dtype in names.items()}
    begun: list[Overlap] = []

    def loss_of(parameters: Any, is_overlapped: bool) -> Any:
        twice = ops.sum(ops.square(parameters["twice"]) * parameters["twice"]) + ops.sum(ops.sign(parameters["sign"]))
        rest = ops.sum(ops.square(ops.cast(parameters["once"], "float32"))) + ops.sum(ops.square(parameters["large"]))
        loss = (twice + rest) * (RANK + 1)
        if is_overlapped:
            begun.append(Overlap(parameters, {"loss": loss, "wrapped": EmberTensor([float(RANK)])}))
        return loss

    value, plain = ember_ml.value_and_grad(loss_of)(parameters, False)
    wanted = distributed.average_gradients({"loss": value, **plain})
    for _ in range(3):
        _, gradients = ember_ml.value_and_grad(loss_of)(parameters, True)
        found, others = begun.pop().finish(gradients)
        assert found.keys() == parameters.keys()
        for name, x in {**found, "loss": others["loss"]}.items():
            assert ops.dtype(x) == ops.dtype(wanted[name])
            np.testing.assert_allclose(ops.to_numpy(x), ops.to_numpy(wanted[name]), 1e-6, err_msg=name)
        assert others["wrapped"].tolist() == [(SIZE - 1) / 2]

    def other_call() -> Any:
        if RANK == ROOT:
            return distributed.all_sum(ops.ones(2))
        return ember_ml.value_and_grad(loss_of)(parameters, True)

    error = raises(DistributedError, "all ranks must make the same call", other_call)
    assert f"all_sum(float32[2]) on rank {ROOT}" in error, error
    assert distributed.all_sum(1).item() == SIZE


def case_means_do_not_change_later() -> None:
    """Memory of means is used again once nothing refers to it. Multiples of SIZE have means without rounding."""
    held = [distributed.average_gradients([ops.full((600, 500), float(SIZE * (RANK + i)))])[0] for i in range(3)]
    view = distributed.average_gradients([ops.full((600, 500), float(SIZE * RANK))])[0][:1]
    for _ in range(4):
        distributed.average_gradients([ops.zeros((600, 500))])
    for i, x in enumerate(held):
        assert set(ops.to_numpy(x).ravel()) == {SIZE * ((SIZE - 1) / 2 + i)}
    assert set(ops.to_numpy(view).ravel()) == {SIZE * (SIZE - 1) / 2}


def case_compiled() -> None:
    if SIZE > 2 and ember_ml.get_backend() == "torch":
        return  # its compiler takes seconds, and the case of two ranks shows the same
    double = ember_ml.compile(lambda x: collectives.all_sum(x) * 2)
    if ember_ml.get_backend() == "jax":
        raises(UnsupportedError, "outside of compiled functions", lambda: double(ops.ones(2)))
    else:
        for _ in range(3):
            assert double(ops.ones(2)).tolist() == [2.0 * SIZE] * 2


def case_another_call_is_named() -> None:
    """On all ranks, and later collectives work."""
    last = f"on rank {ROOT}"
    others = f"on rank {', '.join(map(str, range(ROOT)))}"
    for wrong, right in (
        (lambda: distributed.all_sum(ops.ones(3)), "all_sum(float32[3])"),
        (lambda: distributed.all_sum(ops.ones((2, 1))), "all_sum(float32[2, 1])"),
        (lambda: distributed.all_sum(ops.ones(2, dtype="int32")), "all_sum(int32[2])"),
        (lambda: distributed.all_max(ops.ones(2)), "all_max(float32[2])"),
        (distributed.barrier, "barrier()"),
        (lambda: distributed.average_gradients([ops.ones(2)]), "average_gradients(1 tensors"),
    ):
        run = wrong if RANK == ROOT else lambda: distributed.all_sum(ops.ones(2))
        error = raises(DistributedError, "all ranks must make the same call", run)
        assert f"all_sum(float32[2]) {others}" in error, error
        assert right in error, error
        assert last in error, error
    distributed.set_step(7)
    assert "at step 7" in raises(DistributedError, "", lambda: distributed.all_sum(ops.ones(RANK + 1)))
    distributed.set_step(None)
    assert distributed.all_sum(1).item() == SIZE


def case_wrong_arguments() -> None:
    raises(ValueError, "root must be a rank", lambda: distributed.broadcast(ops.ones(2), root=SIZE))
    raises(ValueError, "divisible", lambda: distributed.scatter(ops.ones(SIZE + 1)))
    raises(ValueError, "divisible", lambda: distributed.reduce_scatter(ops.ones(())))
    raises(TypeError, "numeric", lambda: distributed.all_sum(ops.asarray([True])))
    raises(ValueError, "bucket_bytes", lambda: distributed.average_gradients([ops.ones(1)], bucket_bytes=0))
    raises(ValueError, "timeout", lambda: distributed.init(timeout=0))
    raises(DistributedError, "before the first collective", lambda: distributed.init(timeout=TIMEOUT + 1))


def case_init_again() -> None:
    distributed.init()
    distributed.init(timeout=TIMEOUT, checked=False)
    assert distributed.all_sum(1).item() == SIZE
    distributed.init(checked=True)
    assert (distributed.rank(), distributed.local_rank()) == (RANK, RANK)


def case_barrier_waits() -> None:
    distributed.barrier()
    begun = time.monotonic()
    if RANK == 0:
        time.sleep(0.3)
    distributed.barrier()
    assert time.monotonic() - begun > 0.25


def raises(kind: type[Exception], text: str, function: Callable[[], Any]) -> str:
    """Message of the error that ``function`` raises, which must be of a class and hold a text."""
    try:
        function()
    except kind as error:
        message = str(error)
    else:
        raise AssertionError(f"{kind.__name__} must be raised, got nothing")
    assert text in message, message
    return message


CASES = {name.removeprefix("case_"): value for name, value in list(globals().items()) if name.startswith("case_")}


def outcomes() -> Iterator[tuple[str, str]]:
    for name, case in CASES.items():
        try:
            case()
        except Exception:
            yield name, traceback.format_exc()
        else:
            yield name, ""


def main(ending: str) -> None:
    distributed.init(timeout=TIMEOUT)
    for name, problem in outcomes():
        print(json.dumps({"rank": RANK, "case": name, "problem": problem}), flush=True)
    distributed.set_step(11)
    distributed.barrier()
    if RANK == ROOT and ending == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if RANK == ROOT and ending == "hang":
        time.sleep(600)
    distributed.all_sum(ops.ones(3))


if __name__ == "__main__":
    main(sys.argv[1])
