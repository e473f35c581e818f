"""What every layer keeps: one seed, one set of weights and results on all engines; and torch's layers as oracle."""

from __future__ import annotations

import copy
import doctest
import importlib
import pickle
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from layers import CASES, floats

import ember_ml
from ember_ml import nn, ops, tree
from ember_ml.backend import Backend
from ember_ml.testing.comparison import assert_same, host
from ember_ml.transform import checkpoint, grad, hessian, value_and_grad, vmap

_MODULES = ["nn.modules", *(f"nn.modules.{found.name}" for found in pkgutil.iter_modules(nn.modules.__path__))]

every_case = pytest.mark.parametrize("case", CASES)


def made(case: str, seed: int = 3) -> Any:
    """The layer, and what to call it with, on the active backend."""
    make, inputs = CASES[case]
    ops.set_seed(seed)
    return make(), [ops.asarray(x) for x in inputs]


def test_every_layer_has_a_case() -> None:
    containers = {"Module", "ModuleList", "ModuleDict"}
    layers = {v for k, v in vars(nn.modules).items() if k in nn.modules.__all__ and k not in containers}
    layers = {layer for layer in layers if isinstance(layer, type) and issubclass(layer, nn.Module)}
    assert {type(made(case)[0]) for case in CASES} == layers


def test_every_layer_is_on_the_page() -> None:
    page = (Path(__file__).parent.parent / "docs" / "modules.md").read_text(encoding="utf-8")
    made_of_functions = set(nn.modules.activations.CLASSES)
    dimensions = re.compile(r"(Max|Average)Pool\dd|(Global)?(Max|Average)Pooling\dD")
    names = [name for name in nn.modules.__all__ if name not in made_of_functions and not dimensions.fullmatch(name)]
    assert [name for name in names if f"`{name}`" not in page and f"nn.{name}" not in page] == ["activations"]


@pytest.mark.parametrize("name", [*_MODULES, "nn.initializers", "nn.wirings"])
def test_examples_run(name: str, backend: Backend) -> None:
    module = importlib.import_module(f"ember_ml.{name}")
    found = doctest.testmod(module)
    assert found.attempted or name in ("nn.modules.summary", "nn.modules")
    assert not found.failed


@every_case
def test_one_seed_on_every_engine(case: str) -> None:
    found = []
    for name in ember_ml.get_available_backends():
        ember_ml.set_backend(name)
        layer, inputs = made(case)
        # Training draws from the stream as well.
        found.append((name, layer.state_dict(), layer(*inputs), layer.eval()(*inputs), layer.buffers()))
    ember_ml.set_backend("numpy")
    _, *expected = found[0]
    for _, *results in found[1:]:
        assert_same(results, expected, tolerance=1e-5)


@every_case
def test_gradients_on_every_engine(case: str) -> None:
    """Those of the parameters, and of the first input, in training; torch's own are among them."""
    found = []
    for name in ember_ml.get_available_backends():
        ember_ml.set_backend(name)
        layer, (x, *rest) = made(case)
        if not ops.is_float(x):
            found.append(value_and_grad(lambda layer, x=x: _loss(layer(x)))(layer))
            continue

        def loss(layer: Any, x: Any, rest: Any = rest) -> Any:
            return _loss(layer(x, *rest))

        found.append(value_and_grad(loss, argnums=(0, 1))(layer, x))
    ember_ml.set_backend("numpy")
    for other in found[1:]:
        assert_same(other, found[0], tolerance=1e-4)


def _loss(result: Any) -> Any:
    return ops.mean(ops.square(ops.add(_first(result), 0.5)))


@every_case
def test_a_layer_computes_where_its_tensors_are(case: str, backend: Backend) -> None:
    """NumPy arrays are computed by the active backend, so they are left out."""
    layer, inputs = made(case)
    layer.eval()
    expected = layer(*inputs)
    for other in () if backend.name == "numpy" else ember_ml.get_available_backends():
        with ember_ml.use_backend(other):
            found = layer(*inputs)
        for ours, theirs in zip(tree.leaves(found), tree.leaves(expected), strict=True):
            assert type(ours) is type(theirs)
        assert_same(found, expected)


