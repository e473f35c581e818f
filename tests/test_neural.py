"""What the contract cannot say of the nn primitives: torch's own functions agree, gradients flow, errors are errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops, transform
from ember_ml.backend import Backend
from ember_ml.testing.comparison import assert_close, host

torch = pytest.importorskip("torch", reason="its functions are what is expected")
hypothesis = pytest.importorskip("hypothesis", reason="it draws sizes and strides")
given, settings, st = hypothesis.given, hypothesis.settings, hypothesis.strategies
F = torch.nn.functional

RNG = np.random.default_rng(3)
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
CONV_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def like_torch(x: np.ndarray) -> Any:
    """A tensor with channels first from an array with channels last."""
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(x, -1, 1)))


def channels_last(x: Any) -> np.ndarray:
    return np.moveaxis(x.numpy(), 1, -1)


def both_layouts(run: Any, x: np.ndarray) -> list[np.ndarray]:
    """The results for channels last and first, both with channels last."""
    one = host(run(x, "channels_last"))
    two = host(run(np.ascontiguousarray(np.moveaxis(x, -1, 1)), "channels_first"))
    return [one, np.moveaxis(two, 1, -1)]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "pad", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (3, 2, 2, 4), (2, 3, 1, 1)]
)
def test_conv_is_torch(backend: Backend, rank: int, stride: int, pad: int, dilation: int, groups: int) -> None:
    x, kernel = drawn(2, *(8, 9, 7)[:rank], 4), drawn(*(3, 2, 3)[:rank], 4 // groups, 8)
    weight = torch.from_numpy(kernel).movedim((-1, -2), (0, 1))
    expected = CONV[rank](like_torch(x), weight, None, stride, pad, dilation, groups)
    for result in both_layouts(lambda v, f: ops.conv(v, kernel, stride, pad, f, dilation, groups), x):
        assert_close(result, channels_last(expected), 1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "pad", "extra", "dilation", "groups"), [(1, 0, 0, 1, 1), (2, 1, 1, 1, 2), (3, 1, 2, 2, 1)]
)
def test_conv_transpose_is_torch(
    backend: Backend, rank: int, stride: int, pad: int, extra: int, dilation: int, groups: int
) -> None:
    x, kernel = drawn(2, *(4, 5, 3)[:rank], 4), drawn(*(3, 2, 3)[:rank], 6 // groups, 4)
    weight = torch.from_numpy(kernel).movedim((-1, -2), (0, 1))
    expected = CONV_TRANSPOSE[rank](like_torch(x), weight, None, stride, pad, extra, groups, dilation)
    for result in both_layouts(lambda v, f: ops.conv_transpose(v, kernel, stride, pad, extra, f, dilation, groups), x):
        assert_close(result, channels_last(expected), 1e-4)


@pytest.mark.parametrize(
    ("run", "x", "kernel", "result"),
    [
        (ops.conv, (0, 6, 4), (3, 4, 5), (0, 4, 5)),
        (ops.conv, (2, 6, 0), (3, 0, 5), (2, 4, 5)),
        (ops.conv, (2, 6, 4), (3, 4, 0), (2, 4, 0)),
        (ops.conv_transpose, (0, 6, 4), (3, 5, 4), (0, 8, 5)),
        (ops.conv_transpose, (2, 6, 0), (3, 5, 0), (2, 8, 5)),
        (ops.conv_transpose, (2, 6, 4), (3, 0, 4), (2, 8, 0)),
    ],
)
def test_empty_convolutions_have_gradients_and_are_mapped(
    backend: Backend, run: Any, x: tuple[int, ...], kernel: tuple[int, ...], result: tuple[int, ...]
) -> None:
    tensors = ops.ones(x), ops.ones(kernel)
    total = lambda *both: ops.sum(run(*both))  # noqa: E731
    for gradient, tensor in zip(ember_ml.grad(total, (0, 1))(*tensors), tensors, strict=True):
        assert gradient.shape == tensor.shape
        assert not host(gradient).any()
    mapped = ember_ml.vmap(run, in_axes=(0, None))(ops.ones((3, *x)), tensors[1])
    assert tuple(mapped.shape) == (3, *result)
    assert not host(mapped).any()


def test_spatial_axes_must_not_be_empty(backend: Backend) -> None:
    x, kernel = ops.ones((2, 0, 4)), ops.ones((3, 4, 4))
    for run in (
        lambda: ops.conv(x, kernel, padding=2),
        lambda: ops.conv_transpose(x, kernel),
        lambda: ops.max_pool(x, 2, padding="same"),
        lambda: ops.average_pool(x, 2, padding=1),
        lambda: ops.adaptive_average_pool(x, 2),
    ):
        with pytest.raises(ValueError, match="must not be empty"):
            run()


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 9),
    span=st.integers(1, 4),
    stride=st.integers(1, 4),
    rate=st.integers(1, 2),
    seed=st.integers(0),
)
def test_same_padding(size: int, span: int, stride: int, rate: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, kernel = rng.normal(size=(1, size, 2)).astype("float32"), rng.normal(size=(span, 2, 3)).astype("float32")
    count = -(-size // stride)
    total = max((count - 1) * stride + (span - 1) * rate + 1 - size, 0)
    padded = np.pad(x, ((0, 0), (total // 2, total - total // 2), (0, 0)))
    for name in ember_ml.get_available_backends():
        with ember_ml.use_backend(name):
            result = host(ops.conv(x, kernel, stride, "same", dilation_rate=rate))
            assert result.shape == (1, count, 3)
            assert_close(result, host(ops.conv(padded, kernel, stride, dilation_rate=rate)), 1e-4)
            back = host(ops.conv_transpose(result, kernel, stride, "same", dilation_rate=rate))
            assert back.shape == (1, count * stride, 2)


def test_transposed_same_is_the_adjoint_of_same(backend: Backend) -> None:
    for span, stride in ((3, 2), (4, 2), (2, 3), (5, 1), (3, 3)):
        kernel = drawn(span, 2, 3)
        x, y = drawn(1, 4 * stride, 2), drawn(1, 4, 3)
        there = host(ops.conv(x, kernel, stride, "same"))
        back = host(ops.conv_transpose(y, kernel, stride, "same"))
        assert_close(np.sum(there * y), np.sum(x * back), 1e-4)


def test_depthwise_and_separable_are_torch(backend: Backend) -> None:
    x, deep, point = drawn(2, 6, 5, 4), drawn(3, 2, 4, 3), drawn(1, 1, 12, 5)
    weight = torch.from_numpy(deep.reshape(3, 2, 1, 12)).movedim((-1, -2), (0, 1))
    expected = F.conv2d(like_torch(x), weight, groups=4, stride=2, padding=1)
    assert_close(host(ops.depthwise_conv(x, deep, 2, 1)), channels_last(expected), 1e-4)
    mixed = F.conv2d(expected, torch.from_numpy(point).movedim((-1, -2), (0, 1)))
    assert_close(host(ops.separable_conv(x, deep, point, 2, 1)), channels_last(mixed), 1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("size", "stride", "pad"), [(2, None, 0), (3, 2, 1), (4, 1, 2), (3, 3, 0)])
def test_pools_are_torch(backend: Backend, rank: int, size: int, stride: int | None, pad: int) -> None:
    x = drawn(2, *(8, 7, 6)[:rank], 3)
    inner = like_torch(x)
    largest = getattr(F, f"max_pool{rank}d")(inner, size, stride, pad)
    mean = getattr(F, f"avg_pool{rank}d")(inner, size, stride, pad, count_include_pad=False)
    for result in both_layouts(lambda v, f: ops.max_pool(v, size, stride, pad, f), x):
        np.testing.assert_array_equal(result, channels_last(largest))
    for result in both_layouts(lambda v, f: ops.average_pool(v, size, stride, pad, f), x):
        assert_close(result, channels_last(mean), 1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 9])
def test_adaptive_pools_are_torch(backend: Backend, rank: int, count: int) -> None:
    x = drawn(2, *(8, 7, 6)[:rank], 3)
    inner = like_torch(x)
    mean = getattr(F, f"adaptive_avg_pool{rank}d")(inner, count)
    largest = getattr(F, f"adaptive_max_pool{rank}d")(inner, count)
    for result in both_layouts(lambda v, f: ops.adaptive_average_pool(v, count, f), x):
        assert_close(result, channels_last(mean), 1e-5)
    for result in both_layouts(lambda v, f: ops.adaptive_max_pool(v, count, f), x):
        np.testing.assert_array_equal(result, channels_last(largest))


def test_normalisations_are_torch(backend: Backend) -> None:
    x = drawn(3, 4, 5, 8)
    scale, offset = drawn(8), drawn(8)
    inner, weight, bias = torch.from_numpy(x), torch.from_numpy(scale), torch.from_numpy(offset)
    assert_close(host(ops.layer_normalization(x, scale, offset)), F.layer_norm(inner, (8,), weight, bias).numpy(), 1e-5)
    assert_close(host(ops.layer_normalization(x, axis=(2, 3))), F.layer_norm(inner, (5, 8)).numpy(), 1e-5)
    assert_close(host(ops.rms_normalization(x, scale)), F.rms_norm(inner, (8,), weight, 1e-5).numpy(), 1e-5)
    first = like_torch(x)
    expected = channels_last(F.group_norm(first, 4, weight, bias))
    assert_close(host(ops.group_normalization(x, 4, scale, offset)), expected, 1e-5)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    expected = channels_last(F.batch_norm(first, torch.from_numpy(mean), torch.from_numpy(variance), weight, bias))
    assert_close(host(ops.batch_normalization(x, mean, variance, -1, offset, scale)), expected, 1e-4)
    assert_close(host(ops.normalize(x, 1, 3)), F.normalize(inner, 3, 1).numpy(), 1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_attention_is_torch(backend: Backend, heads: int, causal: bool) -> None:
    query, key, value = drawn(2, 6, 4, 8), drawn(2, 6, heads, 8), drawn(2, 6, heads, 8)
    inner = [torch.from_numpy(x).transpose(1, 2) for x in (query, key, value)]
    expected = F.scaled_dot_product_attention(*inner, is_causal=causal, enable_gqa=True).transpose(1, 2)
    assert_close(host(ops.dot_product_attention(query, key, value, is_causal=causal)), expected.numpy(), 1e-5)
    mask, bias = RNG.random((2, 1, 6, 6)) < 0.7, drawn(1, 4, 6, 6)
    mask[..., 0] = True
    both = torch.where(torch.from_numpy(mask), torch.from_numpy(bias), -torch.inf)
    if causal:
        both = both.masked_fill(torch.ones(6, 6).triu(1) > 0, -torch.inf)
    expected = F.scaled_dot_product_attention(*inner, attn_mask=both, scale=0.3, enable_gqa=True).transpose(1, 2)
    result = ops.dot_product_attention(query, key, value, mask, bias, 0.3, causal)
    assert_close(host(result), expected.numpy(), 1e-5)


def test_a_query_that_sees_nothing_gives_zero(backend: Backend) -> None:
    x = drawn(1, 3, 2, 4)
    mask = np.ones((3, 3), bool)
    mask[1] = False
    for dtype in ("float32", "float64"):
        for bias in (None, drawn(3, 3)):
            result = host(ops.dot_product_attention(x.astype(dtype), x, x, mask, bias))
            assert not np.any(result[:, 1])
            assert np.all(np.isfinite(result))


@pytest.mark.parametrize("length", [1, 5, 20])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"mask": True}, {"bias": 0.5}], ids=str)
def test_nan_gives_nan(backend: Backend, dtype: str, length: int, options: dict[str, Any]) -> None:
    options = {name: ops.asarray(x) if name != "is_causal" else x for name, x in options.items()}
    for place, rows in (("query", [length - 1]), ("key", None), ("value", None)):
        tensors = {name: drawn(2, length, 2, 4).astype(dtype) for name in ("query", "key", "value")}
        tensors[place][0, slice(None) if rows is None else rows, 1] = np.nan
        if place == "key":
            tensors["value"][0, :, 1, 0] = np.nan
        result = np.isnan(host(ops.dot_product_attention(*map(ops.asarray, tensors.values()), **options)))
        expected = np.zeros(result.shape, bool)
        expected[0, slice(None) if rows is None else rows, 1] = True
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("causal", [False, True])
def test_nan_in_one_head_leaves_the_others(backend: Backend, causal: bool) -> None:
    query, key, value = (drawn(2, 5, 2, 4) for _ in range(3))
    expected = host(ops.dot_product_attention(query, key, value, is_causal=causal)).copy()
    query[0, 3, 1] = expected[0, 3, 1] = np.nan
    assert_close(host(ops.dot_product_attention(query, key, value, is_causal=causal)), expected, 1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_in_forward_mode(backend: Backend, causal: bool) -> None:
    query, key, value, change = (drawn(2, 5, 2, 4) for _ in range(4))

    def attend(value: Any) -> Any:
        return ops.dot_product_attention(query, key, value, is_causal=causal)

    result, tangent = transform.jvp(attend, (ops.asarray(value),), (ops.asarray(change),))
    assert_close(host(result), host(attend(value)), 1e-5)
    # It is linear in the values.
    assert_close(host(tangent), host(attend(change)), 1e-5)


def test_zero_values_are_no_sign_of_nan(backend: Backend) -> None:
    query, key, value = (drawn(2, 5, 2, 4) for _ in range(3))
    value[..., 0] = 0
    for causal in (False, True):
        result = host(ops.dot_product_attention(query, key, value, is_causal=causal))
        assert not np.any(result[..., 0])
        expected = host(ops.dot_product_attention(query, key, np.roll(value, 1, -1), is_causal=causal))
        assert_close(np.roll(result, 1, -1), expected, 1e-5)


@pytest.mark.parametrize("length", [5, 40])
@pytest.mark.parametrize("causal", [False, True])
def test_what_is_hidden_may_be_nan(backend: Backend, causal: bool, length: int) -> None:
    if "cuda" in str(backend.device):
        pytest.skip("the kernels for CUDA count hidden keys that are NaN")
    query, key, value = (drawn(2, length, 2, 4) for _ in range(3))
    mask = np.ones((length, length), bool)
    mask[:, 3] = mask[2] = False
    plain = host(ops.dot_product_attention(query, key, value, mask, is_causal=causal))
    key[0, 3, 1] = np.nan
    result = host(ops.dot_product_attention(query, key, value, mask, is_causal=causal))
    assert_close(result, plain, 1e-5)
    value[0, 3, 1] = np.nan
    result = host(ops.dot_product_attention(query, key, value, mask, is_causal=causal))
    assert not np.any(result[:, 2])


def test_a_query_with_infinite_biases_sees_nothing(backend: Backend) -> None:
    query, key, value = (drawn(2, 5, 2, 4) for _ in range(3))
    mask, bias = np.ones((5, 5), bool), drawn(5, 5)
    bias[2] = -np.inf
    bias[3, 1:], mask[3, 0] = -np.inf, False
    for place in (None, key, value):
        if place is not None:
            place[0, 4, 1] = np.nan
        result = host(ops.dot_product_attention(query, key, value, mask, bias))
        assert not np.any(result[:, [2, 3]])
        assert np.all(np.isfinite(result[1]))
        assert not np.any(host(ops.dot_product_attention(query, key, value, None, bias))[:, 2])


def test_a_mask_of_floats_is_refused(backend: Backend) -> None:
    x, mask = ops.ones((1, 2, 1, 4)), [[0.0, -np.inf], [0.0, 0.0]]
    for given in (mask, ops.asarray(mask), np.asarray(mask, "float32")):
        with pytest.raises(TypeError, match=r"mask must be bool or integers, got float32; bias= adds numbers"):
            ops.dot_product_attention(x, x, x, given)
    for given in ([[True, False], [True, True]], [[1, 0], [1, 1]]):
        assert host(ops.dot_product_attention(x, x, x, given)).shape == (1, 2, 1, 4)


def test_attention_to_no_keys(backend: Backend) -> None:
    query, nothing = drawn(2, 3, 2, 4), drawn(2, 0, 2, 4)
    result = host(ops.dot_product_attention(query, nothing, nothing))
    assert result.shape == (2, 3, 2, 4)
    assert not np.any(result)


def test_a_bias_without_axes_changes_nothing(backend: Backend) -> None:
    query, key, value = (drawn(1, 3, 2, 4) for _ in range(3))
    plain = host(ops.dot_product_attention(query, key, value, is_causal=True))
    assert_close(host(ops.dot_product_attention(query, key, value, None, 2.0, None, True)), plain, 1e-5)
    assert_close(host(ops.dot_product_attention(query, key, value, True, is_causal=True)), plain, 1e-5)


def test_embedding_lookup_checks_its_indices(backend: Backend) -> None:
    for wrong in ([2], [-3]):
        with pytest.raises(IndexError):
            ops.embedding_lookup(drawn(2, 3), wrong)


def test_dropout(backend: Backend) -> None:
    x = np.ones((100, 200), np.float32)
    result = host(ops.dropout(x, 0.3, key=5))
    assert set(np.unique(result)) == {0.0, np.float32(1 / 0.7)}
    assert abs(float(np.mean(result == 0)) - 0.3) < 0.02
    with ember_ml.use_backend("numpy"):
        np.testing.assert_array_equal(result, ops.dropout(x, 0.3, key=5))
    assert np.any(host(ops.dropout(x, 0.3)) != host(ops.dropout(x, 0.3)))
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="rate"):
            ops.dropout(x, rate)


def test_rotary_embedding_turns_pairs(backend: Backend) -> None:
    x, size = drawn(1, 7, 2, 6), 6
    for interleaved in (False, True):
        result = host(ops.rotary_embedding(x, offset=3, base=100.0, interleaved=interleaved))
        for i in range(3):
            one, two = (2 * i, 2 * i + 1) if interleaved else (i, i + 3)
            angles = np.arange(3, 10)[None, :, None] * 100.0 ** (-2 * i / size)
            turned = (x[..., one] + 1j * x[..., two]) * np.exp(1j * angles)
            assert_close(result[..., one] + 1j * result[..., two], turned, 1e-5)


@pytest.mark.parametrize("size", [(5, 7), (10, 21), (3, 4), (1, 1), (13, 2)])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_resize_is_torch(backend: Backend, size: tuple[int, int], mode: str) -> None:
    x = drawn(2, 5, 7, 3)
    inner = like_torch(x)
    if mode == "nearest":
        expected = F.interpolate(inner, size, mode="nearest-exact")
        return assert_close(host(ops.resize(x, size, mode)), channels_last(expected), 1e-6)
    for antialias in (False, True):
        expected = F.interpolate(inner, size, mode=mode, align_corners=False, antialias=antialias)
        for result in both_layouts(lambda v, f, a=antialias: ops.resize(v, size, mode, a, f), x):
            assert_close(result, channels_last(expected), 1e-4)
    return None


@pytest.mark.parametrize(
    ("kernel", "dilation", "pad", "stride"), [((2, 3), 1, 0, 1), (3, 2, 2, 1), (2, 1, (1, 0), (2, 3))]
)
def test_fold_and_unfold_are_torch(backend: Backend, kernel: Any, dilation: int, pad: Any, stride: Any) -> None:
    x = drawn(2, 3, 6, 7)
    columns = F.unfold(torch.from_numpy(x), kernel, dilation, pad, stride)
    np.testing.assert_array_equal(host(ops.unfold(x, kernel, dilation, pad, stride)), columns.numpy())
    expected = F.fold(columns, (6, 7), kernel, dilation, pad, stride)
    result = ops.fold(columns.numpy(), (6, 7), kernel, dilation, pad, stride)
    assert_close(host(result), expected.numpy(), 1e-5)


PLANE, TILES = np.zeros((1, 4, 4, 2), np.float32), np.zeros((3, 3, 2, 4), np.float32)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("conv", (PLANE, TILES, 1, "full")),
        ("conv", (PLANE, TILES, 0)),
        ("conv", (PLANE, TILES, (1, 1, 1))),
        ("conv", (PLANE, TILES, 1, -1)),
        ("conv", (PLANE, TILES, 1, ((1, 1, 1), (0, 0)))),
        ("conv", (PLANE, TILES, 1, "valid", "channels_middle")),
        ("conv", (PLANE, TILES, 1, "valid", "channels_last", 2)),
        ("conv", (PLANE, TILES, 1, "valid", "channels_last", 1, 2)),
        ("conv", (PLANE, TILES[0])),
        ("conv", (PLANE[0, 0], TILES)),
        ("conv", (PLANE, np.zeros((5, 1, 2, 4), np.float32))),
        ("conv", (PLANE, np.zeros((3, 3, 3, 4), np.float32))),
        ("conv_transpose", (PLANE, TILES)),
        ("conv_transpose", (PLANE, np.swapaxes(TILES, -1, -2), 1, 4)),
        ("depthwise_conv", (PLANE, np.zeros((3, 3, 3, 1), np.float32))),
        ("max_pool", (PLANE, 5)),
        ("max_pool", (PLANE, 2, 1, 2)),
        ("average_pool", (PLANE, 0)),
        ("adaptive_max_pool", (PLANE, (2, 2, 2))),
        ("adaptive_average_pool", (PLANE, 0)),
        ("batch_normalization", (PLANE, np.zeros(3, np.float32), np.zeros(2, np.float32))),
        ("layer_normalization", (PLANE, np.zeros(3, np.float32))),
        ("rms_normalization", (PLANE, np.zeros(3, np.float32))),
        ("rms_normalization", (PLANE, None, (1, -3))),
        ("group_normalization", (PLANE, 3)),
        ("group_normalization", (PLANE, 1, None, None, 0)),
        ("group_normalization", (PLANE, 2, np.zeros(3, np.float32))),
        ("dot_product_attention", (PLANE, PLANE[..., :1], PLANE)),
        ("dot_product_attention", (PLANE, PLANE[:, :, :3], PLANE[:, :, :3])),
        ("dot_product_attention", (PLANE[0], PLANE[0], PLANE[0])),
        ("dot_product_attention", (PLANE, PLANE, PLANE, np.ones((3, 3), bool))),
        ("normalize", (PLANE, -1, 0)),
        ("rotary_embedding", (PLANE[..., :1],)),
        ("rotary_embedding", (PLANE, [0, 1, 2])),
        ("resize", (PLANE, (2, 2), "lanczos")),
        ("resize", (PLANE, (2, 0))),
        ("resize", (PLANE, 3)),
        ("resize", (PLANE, (2, 2), "nearest", True)),
        ("resize", (PLANE[0, 0], (2, 2))),
        ("fold", (PLANE[0], (3, 3), 2)),
        ("unfold", (PLANE[0], 2)),
        ("unfold", (PLANE, 5)),
    ],
)
def test_what_does_not_fit_is_a_value_error(backend: Backend, name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - every engine has its own message
        getattr(ops, name)(*args)


def test_statistics_of_a_batch_have_gradients() -> None:
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)

    def standard(v: Any) -> Any:
        return ops.batch_normalization(v, v.mean(0), v.var(0, correction=0))

    assert torch.autograd.gradcheck(standard, (x,))


def test_gradients_where_they_are_easily_lost() -> None:
    x, offset = torch.zeros(2, 4, requires_grad=True), torch.ones(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(ops.normalize(x).sum(), x)
    assert torch.isfinite(gradient).all()
    (gradient,) = torch.autograd.grad(ops.group_normalization(x, 2, None, offset).sum(), offset)
    assert gradient.tolist() == [2.0] * 4
    query = torch.randn(1, 3, 2, 4, requires_grad=True)
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
    (gradient,) = torch.autograd.grad(ops.dot_product_attention(query, query, query, mask).sum(), query)
    assert torch.isfinite(gradient).all()


def test_a_depthwise_kernel_has_axes_of_channels(backend: Backend) -> None:
    with pytest.raises(ValueError, match="depthwise_conv: kernel must have spatial axes and two of channels, got"):
        ops.depthwise_conv(ops.ones((1, 4, 1)), ops.ones((2, 1)))


@pytest.mark.parametrize(
    ("channels", "kernel", "groups"), [(4, (2, 1, 3), 3), (4, (2, 2, 3), 2), (4, (2, 4, 3), 0)], ids=str
)
def test_groups_divide_channels_and_filters(
    channels: int, kernel: tuple[int, ...], groups: int, backend: Backend
) -> None:
    with pytest.raises(ValueError, match=f"the channels, {channels}, and the filters, {kernel[-1]}, got {groups}"):
        ops.conv(ops.ones((1, 5, channels)), ops.ones(kernel), groups=groups)


def test_rotary_offsets_may_need_64_bits(backend: Backend) -> None:
    """The positions are exact integers before they are angles."""
    x, offset = ops.asarray(np.arange(12.0).reshape(1, 3, 4), dtype="float64"), 3_000_000_000
    positions = ops.asarray(np.arange(3) + offset)
    expected = host(ops.rotary_embedding(x, positions))
    np.testing.assert_array_equal(host(ops.rotary_embedding(x, offset=offset)), expected)
    assert not np.allclose(expected, host(ops.rotary_embedding(x)))


def test_the_mean_of_equal_elements_is_the_element(backend: Backend) -> None:
    """Also at the borders, where the windows hold fewer of them."""
    for shape, window in (((1, 12, 1), 5), ((1, 12, 1), 9), ((1, 8, 8, 1), (3, 5))):
        x = np.full(shape, 3.0, np.float32)
        np.testing.assert_array_equal(host(ops.average_pool(x, window, 1, "same")), x)
