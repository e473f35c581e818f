"""Fused operations: one kernel where the engine has one, as many calls as native code, and no more memory."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from exceptions import HAS_OLD_COMPILER, OLD_COMPILER

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import Backend
from ember_ml.testing.comparison import assert_close, host
from ember_ml.transform import grad, value_and_grad, vmap

torch = pytest.importorskip("torch")
F = torch.nn.functional
TorchDispatchMode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode

RNG = np.random.default_rng(5)
CLASSES, LENGTH, WIDTH, HEADS, BATCH = 61, 24, 16, 2, 3


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


class Calls(TorchDispatchMode):  # type: ignore[misc]
    """The functions of torch that are called, and the number of elements of the largest result."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.largest = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self.names[function.overloadpacket.__name__] += 1
        results = result if isinstance(result, (tuple, list)) else (result,)
        self.largest = max(self.largest, *(x.numel() for x in results if isinstance(x, torch.Tensor)), 0)
        return result


def calls_of(run: Callable[[], object]) -> Calls:
    """The calls of the second run, as the first may do what is done once."""
    run()
    with Calls() as calls:
        run()
    return calls


# Calls that start no kernel.
VIEWS = {"alias", "detach", "expand", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose"}
VIEWS |= {"unsqueeze", "view", "_unsafe_view", "permute", "unbind"}


def kernels(calls: Calls) -> Counter[str]:
    return Counter({name: count for name, count in calls.names.items() if name not in VIEWS})


@pytest.fixture
def on_torch() -> Any:
    """The CPU, whose calls are counted wherever the tests run."""
    with ember_ml.use_backend("torch", device="cpu"):
        yield


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (2, 1, 5, 3), (0, 3)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_linear_is_torch(backend: Backend, shape: tuple[int, ...], has_bias: bool) -> None:
    x, weight, bias = drawn(*shape), drawn(3, 4), drawn(4) if has_bias else None
    expected = F.linear(
        torch.from_numpy(x), torch.from_numpy(weight).t(), None if bias is None else torch.from_numpy(bias)
    )
    assert_close(host(ops.linear(x, weight, bias)), expected.numpy(), 1e-5)


def test_linear_has_the_gradient_of_torch(backend: Backend) -> None:
    arrays = drawn(2, 5, 3), drawn(3, 4), drawn(4)
    tensors = [torch.from_numpy(x).requires_grad_() for x in arrays]
    torch.sin(F.linear(tensors[0], tensors[1].t(), tensors[2])).sum().backward()
    found = grad(lambda x, w, b: ops.sum(ops.sin(ops.linear(x, w, b))), argnums=(0, 1, 2))(*map(ops.asarray, arrays))
    for one, tensor in zip(found, tensors, strict=True):
        assert_close(host(one), tensor.grad.numpy(), 1e-4)


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)])
def test_linear_is_mapped_over_any_argument(backend: Backend, axes: tuple[int | None, ...]) -> None:
    # As many rows as mapped examples, so that a bias along the wrong axis would go unnoticed.
    arrays = drawn(2, 3), drawn(3, 4), drawn(4)
    mapped = [x if axis is None else np.stack([x, 2 * x]) for x, axis in zip(arrays, axes, strict=True)]
    expected = [
        ops.linear(*(x if axis is None else x[i] for x, axis in zip(mapped, axes, strict=True))) for i in range(2)
    ]
    result = vmap(lambda x, w, b: ops.linear(x, w, b), in_axes=axes)(*map(ops.asarray, mapped))
    assert_close(host(result), np.stack([host(one) for one in expected]), 1e-5)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            (drawn(2, 3), drawn(4, 5)),
            r"x and weight must have shapes .*got \[2, 3\] and \[4, 5\]",
        ),
        ((np.float32(1), drawn(1, 5)), r"x and weight must have shapes.*got \[\] and \[1, 5\]"),
        ((drawn(2, 3), drawn(3)), r"x and weight must have shapes.*got \[2, 3\] and \[3\]"),
        ((drawn(2, 3), drawn(3, 5), drawn(1)), r"bias must have shape \[5\].*got \[1\]"),
        ((drawn(2, 3), drawn(3, 5), drawn(2, 5)), r"bias must have shape \[5\].*got \[2, 5\]"),
    ],
)
def test_linear_names_what_does_not_fit(backend: Backend, arrays: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ops.linear(*arrays)


@pytest.mark.usefixtures("on_torch")
class TestOneKernel:
    def test_linear_calls_what_native_code_does(self) -> None:
        layer, native = nn.Linear(3, 4), torch.nn.Linear(3, 4)
        x = torch.from_numpy(drawn(2, 5, 3)).requires_grad_()
        ours = calls_of(lambda: torch.autograd.grad(layer(x).sum(), x))
        theirs = calls_of(lambda: torch.autograd.grad(native(x).sum(), x))
        assert kernels(ours)["addmm"] == 1
        # The weight of ours is no leaf that needs a gradient.
        assert not kernels(ours) - kernels(theirs)

    def test_a_split_has_one_concatenation_as_its_gradient(self) -> None:
        x = torch.from_numpy(drawn(2, 6))
        for sections in (3, [2, 4]):
            step = grad(lambda x, s=sections: sum(ops.sum(part * part) for part in ops.split(x, s, axis=-1)))
            assert {"cat": 1}.items() <= calls_of(lambda f=step: f(x)).names.items()
            assert "slice_backward" not in calls_of(lambda f=step: f(x)).names

    @pytest.mark.parametrize("layer", ["linear", "conv"])
    def test_autocast_casts_once(self, layer: str) -> None:
        x, weight = torch.from_numpy(drawn(2, 5, 3)).bfloat16(), torch.from_numpy(drawn(3, 4))
        kernel = weight[None]
        with torch.autocast("cpu", torch.bfloat16):
            run = (lambda: ops.linear(x, weight, weight[0])) if layer == "linear" else (lambda: ops.conv(x, kernel))
            calls = calls_of(run)
            assert run().dtype is torch.bfloat16
        # The weight and the bias; x has the dtype of the product already.
        assert calls.names["_to_copy"] == (2 if layer == "linear" else 1)

    def test_without_autocast_dtypes_are_promoted(self) -> None:
        x, weight = torch.from_numpy(drawn(2, 3)).bfloat16(), torch.from_numpy(drawn(3, 4))
        assert ops.linear(x, weight, weight[0]).dtype is torch.float32

    def test_cross_entropy_is_fused_for_any_shape_and_dtype(self) -> None:
        for shape, dtype in (((6, 5), torch.float32), ((2, 3, 5), torch.float32), ((2, 3, 5), torch.bfloat16)):
            logits = torch.from_numpy(drawn(*shape)).to(dtype)
            labels = torch.ones(shape[:-1], dtype=torch.int64)
            for smoothing in (0.0, 0.1):
                step = grad(
                    lambda x, y=labels, s=smoothing: ops.sparse_categorical_crossentropy(
                        y, x, from_logits=True, label_smoothing=s
                    )
                )
                native = logits.detach().reshape(-1, 5).requires_grad_()
                expected = F.cross_entropy(native, labels.reshape(-1), label_smoothing=smoothing)
                (gradient,) = torch.autograd.grad(expected, native)
                torch.testing.assert_close(step(logits), gradient.reshape(shape))
                names = calls_of(lambda f=step, x=logits: f(x)).names
                assert names["_log_softmax"] == names["nll_loss_forward"] == 1
                assert "gather" not in names
                assert "_to_copy" not in names


class NativeBlock(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.heads, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        parts = self.heads(self.norm1(x)).split(WIDTH, dim=2)
        q, k, v = (part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).contiguous().view(batch, length, WIDTH))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x)), approximate="tanh"))