@every_case
def test_copies_and_pickles(case: str, backend: Backend) -> None:
    layer, inputs = made(case)
    expected = layer.eval()(*inputs)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other is not layer
        assert repr(other) == repr(layer)
        assert list(other.tensors()) == list(layer.tensors())
        assert_same(other(*inputs), expected, tolerance=0.0)
        if other.parameters():
            path = next(iter(other.parameters()))
            other.assign({path: ops.add(other.parameters()[path], 1.0)})
            assert not bool(ops.all(ops.equal(layer.parameters()[path], other.parameters()[path])))


@every_case
def test_state_travels(case: str, backend: Backend) -> None:
    with ember_ml.use_backend("torch"):
        source, inputs = made(case, seed=1)
        expected = host(_first(source.eval()(*inputs)))
    layer, inputs = made(case, seed=2)
    layer.load_state_dict(source.state_dict())
    assert_same(_first(layer.eval()(*inputs)), ops.asarray(expected), tolerance=1e-5)


@every_case
def test_every_precision(case: str, backend: Backend) -> None:
    for dtype, tolerance in (("float64", 1e-5), ("float16", 2e-2), ("bfloat16", 0.15)):
        layer, inputs = made(case)
        expected = host(_first(layer.eval()(*inputs)))
        layer.astype(dtype)
        given = [ops.cast(x, dtype) if ops.is_float(x) else x for x in inputs]
        result = _first(layer(*given))
        # Angles are float32 whatever the layers have: positions need their digits.
        assert ops.to_dtype_str(result.dtype) == ("float32" if case == "RotaryEmbedding" else dtype)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(host(result).astype(np.float64), expected, rtol=0, atol=tolerance * scale)
        layer.train()(*given)
        assert {ops.to_dtype_str(tensor.dtype) for tensor in layer.tensors().values()} <= {dtype}


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def load(layer: Any, **state: Any) -> Any:
    """The layer with torch's tensors, as they are, at these paths."""
    layer.load_state_dict({path.replace("__", "."): t.detach().numpy() for path, t in state.items()}, strict=True)
    return layer


def agree(result: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(host(result), expected.detach().numpy(), rtol=tolerance, atol=tolerance)


def last(x: torch.Tensor) -> torch.Tensor:
    """Channels after the batch become the last axis."""
    return x.movedim(1, -1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def test_linear_is_torchs(backend: Backend) -> None:
    theirs, x = torch.nn.Linear(3, 4), torch.randn(2, 5, 3)
    ours = load(nn.Linear(3, 4), weight=theirs.weight.T, bias=theirs.bias)
    agree(ours(x.numpy()), theirs(x))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({}, {}),
        ({"stride": 2, "padding": 1, "dilation": 2}, {"strides": 2, "padding": 1, "dilation_rate": 2}),
        ({"groups": 2, "bias": False, "padding": "same"}, {"groups": 2, "bias": False, "padding": "same"}),
    ],
)
def test_convolution_is_torchs(rank: int, options: Any, own: Any, backend: Backend) -> None:
    theirs = getattr(torch.nn, f"Conv{rank}d")(2, 4, 3, **options)
    x = torch.randn(2, 2, *(8, 7, 6)[:rank])
    # (out, in, spatial...) becomes (spatial..., in, out).
    weight = theirs.weight.permute(*range(2, rank + 2), 1, 0)
    state = {"weight": weight} if theirs.bias is None else {"weight": weight, "bias": theirs.bias}
    layer = getattr(nn, f"Conv{rank}d")
    agree(load(layer(2, 4, 3, **own), **state)(last(x).numpy()), last(theirs(x)))
    agree(load(layer(2, 4, 3, data_format="channels_first", **own), **state)(x.numpy()), theirs(x))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution_is_torchs(rank: int, groups: int, backend: Backend) -> None:
    options = {"stride": 2, "padding": 1, "output_padding": 1, "groups": groups}
    theirs = getattr(torch.nn, f"ConvTranspose{rank}d")(4, 2, 3, **options)
    x = torch.randn(2, 4, *(4, 3, 2)[:rank])
    # (in, out / groups, spatial...) becomes (spatial..., out / groups, in).
    weight = theirs.weight.permute(*range(2, rank + 2), 1, 0)
    own = {"strides": 2, "padding": 1, "output_padding": 1, "groups": groups}
    ours = load(getattr(nn, f"ConvTranspose{rank}d")(4, 2, 3, **own), weight=weight, bias=theirs.bias)
    agree(ours(last(x).numpy()), last(theirs(x)))


