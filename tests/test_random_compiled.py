"""Random bits in compiled code: one operator of torch per draw, shared kernels on MLX, the same bits as everywhere."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exceptions import HAS_OLD_COMPILER, OLD_COMPILER

import ember_ml
from ember_ml import backend as backends
from ember_ml import checkpoint, ops, value_and_grad, vmap
from ember_ml.backend import Backend
from ember_ml.ops import random

SEEDS = (3, 2**63 + 5)
# First blocks: of a draw, beyond 32 bits, and of derived keys, whose numbers do not fit into int64.
STARTS = (0, 3, 2**32 - 5, 2**33 + 1, 2**40, 2**63 + 7, 7 << 61)


def host(x: Any) -> np.ndarray:
    return np.asarray(ops.to_numpy(x))


def compiled(backend: Backend, function: Callable[..., Any]) -> Callable[..., Any]:
    if backend.name == "torch":
        import torch

        torch._dynamo.reset()
        return torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=False)
    if backend.name == "mlx":
        import mlx.core as mx

        return mx.compile(function)
    return function


def on_numpy(function: Callable[..., Any], *args: Any) -> Any:
    with ember_ml.use_backend("numpy"):
        return function(*args)


def derived(key: Any) -> Any:
    """Bits of keys that are derived in every way."""
    parts = random.split(key, 3)
    keys = [parts[2], random.fold_in(parts[0], 2**35 + 1), random.fold_in(key, ops.asarray(2**35 + 1))]
    return ops.stack([random.bits(5, key=one) for one in keys])


def test_keys_that_compiled_code_derives(backend: Backend) -> None:
    draw = compiled(backend, derived)
    for seed in SEEDS:
        np.testing.assert_array_equal(host(draw(random.key(seed))), on_numpy(lambda s=seed: derived(random.key(s))))


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_that_a_transform_traces_are_folded_into_known_keys(backend: Backend, seed: int) -> None:
    numbers = [0, 5, 2**35 + 1]
    expected = [on_numpy(random.fold_in, seed, number) for number in numbers]
    result = vmap(lambda number: random.fold_in(seed, number))(ops.asarray(numbers, dtype="int64"))
    np.testing.assert_array_equal(host(result), expected)
    fold = compiled(backend, lambda number: random.fold_in(seed, number))
    np.testing.assert_array_equal(host(fold(ops.asarray(numbers[2], dtype="int64"))), expected[2])


@pytest.mark.parametrize("name", ["bits", "uniform", "bernoulli", "permutation"])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_keys_that_vmap_maps(backend: Backend, name: str, is_compiled: bool) -> None:
    def draw(key: Any) -> Any:
        with random.stream(key):
            return getattr(random, name)(7)

    if is_compiled and backend.name == "torch":
        import torch

        mapped = compiled(backend, torch.func.vmap(draw))
    else:
        mapped = compiled(backend, vmap(draw)) if is_compiled else vmap(draw)
    result = host(mapped(ops.stack([random.key(s) for s in SEEDS])))
    for row, seed in zip(result, SEEDS, strict=True):
        np.testing.assert_array_equal(row, on_numpy(lambda s=seed: draw(random.key(s))))


def test_more_draws_than_keys_are_computed_ahead(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "_AHEAD", 2)

    def draw(key: Any) -> Any:
        with random.stream(key):
            return ops.stack([random.bits(3) for _ in range(5)])

    expected = on_numpy(lambda: draw(random.key(3)))
    np.testing.assert_array_equal(host(compiled(backend, draw)(random.key(3))), expected)


CHECKPOINT = pytest.param(checkpoint, marks=pytest.mark.skipif(HAS_OLD_COMPILER, reason=OLD_COMPILER), id="checkpoint")


@pytest.mark.parametrize("wrap", [pytest.param(lambda f: f, id="plain"), CHECKPOINT])
def test_gradients_of_compiled_dropout(backend: Backend, wrap: Callable[..., Any]) -> None:
    inner = wrap(lambda x: ops.dropout(ops.dropout(x, 0.3) ** 2, 0.5))

    def loss(x: Any, key: Any) -> Any:
        with random.stream(key):
            return ops.sum(inner(x))

    def step(x: Any, key: Any) -> Any:
        return value_and_grad(loss)(x, key)[1]

    values = np.arange(1.0, 101.0, dtype=np.float32)
    expected = on_numpy(lambda: step(ops.asarray(values), random.key(3)))
    result = host(compiled(backend, step)(ops.asarray(values), random.key(3)))
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert 0.5 < np.mean(result == 0) < 0.8


def test_a_draw_is_one_operator_of_the_graph() -> None:
    torch = pytest.importorskip("torch")
    names: list[str] = []

    def collect(graph: Any, _: Any) -> Any:
        names.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    def draw(key: Any, x: Any) -> Any:
        with random.stream(key):
            x = ops.dropout(ops.dropout(ops.dropout(x, 0.1), 0.1), 0.1)
            return x + random.uniform(10) + random.normal(10)

    with ember_ml.use_backend("torch"):
        torch._dynamo.reset()
        torch.compile(draw, fullgraph=True, backend=collect)(random.key(3), ops.zeros(10))
    operators = [name for name in names if "ember_ml" in name]
    # The keys of the stream, then two draws of floats and three masks.
    assert sorted(operators) == ["ember_ml.threefry"] * 3 + ["ember_ml.trials"] * 3
    assert not [name for name in names if "xor" in name]


def test_torch_checks_the_operators() -> None:
    torch = pytest.importorskip("torch")
    backends.load("torch")
    operators = torch.ops.ember_ml
    for shape in ((), (3,), (2, 3)):
        first, second = torch.full(shape, 5), torch.full(shape, 2**32 - 3)
        for offset in (None, torch.full(shape, 2**33)):
            found = torch.library.opcheck(operators.threefry.default, (first, second, 2**33, 7, offset))
            assert set(found.values()) == {"SUCCESS"}
        found = torch.library.opcheck(operators.trials.default, (first, second, 7, 2**31))
        assert set(found.values()) == {"SUCCESS"}


def test_inductor_calls_the_operators() -> None:
    torch = pytest.importorskip("torch")

    def step(x: Any, key: Any) -> Any:
        return value_and_grad(lambda x: ops.sum(ops.dropout(x, 0.3, key=key) ** 2))(x)[1]

    values = np.arange(1.0, 101.0, dtype=np.float32)
    expected = on_numpy(lambda: step(ops.asarray(values), random.key(3)))
    with ember_ml.use_backend("torch"):
        torch._dynamo.reset()
        result = host(torch.compile(step, fullgraph=True)(ops.asarray(values), random.key(3)))
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def check_words(make: Any, trials: Any, device: Any) -> None:
    """Check functions of torch for random bits, with keys as integers and as tensors, against NumPy."""
    import torch

    reference = backends.load("numpy").module.random
    for key in ((0, 0), (5, 2**32 - 3), (2**32 - 1, 1)):
        for halves in (key, tuple(torch.tensor(half, device=device) for half in key)):
            for start in STARTS:
                for count in (1, 2, 7, 2051):
                    signed = start - (1 << 64) if start >= 1 << 63 else start
                    expected = reference.words(key, 2 * start, count)
                    result = make(*halves, signed, count, None, device)
                    assert result.dtype is torch.int64
                    np.testing.assert_array_equal(result.cpu(), expected)
            for limit in (0, 1, 2**31, 2**32):
                result = trials(*halves, 1001, limit, device)
                assert result.dtype is torch.bool
                np.testing.assert_array_equal(result.cpu(), reference.below(key, 0, 1001, limit))
    keys, offset = torch.tensor([[5, 7], [2**32 - 1, 9]], device=device), torch.tensor([2**33, 1], device=device)
    result = make(keys[:, 0], keys[:, 1], 10, 7, offset, device)
    for i in range(2):
        key, start = tuple(keys[i].tolist()), 10 + int(offset[i])
        np.testing.assert_array_equal(result[i].cpu(), reference.words(key, 2 * start, 7))
    assert make(5, 7, 0, 0, None, device).shape == (0,)


@pytest.mark.parametrize("is_known", [True, False], ids=["host", "arithmetic"])
def test_bits_of_torch_without_a_kernel(is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    module = backends.load("torch").module.random
    if not is_known:
        monkeypatch.setattr(module, "_is_known", lambda half, device: False)
    check_words(module._threefry, module._trials, torch.device("cpu"))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="there is no Triton kernel without Triton")
def test_bits_of_the_kernel_by_the_interpreter_of_triton() -> None:
    code = (
        "import torch, test_random_compiled; from ember_ml.backend.torch import kernels; "
        "test_random_compiled.check_words(kernels.words, kernels.trials, torch.device('cpu'))"
    )
    assert run(code, TRITON_INTERPRET="1") == 0


def test_bits_of_the_kernel_on_cuda() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    kernels = pytest.importorskip("ember_ml.backend.torch.kernels")
    check_words(kernels.words, kernels.trials, torch.device("cuda"))
    key = torch.tensor([5, 7], dtype=torch.uint32, device="cuda")
    with ember_ml.use_backend("torch"):
        draw = torch.compile(lambda key: random.bits((3, 1001), key=key), fullgraph=True)
        for result in (draw(key), random.bits((3, 1001), device="cuda", key=(5, 7)), random.bits((3, 1001), key=key)):
            np.testing.assert_array_equal(host(result), on_numpy(lambda: random.bits((3, 1001), key=(5, 7))))


def run(code: str, **environment: str) -> int:
    """Exit status of Python code in a new process that can import these tests."""
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths, **environment})
    return done.returncode


@pytest.mark.skipif(sys.platform == "win32", reason="MLX does not support Windows")
def test_draws_share_the_kernels_that_mlx_compiles(tmp_path: Path) -> None:
    pytest.importorskip("mlx.core")
    code = """
import mlx.core as mx
import ember_ml
from ember_ml.ops import random
ember_ml.set_backend("mlx")
mx.set_default_device(mx.cpu)
def draw(key):
    with random.stream(key):
        return [random.bits(size) for size in SIZES]
mx.eval(mx.compile(draw)(random.key(3)))
"""
    counts = []
    for sizes in ([10], [10, 7, 1000, 33, 2]):
        directory = tmp_path / str(len(sizes))
        directory.mkdir()
        assert run(code.replace("SIZES", str(sizes)), TMPDIR=str(directory)) == 0
        counts.append(len(list(directory.rglob("*.cpp"))))
    # Four steps of two rounds, their start, and the shift that selects bits.
    assert counts == [6, 6]
