"""``torch.autocast`` around operations: torch decides about casts, as it does for its own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import nn, ops, transform
from ember_ml.extend import load_backend

torch = pytest.importorskip("torch")
F = torch.nn.functional
TorchDispatchMode = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode

WIDTH, HEADS, TOKENS, LENGTH, LAYERS = 32, 4, 50, 8, 2


@pytest.fixture(autouse=True)
def on_torch() -> Any:
    with ember_ml.use_backend("torch"):
        yield


def autocast() -> Any:
    return torch.autocast("cpu", dtype=torch.bfloat16)


class Casts(TorchDispatchMode):  # type: ignore[misc, valid-type]
    """Number of casts that torch computes in a block."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function is torch.ops.aten._to_copy.default
        return function(*args, **(kwargs or {}))


class Block(nn.Module):
    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mixed, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        heads = ops.reshape(self.mixed(self.norm1(x)), (batch, length, 3 * HEADS, WIDTH // HEADS))
        mixed = ops.dot_product_attention(*ops.split(heads, 3, axis=2), is_causal=True)
        x = ops.add(x, self.out(ops.reshape(mixed, (batch, length, WIDTH))))
        return ops.add(x, self.down(ops.gelu(self.up(self.norm2(x)))))


class Transformer(nn.Module):
    def __init__(self) -> None:
        self.tokens, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = [Block() for _ in range(LAYERS)]
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: Any, targets: Any) -> Any:
        x = ops.add(self.tokens(tokens), self.places(ops.arange(LENGTH, device=ops.get_device(tokens))))
        for block in self.blocks:
            x = block(x)
        logits = self.tokens.attend(self.norm(x))
        return ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)


class NativeBlock(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.mixed, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        heads = self.mixed(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class NativeTransformer(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(TOKENS, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.blocks = torch.nn.ModuleList(NativeBlock() for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, tokens: Any, targets: Any) -> Any:
        x = self.tokens(tokens) + self.places(torch.arange(LENGTH))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, TOKENS), targets.view(-1))


def examples() -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    tokens, targets = torch.randint(0, TOKENS, (2, 2, LENGTH), generator=generator)
    return tokens, targets


def test_a_transformer_casts_no_more_than_one_that_is_written_natively() -> None:
    tokens, targets = examples()
    native, ours = NativeTransformer(), Transformer().to("cpu")
    with Casts() as of_native:
        with autocast():
            loss = native(tokens, targets)
        torch.autograd.grad(loss, list(native.parameters()))
    with Casts() as of_ours, autocast():
        transform.value_and_grad(lambda model: model(tokens, targets))(ours)
    assert of_native.count > 40
    # The loss has the dtype of the logits: it is cast to that, and its gradient from that.
    assert of_ours.count <= of_native.count + 2


def test_the_loss_and_the_gradients_are_those_of_the_native_transformer() -> None:
    tokens, targets = examples()
    native, ours = NativeTransformer(), Transformer().to("cpu")
    ours.load_torch_state_dict(native.state_dict())
    with autocast():
        expected = native(tokens, targets)
        value, grads = transform.value_and_grad(lambda model: model(tokens, targets))(ours)
    assert float(value) == pytest.approx(float(expected.detach()), rel=2**-8)
    expected.backward()
    for path, parameter in native.named_parameters():
        found, wanted = grads[path], parameter.grad
        assert found.dtype is torch.float32
        if found.shape != wanted.shape or path.endswith(("mixed.weight", "out.weight", "up.weight", "down.weight")):
            wanted = wanted.T
        assert float((found - wanted).norm()) <= 0.03 * float(wanted.norm()), path


def test_without_autocast_dtypes_are_promoted_as_ever() -> None:
    half, single = torch.ones(2, 2, dtype=torch.bfloat16), torch.ones(2, 2)
    assert ops.matmul(half, single).dtype is torch.float32
    with autocast():
        assert ops.matmul(half, single).dtype is torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert ops.matmul(half, single).dtype is torch.float32


def calls() -> dict[str, tuple[Any, ...]]:
    draw = np.random.default_rng(0).standard_normal
    image, heads = draw((2, 5, 5, 4)), draw((2, 6, 2, 4))
    pair = draw((3, 4)), draw((3, 4)) + 3
    return {
        "add": pair,
        "conv": (image, draw((3, 3, 4, 2))),
        "conv_transpose": (image, draw((3, 3, 2, 4))),
        "divide": pair,
        "dot_product_attention": (heads, heads, draw((2, 6, 2, 4))),
        "einsum": ("ij,kj->ik", *pair),
        "linear": (pair[0], draw((4, 2)), draw(2)),
        "matmul": (pair[0], draw((4, 2))),
        "maximum": pair,
        "minimum": pair,
        "multiply": pair,
        "subtract": pair,
        "where": (np.array([True, False, True, False]), *pair),
    }


def test_every_operation_that_torch_casts_itself_is_tried() -> None:
    assert calls().keys() == load_backend("torch").autocast


@pytest.mark.parametrize("is_first_half", [True, False])
@pytest.mark.parametrize("name", sorted(calls()))
def test_operands_of_two_dtypes(name: str, is_first_half: bool) -> None:
    """The result is that of float32, as precise as bfloat16."""

    def tensor(x: Any, is_half: bool) -> Any:
        if not isinstance(x, np.ndarray) or x.dtype == bool:
            return torch.as_tensor(x) if isinstance(x, np.ndarray) else x
        return torch.as_tensor(x, dtype=torch.bfloat16 if is_half else torch.float32)

    given = calls()[name]
    places = [i for i, x in enumerate(given) if isinstance(x, np.ndarray) and x.dtype != bool]
    halves = {places[0]} if is_first_half else set(places[1:])
    args = [tensor(x, i in halves) for i, x in enumerate(given)]
    wanted = getattr(ops, name)(*[x.float() if hasattr(x, "float") and x.dtype != torch.bool else x for x in args])
    with autocast():
        found = getattr(ops, name)(*args)
    assert found.shape == wanted.shape
    assert float((found.float() - wanted).abs().max()) <= 2**-6 * float(wanted.abs().max())


def test_a_compiled_function_inside_of_autocast() -> None:
    x, weight = torch.ones(3, 2, dtype=torch.bfloat16), torch.ones(2, 2)
    with autocast():
        assert transform.compile(ops.matmul)(x, weight).dtype is torch.bfloat16