def test_embedding_is_torchs(backend: Backend) -> None:
    theirs, x = torch.nn.Embedding(5, 3), torch.tensor([[0, 4], [2, 2]])
    ours = load(nn.Embedding(5, 3), weight=theirs.weight)
    agree(ours(x.numpy()), theirs(x))
    agree(ours.attend(theirs(x).detach().numpy()), theirs(x) @ theirs.weight.T)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_batch_norm_is_torchs(rank: int, backend: Backend) -> None:
    theirs = (torch.nn.BatchNorm1d, torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)[rank](3)
    ours, ours_first = nn.BatchNorm(3), nn.BatchNorm(3, axis=1)
    with torch.no_grad():
        theirs.weight.copy_(torch.randn(3))
        theirs.bias.copy_(torch.randn(3))
    for layer in (ours, ours_first):
        layer.load_state_dict({"weight": theirs.weight.detach(), "bias": theirs.bias.detach()}, strict=False)
    for _ in range(3):
        x = torch.randn(4, 3, *(5, 2, 2)[:rank]) * 3 + 1
        expected = theirs(x)
        agree(ours(last(x).numpy()), last(expected))
        agree(ours_first(x.numpy()), expected)
        agree(ours.running_mean, theirs.running_mean)
        agree(ours.running_var, theirs.running_var)
    agree(ours.eval()(last(x).numpy()), last(theirs.eval()(x)))