class NativeModel(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A small GPT as it is written in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(CLASSES, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.ModuleList([NativeBlock(), NativeBlock()])
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, CLASSES, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, inputs: Any, labels: Any) -> Any:
        x = self.tokens(inputs) + self.places(torch.arange(inputs.shape[1], device=inputs.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).view(-1, CLASSES), labels.view(-1))


class Block(nn.Module):
    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.heads, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        parts = ops.split(self.heads(self.norm1(x)), 3, axis=-1)
        q, k, v = (ops.reshape(part, (batch, length, HEADS, WIDTH // HEADS)) for part in parts)
        mixed = ops.dot_product_attention(q, k, v, is_causal=True)
        x = ops.add(x, self.out(ops.reshape(mixed, (batch, length, WIDTH))))
        return ops.add(x, self.narrow(ops.gelu(self.wide(self.norm2(x)), approximate=True)))


class Model(nn.Module):
    """The same GPT in operations and modules."""

    def __init__(self) -> None:
        self.tokens, self.places = nn.Embedding(CLASSES, WIDTH), nn.PositionalEmbedding(WIDTH, LENGTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, inputs: Any, labels: Any) -> Any:
        x = self.places(self.tokens(inputs))
        for block in self.blocks:
            x = block(x)
        return ops.sparse_categorical_crossentropy(labels, self.tokens.attend(self.norm(x)), from_logits=True)


def run_model(model: Any, inputs: Any, labels: Any) -> Any:
    return model(inputs, labels)


@pytest.mark.usefixtures("on_torch")
class TestTrainingStep:
    def batch(self, device: str = "cpu") -> tuple[Any, Any]:
        return tuple(torch.zeros((BATCH, LENGTH), dtype=torch.int64, device=device) for _ in range(2))  # type: ignore[return-value]

    @pytest.mark.parametrize("autocast", [False, True])
    def test_calls_are_those_of_native_code(self, autocast: bool) -> None:
        native, model, batch = NativeModel(), Model(), self.batch()
        step = value_and_grad(run_model)

        def ours_step() -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                step(model, *batch)

        def theirs_step() -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = native(*batch)
            torch.autograd.grad(loss, list(native.parameters()))

        ours, theirs = calls_of(ours_step), calls_of(theirs_step)
        assert ours.names.total() <= 1.1 * theirs.names.total()
        assert kernels(ours).total() <= 1.1 * kernels(theirs).total()
        # The first rows of a table, in place of a lookup of all positions.
        surplus = kernels(ours) - kernels(theirs) - Counter(slice_backward=1)
        assert surplus == Counter()

    def test_nothing_is_read_back_from_the_device(self) -> None:
        model, batch = Model(), self.batch("meta")
        model.assign({path: tensor.to("meta") for path, tensor in model.tensors().items()})
        loss, _ = value_and_grad(run_model)(model, *batch)
        assert loss.device.type == "meta"
        with pytest.raises(ValueError, match="meta tensors"):
            # Outside of a gradient, indices are read and checked, which shows that reading raises on this device.
            model(*batch)

    @pytest.mark.skipif(HAS_OLD_COMPILER, reason=OLD_COMPILER)
    def test_compiled_code_uses_the_fused_kernels(self) -> None:
        # The compiler skips code that earlier tests compiled often.
        torch._dynamo.reset()
        found: Counter[str] = Counter()

        def record(graph: Any, _: Any) -> Any:
            found.update(getattr(node.target, "__name__", str(node.target)) for node in graph.graph.nodes)
            return graph.forward

        step = torch.compile(value_and_grad(run_model), backend=record, dynamic=False, fullgraph=True)
        step(Model(), *self.batch())
        fused = {"addmm": 8, "layer_norm": 5, "scaled_dot_product_attention": 2, "gelu": 2, "embedding": 1}
        assert {**fused, "cross_entropy": 1}.items() <= found.items()
        assert "softmax" not in found


def reference(
    labels: Any, x: Any, weight: Any, bias: Any, *, label_smoothing: float = 0.0, reduction: str = "mean"
) -> Any:
    """The loss with all logits at once."""
    options: Any = {"label_smoothing": label_smoothing, "reduction": reduction}
    return ops.sparse_categorical_crossentropy(labels, ops.linear(x, weight, bias), from_logits=True, **options)


class TestLinearCrossentropy:
    @pytest.mark.parametrize("chunk", [1, 4, 7, 14, 100, None])
    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    @pytest.mark.parametrize("label_smoothing", [0.0, 0.25])
    def test_chunks_change_neither_value_nor_gradient(
        self, backend: Backend, chunk: int | None, reduction: str, label_smoothing: float
    ) -> None:
        labels = ops.asarray(RNG.integers(0, 9, (2, 7)))
        tensors = [ops.asarray(x) for x in (drawn(2, 7, 5), drawn(5, 9), drawn(9))]
        options: Any = {"reduction": reduction, "label_smoothing": label_smoothing}
        share = ops.asarray(drawn(2, 7) if reduction == "none" else drawn())

        def loss(f: Any, **more: Any) -> Any:
            return lambda *xs: ops.sum(ops.multiply(f(labels, *xs, **options, **more), share))

        argnums = (0, 1, 2)
        value, gradients = value_and_grad(loss(ops.linear_crossentropy, chunk=chunk), argnums=argnums)(*tensors)
        expected, others = value_and_grad(loss(reference), argnums=argnums)(*tensors)
        assert_close(host(value), host(expected), 1e-5)
        for one, other in zip(gradients, others, strict=True):
            assert_close(host(one), host(other), 1e-4)

    def test_gradients_of_halves_are_summed_in_float32(self, backend: Backend) -> None:
        labels = RNG.integers(0, 9, (400,))
        x, weight = drawn(400, 5), drawn(5, 9)
        loss: Any = lambda x, w: ops.linear_crossentropy(labels, x, w, chunk=1, reduction="sum")  # noqa: E731
        exact = grad(loss, argnums=(0, 1))(*(ops.cast(one, "float64") for one in (x, weight)))
        halves = grad(loss, argnums=(0, 1))(*(ops.cast(one, "bfloat16") for one in (x, weight)))
        for one, other in zip(halves, exact, strict=True):
            assert ops.dtype(one).name == "bfloat16"
            error = np.abs(host(ops.cast(one, "float64")) - host(other)).max()
            # Four hundred sums in bfloat16 would lose several times as much.
            assert error < 0.02 * np.abs(host(other)).max()

    @pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
    def test_it_is_mapped_over_labels_and_rows(self, backend: Backend, axes: tuple[int | None, int | None]) -> None:
        labels, x, weight = RNG.integers(0, 4, (2, 5)), drawn(2, 5, 3), ops.asarray(drawn(3, 4))
        arguments = [one if axis == 0 else one[0] for one, axis in zip((labels, x), axes, strict=True)]
        gradient = grad(lambda x, y: ops.linear_crossentropy(y, x, weight, chunk=2))
        result = vmap(lambda y, x: gradient(x, y), in_axes=axes)(*map(ops.asarray, arguments))
        for i in range(2):
            y, one = (ops.asarray(v[i] if axis == 0 else v) for v, axis in zip(arguments, axes, strict=True))
            assert_close(host(result)[i], host(grad(lambda x, y=y: reference(y, x, weight, None))(one)), 1e-4)

    def test_second_derivatives(self, backend: Backend) -> None:
        labels, x, weight = RNG.integers(0, 4, (5,)), ops.asarray(drawn(5, 3)), ops.asarray(drawn(3, 4))

        def twice(loss: Any) -> Any:
            inner = grad(lambda w: loss(w))
            return host(grad(lambda w: ops.sum(ops.square(inner(w))))(weight))

        chunked = twice(lambda w: ops.linear_crossentropy(labels, x, w, chunk=2))
        assert_close(chunked, twice(lambda w: reference(labels, x, w, None)), 1e-4)

    def test_arguments_are_checked(self, backend: Backend) -> None:
        x, weight = drawn(2, 3), drawn(3, 4)
        for arguments, options, message in (
            (([0, 1, 2], x, weight), {}, r"y_true must have the shape of x without its last axis, got \[3\]"),
            (([0, 1], x, drawn(4, 3)), {}, "x and weight must have shapes"),
            (([0, 1], x, weight, drawn(3)), {}, r"bias must have shape \[4\]"),
            (([0, 1], x, weight), {"chunk": 0}, "chunk must be >= 1 or None, got 0"),
            (([0, 1], x, weight), {"label_smoothing": 2.0}, "label_smoothing must be from 0 to 1"),
            (([0, 1], x, weight), {"reduction": "all"}, "reduction must be 'mean', 'sum' or 'none'"),
        ):
            with pytest.raises(ValueError, match=message):
                ops.linear_crossentropy(*arguments, **options)  # type: ignore[arg-type]
        for labels in ([0, 4], [-1, 0]):
            with pytest.raises(IndexError):
                host(ops.linear_crossentropy(labels, x, weight))

    @pytest.mark.usefixtures("on_torch")
    def test_no_tensor_holds_all_logits_on_torch(self) -> None:
        rows, classes, chunk = 512, 1000, 32
        labels = torch.zeros(rows, dtype=torch.int64)
        x, weight = torch.from_numpy(drawn(rows, 8)), torch.from_numpy(drawn(8, classes))
        step = value_and_grad(lambda x, w: ops.linear_crossentropy(labels, x, w, chunk=chunk), argnums=(0, 1))
        assert calls_of(lambda: step(x, weight)).largest == chunk * classes

    def test_memory_does_not_grow_with_the_rows_on_numpy(self) -> None:
        def peak(rows: int) -> int:
            labels, x, weight = np.zeros(rows, np.int64), drawn(rows, 4), drawn(4, 2000)
            step = value_and_grad(lambda x, w: ops.linear_crossentropy(labels, x, w, chunk=16), argnums=(0, 1))
            with ember_ml.use_backend("numpy"):
                step(x, weight)
                tracemalloc.start()
                try:
                    step(x, weight)
                    return tracemalloc.get_traced_memory()[1]
                finally:
                    tracemalloc.stop()

        # All logits would take 16 times as much.
        assert peak(1024) < 1.5 * peak(64)

    def test_memory_does_not_grow_with_the_rows_on_mlx(self) -> None:
        mx = pytest.importorskip("mlx.core", reason="MLX is not installed")

        def peak(rows: int) -> int:
            labels, x, weight = (mx.array(one) for one in (np.zeros(rows, np.int64), drawn(rows, 4), drawn(4, 2000)))
            step = value_and_grad(lambda x, w: ops.linear_crossentropy(labels, x, w, chunk=16), argnums=(0, 1))
            mx.eval(step(x, weight))
            mx.reset_peak_memory()
            before = mx.get_active_memory()
            mx.eval(step(x, weight))
            return int(mx.get_peak_memory() - before)

        # MLX has the forward pass of a few chunks in flight; all logits would take 16 times as much.
        assert peak(4096) < 2 * peak(256)