def test_second_derivatives_of_batch_norm_are_torchs(backend: Backend) -> None:
    drawn = torch.randn(3, 2, 2)
    scale, offset = torch.randn(2), torch.randn(2)

    def theirs(x: Any) -> Any:
        return torch.nn.functional.batch_norm(x, None, None, scale, offset, True).pow(3).sum()

    def ours(x: Any) -> Any:
        running = np.ones(2, np.float32)
        return ops.sum(
            ops.power(ops.batch_standardization(x, running, running, 1, offset.numpy(), scale.numpy())[0], 3)
        )

    x = ops.asarray(drawn.numpy())
    expected = torch.autograd.functional.hessian(theirs, drawn)
    for f in (ours, checkpoint(ours)):
        np.testing.assert_allclose(host(hessian(f)(x)), expected, rtol=1e-2, atol=1e-3)
    gradient = torch.autograd.functional.jacobian(theirs, drawn)
    for one in vmap(grad(ours))(ops.stack([x, x])):
        np.testing.assert_allclose(host(one), gradient, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("count", [0, 2])
def test_statistics_of_another_shape_are_refused(count: int, backend: Backend) -> None:
    x, right, wrong = ops.ones((count, 3)), ops.ones(3), ops.ones((0, 3))
    for given in ((wrong, right), (right, wrong), (right, right, -1, wrong), (right, right, -1, None, wrong)):
        with pytest.raises(ValueError, match=r"batch_standardization: values along .* must have shape"):
            ops.batch_standardization(x, *given)


def test_batch_norm_keeps_the_statistics_that_others_hold(backend: Backend) -> None:
    layer = nn.BatchNorm(2)
    mean, variance = layer.running_mean, layer.running_var
    for _ in range(2):
        layer(ops.asarray([[1.0, 2.0], [3.0, 6.0]]))
    assert host(mean).tolist() == [0.0, 0.0]
    assert host(variance).tolist() == [1.0, 1.0]
    # One value in each channel has a variance of nothing, and moves what there was.
    lone = nn.BatchNorm(2)
    lone(ops.asarray([[1.0, 2.0]]))
    np.testing.assert_allclose(host(lone.running_var), [0.9, 0.9], rtol=1e-6)
    before = host(lone.running_var).tolist()
    assert tuple(lone(ops.ones((0, 2))).shape) == (0, 2)
    assert host(lone.running_var).tolist() == before


@pytest.mark.parametrize("own", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("given", ["bool", "uint8", "int8", "int16", "uint16", "int64", "float16", "bfloat16"])
def test_batch_norm_of_narrow_numbers_is_that_of_wide_ones(own: str, given: str, backend: Backend) -> None:
    """As eight bits of an image are, which do not hold what is normalised."""
    table = np.array([[0, 9, 1], [1, 3, 5], [1, 7, 2], [0, 1, 8]])
    x = ops.cast(ops.asarray(table), given)
    layer = nn.BatchNorm(3).astype(own)
    result = layer(x)
    assert ops.dtype(result) == ops.dtype(nn.BatchNorm(3).astype(own).eval()(x)) == ops.result_type(given, own)
    wanted = nn.BatchNorm(3)(ops.cast(x, "float32"))
    tolerance = 0.02 if "16" in ops.dtype(result).name else 1e-5
    np.testing.assert_allclose(host(ops.cast(result, "float32")), host(wanted), atol=tolerance)
    with ember_ml.use_backend("numpy"):
        host_array = ops.cast(ops.asarray(table), given)
    assert ops.dtype(nn.BatchNorm(3).astype(own)(host_array)) == ops.dtype(result)


def test_batch_norm_counts_channels(backend: Backend) -> None:
    for mode in (True, False):
        with pytest.raises(ValueError, match="3"):
            nn.BatchNorm(3).train(mode)(ops.ones((2, 4)))
        with pytest.raises(ember_ml.AxisError, match="axis must be from -2 to 1 for a 2-d tensor, got 2"):
            nn.BatchNorm(3, axis=2).train(mode)(ops.ones((2, 3)))


def test_normalizations_are_torchs(backend: Backend) -> None:
    x = torch.randn(2, 6, 5)
    for ours, theirs in (
        (nn.LayerNorm(5), torch.nn.LayerNorm(5)),
        (nn.LayerNorm((6, 5), 1e-3), torch.nn.LayerNorm((6, 5), 1e-3)),
        (nn.LayerNorm(5, bias=False), torch.nn.LayerNorm(5, bias=False)),
        (nn.LayerNorm(5, affine=False), torch.nn.LayerNorm(5, elementwise_affine=False)),
        (nn.RMSNorm(5, 1e-5), torch.nn.RMSNorm(5, 1e-5)),
        (nn.GroupNorm(3, 6, axis=1), torch.nn.GroupNorm(3, 6)),
    ):
        with torch.no_grad():
            for p in theirs.parameters():
                p.copy_(torch.randn(p.shape))
        agree(load(ours, **dict(theirs.named_parameters()))(x.numpy()), theirs(x))


def _attention_state(theirs: Any, prefix: str = "") -> dict[str, Any]:
    """A torch attention's parameters under our paths."""
    names = ("query", "key", "value")
    if theirs.in_proj_weight is None:
        packed = (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
    else:
        packed = theirs.in_proj_weight.chunk(3)
    state = {f"{prefix}{name}.weight": w.T for name, w in zip(names, packed, strict=True)}
    state[f"{prefix}out.weight"] = theirs.out_proj.weight.T
    if theirs.in_proj_bias is not None:
        state |= {f"{prefix}{n}.bias": b for n, b in zip(names, theirs.in_proj_bias.chunk(3), strict=True)}
        state[f"{prefix}out.bias"] = theirs.out_proj.bias
    return state


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 6, "vdim": 3}])
def test_attention_is_torchs(options: Any, backend: Backend) -> None:
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True, **options)
    for name, p in theirs.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(p)
    ours = nn.MultiHeadAttention(8, 2, **options)
    ours.load_state_dict({k: v.detach() for k, v in _attention_state(theirs).items()})
    q, k, v = torch.randn(2, 5, 8), torch.randn(2, 7, options.get("kdim", 8)), torch.randn(2, 7, options.get("vdim", 8))
    agree(ours(q.numpy(), k.numpy(), v.numpy()), theirs(q, k, v)[0])
    hidden = torch.zeros(2, 7, dtype=torch.bool)
    hidden[0, 4:] = True
    expected = theirs(q, k, v, key_padding_mask=hidden)[0]
    mask = ~hidden[:, None, :].numpy()
    agree(ours(q.numpy(), k.numpy(), v.numpy(), mask=mask), expected)
    agree(ours(q.numpy(), k.numpy(), v.numpy(), mask=mask[:, None]), expected)
    if not options:
        hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
        expected = theirs(q, q, q, attn_mask=hidden)[0]
        agree(ours(q.numpy(), is_causal=True), expected)
        agree(ours(q.numpy(), mask=~hidden.numpy()), expected)


def test_dropped_attention(backend: Backend) -> None:
    """With a rate too small to drop anything, the way through dropout is the fused way."""
    layer = nn.MultiHeadAttention(8, 4, num_kv_heads=2)
    x = ops.asarray(floats(2, 5, 8))
    mask = ops.asarray(np.array([[True] * 5, [True] * 3 + [False] * 2]))[:, None, :]
    blind = ops.zeros((5, 5), dtype="bool")
    for options in ({}, {"is_causal": True}, {"mask": mask}, {"mask": mask, "is_causal": True}, {"mask": blind}):
        layer.dropout = 0.0
        expected = layer(x, **options)
        layer.dropout = 1e-12
        assert_same(layer(x, **options), expected, tolerance=1e-5)
    layer.dropout = 0.5
    assert not np.allclose(host(layer(x)), host(expected))


def _layer_state(theirs: Any, is_decoder: bool = False) -> dict[str, Any]:
    """The parameters of a layer of a torch transformer under our paths."""
    state = _attention_state(theirs.self_attn, "attention.")
    if is_decoder:
        state |= _attention_state(theirs.multihead_attn, "cross_attention.")
    for name in ("linear1", "linear2"):
        state[f"feed_forward.{name}.weight"] = getattr(theirs, name).weight.T
        state[f"feed_forward.{name}.bias"] = getattr(theirs, name).bias
    for name in ("norm1", "norm2", "norm3")[: 3 if is_decoder else 2]:
        state[f"{name}.weight"] = getattr(theirs, name).weight
        state[f"{name}.bias"] = getattr(theirs, name).bias
    return {path: tensor.detach() for path, tensor in state.items()}


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_layers_are_torchs(norm_first: bool, activation: str, backend: Backend) -> None:
    options: Any = {"dropout": 0.0, "activation": activation, "norm_first": norm_first}
    theirs = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
    ours = nn.TransformerEncoderLayer(8, 2, 16, **options)
    ours.load_state_dict(_layer_state(theirs))
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    agree(ours(x.numpy()), theirs(x))
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5)
    agree(ours(x.numpy(), is_causal=True), theirs(x, src_mask=causal))
    decoder = torch.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True, **options)
    ours = nn.TransformerDecoderLayer(8, 2, 16, **options)
    ours.load_state_dict(_layer_state(decoder, is_decoder=True))
    agree(ours(x.numpy(), memory.numpy()), decoder(x, memory, tgt_mask=causal))


def test_pools_are_torchs(backend: Backend) -> None:
    for rank in (1, 2, 3):
        x = torch.randn(2, 3, *(7, 6, 5)[:rank])
        for ours, theirs in (
            (nn.MaxPool, f"MaxPool{rank}d"),
            (getattr(nn, f"MaxPool{rank}d"), f"MaxPool{rank}d"),
            (nn.AveragePool, f"AvgPool{rank}d"),
            (getattr(nn, f"AveragePool{rank}d"), f"AvgPool{rank}d"),
        ):
            expected = getattr(torch.nn, theirs)(3, 2, 1, **({} if "Max" in theirs else {"count_include_pad": False}))(
                x
            )
            agree(ours(3, 2, 1)(last(x).numpy()), last(expected))
            agree(ours(3, 2, 1, data_format="channels_first")(x.numpy()), expected)
        agree(nn.AdaptiveAveragePool(2)(last(x).numpy()), last(getattr(torch.nn, f"AdaptiveAvgPool{rank}d")(2)(x)))
        agree(nn.AdaptiveMaxPool(2)(last(x).numpy()), last(getattr(torch.nn, f"AdaptiveMaxPool{rank}d")(2)(x)))
        agree(nn.GlobalAveragePool()(last(x).numpy()), x.flatten(2).mean(-1))
        agree(nn.GlobalMaxPool(keepdims=True)(last(x).numpy()), last(x.flatten(2).amax(-1).reshape(2, 3, *(1,) * rank)))


def test_upsample_is_torchs(backend: Backend) -> None:
    x = torch.randn(2, 3, 4, 5)
    for mode in ("nearest", "bilinear"):
        agree(
            nn.Upsample(2, mode, data_format="channels_first")(x.numpy()),
            torch.nn.Upsample(scale_factor=2, mode=mode)(x),
        )


def test_activations_are_torchs(backend: Backend) -> None:
    theirs = {"LeakyReLU": "LeakyReLU", "HardTanh": "Hardtanh", "Softplus": "Softplus", "SoftShrink": "Softshrink"}
    x = torch.randn(3, 4) * 3
    for name in ("ReLU", "ELU", "SELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Softsign", "ReLU6", *theirs):
        agree(getattr(nn, name)()(x.numpy()), getattr(torch.nn, theirs.get(name, name))()(x))
    agree(nn.PReLU()(x.numpy()), torch.nn.PReLU()(x))
    agree(nn.Softmax(axis=0)(x.numpy()), torch.nn.Softmax(dim=0)(x))
    agree(nn.Threshold(0.1, 20.0)(x.numpy()), torch.nn.Threshold(0.1, 20.0)(x))
    assert nn.Swish is nn.SiLU


def test_dropout_follows_the_stream(backend: Backend) -> None:
    layer, x = nn.Dropout(0.25), ops.ones((1000,))
    ops.set_seed(5)
    first, second = layer(x), layer(x)
    ops.set_seed(5)
    assert_same(layer(x), first, tolerance=0.0)
    assert not bool(ops.all(ops.equal(first, second)))
    kept = host(first)
    assert set(np.unique(kept)) == {0.0, np.float32(1 / 0.75)}
    assert abs((kept == 0).mean() - 0.25) < 0.05
    assert_same(layer.eval()(x), x, tolerance=0.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "groups"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), r"Conv2d: kernel_size must be an integer or 2 of them, got \(3, 3, 3"),
        (lambda: nn.MultiHeadAttention(7, 2), "heads"),
        (lambda: nn.GroupNorm(3, 4), "groups"),
        (lambda: nn.Dropout(1.5), "Dropout: rate must be from 0 to 1"),
        (lambda: nn.CfCCell(2, 2, mode="wrong"), "mode"),
        (lambda: nn.PositionalEncoding(4, 3)(ops.ones((1, 5, 4))), "PositionalEncoding: x must have a length of a"),
        (lambda: nn.Conv2d(3, 4, 3)(ops.ones((8, 8, 3))), r"4 axes, \(batch, height, width, channels\), got 3"),
        (lambda: nn.Conv2d(3, 4, 3)(ops.ones((2, 3, 8, 8))), r"x has the axes \(batch, height, width, channels\)"),
        (
            lambda: nn.Conv1d(3, 4, 3, data_format="channels_first")(ops.ones((2, 8, 3))),
            r"Conv1d: x and kernel .* x has the axes \(batch, channels, length\)",
        ),
        (lambda: nn.MaxPool2d(2)(ops.ones((8, 8, 3))), r"4 axes, \(batch, height, width, channels\), got 3"),
        (lambda: nn.LSTM(3, 4)(ops.ones((8, 3))), r"LSTM: x must have 3 axes, \(batch, time, features\) or \(time"),
        (lambda: nn.LSTM(3, 4)(ops.ones((8, 0, 3))), "LSTM: x must have at least 1 step along axis 1, got shape"),
        (lambda: nn.Linear(3, 4, weight_init="best"), "Linear: weight_init must be one of zeros, ones, constant,"),
    ],
)
def test_mistakes_are_named(make: Any, message: str, backend: Backend) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_layers_take_an_empty_batch(backend: Backend) -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    assert tuple(model(ops.zeros((0, 4, 4, 1))).shape) == (0, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.MultiHeadAttention(8, 0), "MultiHeadAttention: num_heads must divide embed_dim, and num_kv_he"),
        (lambda: nn.MultiHeadAttention(8, -2), "MultiHeadAttention: num_heads must be >= 0, got -2"),
        (lambda: nn.MultiHeadAttention(8, 2, num_kv_heads=0), "MultiHeadAttention: num_heads must divide embed_di"),
        (lambda: nn.MultiHeadAttention(8, 2, dropout=1.5), "dropout must be from 0 to 1"),
        (lambda: nn.MultiHeadAttention(8, 2)(ops.ones((3, 8))), r"\(batch, length, features\).*\[3, 8\]"),
        (lambda: nn.TransformerEncoder(-1, 8, 2), "TransformerEncoder: num_layers must be >= 0, got -1"),
        (lambda: nn.Conv2d(3, 4, 0), "in_channels, out_channels and kernel_size must be >= 1, got "),
        (lambda: nn.Conv1d(0, 4, 3), "in_channels, out_channels and kernel_size must be >= 1, got "),
        (lambda: nn.Flatten(5)(ops.ones((2, 3))), r"Flatten: start must be an axis of x, got 5 for shape \[2, 3\]"),
        (lambda: nn.GlobalAveragePool(data_format="NCHW"), "GlobalAveragePool: data_format must be 'channels_last"),
        (lambda: nn.GlobalMaxPool()(ops.ones((4, 3))), "at least 3 axes"),
        (lambda: nn.PositionalEmbedding(1, 8)(ops.ones((2, 5, 3))), "1 features.*3"),
        (lambda: nn.PositionalEncoding(4, 8)(ops.ones((2, 5, 1))), "4 features.*1"),
        (lambda: nn.PositionalEncoding(4, 8)(ops.ones((4,))), "PositionalEncoding: x must have at least 2 axes,"),
        (lambda: nn.Linear(3, 2, weight_init=lambda shape, dtype=None: ops.ones((5, 5))), "Linear: weight_init mu"),
    ],
)
def test_what_would_be_stretched_or_fail_later_is_refused(make: Any, message: str, backend: Backend) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_masks_are_true_or_false(backend: Backend) -> None:
    """A mask of floating numbers, which other libraries add to scores, would mean the opposite here."""
    x = ops.asarray(floats(2, 4, 8))
    causal = np.tril(np.ones((4, 4)))
    for dropout in (0.0, 0.1):
        ops.set_seed(0)
        layer = nn.MultiHeadAttention(8, 2, dropout=dropout).eval()
        expected = layer(x, is_causal=True)
        assert_same(layer(x, mask=causal.astype(bool)), expected, tolerance=1e-6)
        assert_same(layer(x, mask=causal.astype(np.int64)), expected, tolerance=1e-6)
        with pytest.raises(TypeError, match=r"true where.*float32"):
            layer(x, mask=np.where(causal, 0.0, -np.inf).astype(np.float32))
    with pytest.raises(TypeError, match=r"true where.*float32"):
        nn.TransformerDecoderLayer(8, 2, 16)(x, x, memory_mask=ops.zeros((4, 4)))


def test_dropped_attention_of_nothing(backend: Backend) -> None:
    assert tuple(nn.TransformerDecoderLayer(8, 2, 16)(ops.ones((0, 5, 8)), ops.ones((0, 3, 8))).shape) == (0, 5, 8)
    for dropout in (0.0, 0.5):
        layer = nn.MultiHeadAttention(8, 2, dropout)
        assert tuple(layer(ops.ones((2, 0, 8)), is_causal=True).shape) == (2, 0, 8)
        with pytest.raises(ValueError, match=r"\(?3, ?1, ?1, ?4\)?|size of tensor"):
            layer(ops.ones((1, 4, 8)), mask=ops.ones((3, 1, 4), dtype="bool"))


@pytest.mark.parametrize("keys", [3, 5, 7])
def test_dropped_attention_is_attention(keys: int, backend: Backend) -> None:
    """With next to nothing dropped, the two ways to compute attention agree, also for other numbers of keys."""
    ops.set_seed(0)
    layer = nn.MultiHeadAttention(8, 4, 1e-9, num_kv_heads=2)
    x, memory = ops.asarray(floats(2, 5, 8)), ops.asarray(floats(2, keys, 8))
    mask = floats(2, 5, keys) > -0.5
    mask[0, 1] = False
    for options in ({}, {"is_causal": True}, {"mask": mask}, {"mask": mask, "is_causal": True}):
        dropped = layer.train()(x, memory, **options)
        assert_same(layer.eval()(x, memory, **options), dropped, tolerance=1e-5)
