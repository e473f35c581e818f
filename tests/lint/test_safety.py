"""Safe fixes do not change a program's results: values, dtypes, shapes and errors."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
import torch

import ember_ml
from emberlint.config import Config
from emberlint.lint import fixes

HEAD = "import numpy as np\nimport torch\nimport mlx.core as mx\nfrom ember_ml import ops\n\n\n"
PARAMETERS = "x: np.ndarray, y: np.ndarray | None, t: torch.Tensor, m: mx.array, n: int, a: float, b: bool, u"
CONFIG = Config(select=("EMB1", "EMB2", "EMB3"), ignore=("EMB101",))


def fixed(expression: str, *, unsafe: bool = False) -> str:
    """Expression after the safe fixes, or all fixes, in a function with parameters of all types."""
    before = f"{HEAD}def f({PARAMETERS}):\n    return {expression}\n"
    after = fixes.fixed(before.encode(), "module.py", CONFIG, unsafe=unsafe).data.decode()
    return after.rpartition("    return ")[2].rstrip("\n")


@pytest.mark.parametrize(
    "expression",
    [
        # Python's float is float32 in ember, and other spellings of dtypes are not accepted.
        "np.sum(x, dtype=float)",
        'np.sum(x, dtype="f4")',
        # The operation does not cast a complex array to a real dtype.
        'np.sum(x, dtype="float32")',
        # An unknown value may be None, text, or an object.
        "np.ndim(u)",
        "np.shape(u)",
        "np.all(u)",
        "np.all(y)",
        "np.sum(x, axis=u)",
        'np.unique(np.array(["a", "b"]))',
        "np.unique(np.zeros(3, dtype=object))",
        "np.ravel(np.zeros(3, object))",
        # Arrays as options, and options with another meaning.
        "np.roll(x, x)",
        "np.reshape(x, None)",
        "np.squeeze(x, axis=0)",
        "np.cumsum(x, axis=0)",
        "np.take(x, x)",
        "np.full_like(x, 300)",
        "np.pad(x, -1)",
        "np.hsplit(x, n)",
        # Results with another order, another container or another error.
        "np.unique_values(x)",
        "np.broadcast_arrays(x, x)",
        "np.meshgrid(x, x)",
        "np.unravel_index(x, (2, 3))",
        "torch.bincount(t)",
        "torch.unravel_index(t, (2, 3))",
        "torch.zeros(3, dtype=torch.get_default_dtype())",
        # NumPy scalars have dtypes and methods.
        "x * np.sqrt(2.0)",
        "x / np.prod(x.shape)",
        "np.prod(x.shape).astype(int)",
        "np.abs(b)",
        "~np.isnan(a)",
        # Arguments that `math` does not accept.
        "np.isnan(1j)",
        "np.isnan(x.shape)",
        "np.abs((1, -2))",
        "np.prod(3)",
        "int(np.prod((2, 3), 0))",
        "int(np.gcd(n, 3, 6))",
        "float(np.log(2.0, 3.0))",
        "float(np.sin(True))",
        "int(np.ceil(n))",
        # Only functions have `correction`, and MLX does not have it at all.
        "x.std(ddof=1)",
        "np.ma.std(x, ddof=1)",
        "mx.std(m, ddof=1)",
        # A mask, and not a condition.
        "x == None",
        "np.where(x == None, 0, x)",
        # Ember's dtypes are equal to their names.
        "u == np.float32",
        "type(u) == np.float64",
        "t.dtype == np.float32",
        "u.dtype == np.float32",
        "a is np.nan",
        "u if a is not np.inf else np.inf",
        # The result itself is used, and not only its truth value.
        "ops.greater(n, 1) or a",
        "1 if ops.subtract(b, True) else 2",
        "1 if ops.equal(ops.multiply(n, n), 0) else 2",
    ],
)
def test_expressions_that_may_differ_have_no_safe_fix(expression: str) -> None:
    assert fixed(expression) == expression


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("np.sum(x, axis=0, keepdims=True)", "ops.sum(x, axis=0, keepdims=True)"),
        ("np.sum(x, axis=n)", "ops.sum(x, axis=n)"),
        ("np.sum(x, axis=(0, -1))", "ops.sum(x, axis=(0, -1))"),
        ("np.reshape(x, (2, -1))", "ops.reshape(x, (2, -1))"),
        ("np.reshape(x, x.shape)", "ops.reshape(x, x.shape)"),
        ("np.zeros_like(x, dtype=np.float32)", "ops.zeros_like(x, dtype=ops.float32)"),
        ("np.nonzero([1, 0])", "ops.nonzero([1, 0])"),
        ("int(np.prod(x.shape))", "int(math.prod(x.shape))"),
        ("int(np.ceil(n / 2))", "int(math.ceil(n / 2))"),
        ("float(np.sqrt(2.0))", "float(math.sqrt(2.0))"),
        ("1 if np.isnan(a) else 2", "1 if math.isnan(a) else 2"),
        ("not np.isfinite(a)", "not math.isfinite(a)"),
        ("np.std(x, ddof=1)", "np.std(x, correction=1)"),
        ("t.std(unbiased=False)", "t.std(correction=0)"),
        ("1 if y == None else 2", "1 if y is None else 2"),
        ("t == None", "t is None"),
        ("x.dtype == np.float32", "ops.float32 == x.dtype"),
        ("m.dtype != mx.float32", "ops.float32 != m.dtype"),
        ("np.float32 != x.dtype", "ops.float32 != x.dtype"),
        ("np.inf  # it is np.infinite", "ops.inf  # it is np.infinite"),
        ("1 if ops.greater(n, 1) else 2", "1 if n > 1 else 2"),
        ("1 if ops.logical_or(n, b) else 2", "1 if n or b else 2"),
        ("not ops.logical_and(1, n)", "not (1 and n)"),
        ("1 if ops.logical_or(n, 1) and b else 2", "1 if (n or 1) and b else 2"),
        ("1 if b and ops.logical_or(n, 1) else 2", "1 if b and (n or 1) else 2"),
    ],
)
def test_expressions_that_cannot_differ_have_a_safe_fix(before: str, after: str) -> None:
    assert fixed(before) == after


ARRAYS = [
    (np.arange(size) * 2 % 5).astype(dtype).reshape(shape)
    for dtype in ("int8", "uint16", "int64", "float16", "float32", "float64", "complex64")
    for shape, size in (((), 1), ((0,), 0), ((3,), 3), ((2, 3), 6), ((0, 3), 0), ((2, 1, 2), 4))
] + [np.array([True, False]), np.array([[np.nan, -np.inf, -0.0]]), np.array([np.inf, 1], dtype="complex128")]

PLAIN = """
    all any argwhere asarray atleast_1d atleast_2d copy cumsum diag diff flip hstack imag isfinite isinf isnan ndim
    negative nonzero ones_like prod ravel real shape sign size squeeze stack sum transpose unique zeros_like
"""
CALLS = [
    *(f"np.{name}(x)" for name in PLAIN.split()),
    *(f"np.sum(x, axis={axis})" for axis in ("0", "-1", "5", "None", "(0, 1)", "()", "(0, 0)", "n")),
    *(f"np.any(x, axis={axis}, keepdims={keep})" for axis, keep in itertools.product(("0", "-2", "None"), (True, 0))),
    *(f"np.reshape(x, {shape})" for shape in ("-1", "(3, 2)", "(-1, 0)", "x.shape", "n")),
    *(f"np.flip(x, {axis})" for axis in ("0", "1", "(0, 1)")),
    "np.moveaxis(x, 0, -1)",
    "np.swapaxes(x, 0, 1)",
    "np.roll(x, 1)",
    "np.repeat(x, 2)",
    "np.zeros_like(x, dtype=np.int8)",
    "int(np.prod(x.shape))",
    "int(np.ceil(a / 2))",
    "bool(np.isnan(a))",
    "x.dtype == np.float64",
    "np.std(x, ddof=1)",
]


@pytest.mark.parametrize("call", CALLS)
def test_safe_fixes_keep_the_results(call: str) -> None:
    after = fixed(call)
    with ember_ml.use_backend("numpy"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in ARRAYS:
            expected, found = (_result(_compiled(text), x) for text in (call, after))
            if isinstance(expected, Exception):
                assert isinstance(found, _builtin(expected)), (after, x, found)
            else:
                assert not isinstance(found, Exception), (after, x, found)
                _assert_same(found, expected)


@pytest.mark.parametrize(
    "expression",
    [
        "np.random.shuffle(x)",
        "np.where(x > 0, 'above', 'below')",
        "np.empty(3, dtype=object)",
        "torch.lu(t)",
        "torch.nn.functional.gelu(t, approximate='tanh')",
        "mx.linalg.lu(m)",
        "mx.random.categorical(m)",
    ],
)
def test_functions_with_another_meaning_stay(expression: str) -> None:
    assert fixed(expression, unsafe=True) == expression


def test_arrays_are_copied_as_before() -> None:
    assert fixed("np.array(x)", unsafe=True) == "ops.array(x, copy=True)"
    assert fixed("torch.tensor(u)", unsafe=True) == "ops.asarray(u, copy=True)"
    assert fixed("np.array([a, 1.0])", unsafe=True) == "ops.array([a, 1.0])"


UNSAFE_CALLS = """
    torch.mm(t, t.T); torch.transpose(t, 0, 1); torch.clamp(t, 0, 1); torch.unsqueeze(t, 1); torch.cat([t, t],
    dim=1); torch.sum(t, 1, True); torch.mean(t, dim=1, keepdim=True); torch.max(t); torch.max(t, 1); torch.std(t);
    torch.var(t, dim=0); torch.equal(t, t); torch.nanmedian(t); torch.median(t); torch.cummax(t, 0);
    torch.gradient(t, dim=0); torch.softmax(t, 0); torch.zeros(2, 3); torch.ones(t.size(0), 3); torch.flip(t, (0,));
    torch.take_along_dim(t, t.long().abs()); torch.norm(t); torch.norm(t, 1); torch.nonzero(t);
    torch.unravel_index(torch.tensor([1, 5]), (2, 3)); torch.cosine_similarity(t[None], t[None]);
    torch.nn.functional.normalize(t[None]); torch.nn.functional.softmax(t[None]); torch.nn.functional.mse_loss(t,
    -t); torch.nn.functional.pad(t, (1, 2)); torch.sum(t, dtype=torch.float64); t.repeat(2, 3); t.size(0); t.size();
    t.type(torch.int32); t.to(torch.float64); t.sum(dtype=torch.float64); t.byte(); t.median(); t.norm(1); t.max(1);
    t.std(0); t.var(unbiased=False); t.view(-1); t.transpose(0, 1); t.unfold(0, 2, 1); t.transpose(0,
    1).contiguous().view(-1); t.float().to(torch.half); t.new_zeros(3, dtype=torch.int32); t.type(); mx.softmax(m);
    mx.softmax(m, axis=0); mx.zeros(3, mx.int32); mx.sum(m, 0, True); mx.var(m, ddof=1); m.astype(mx.int32)
"""


@pytest.mark.parametrize("call", [" ".join(call.split()) for call in UNSAFE_CALLS.split(";")])
def test_unsafe_fixes_keep_the_values(call: str) -> None:
    after = fixed(call, unsafe=True)
    assert fixed(after, unsafe=True) == after
    t = torch.tensor([[0.5, -1.5, 2.25], [3.0, -0.25, 1.0]])
    with ember_ml.use_backend("mlx" if "m" in call.partition(".")[0] else "torch"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"torch": torch, "mx": mx, "ops": ember_ml.ops, "t": t, "m": mx.array(t.numpy())}
        expected, found = (eval(text, dict(names)) for text in (call, after))
    if isinstance(expected, (str, tuple)):
        assert type(found) is type(expected)
    for one, other in zip(*(part if isinstance(part, tuple) else (part,) for part in (found, expected)), strict=True):
        np.testing.assert_equal(np.shape(one), np.shape(other))
        if not isinstance(other, str):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5)


def _compiled(expression: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"math": math, "np": np, "ops": ember_ml.ops}
    exec(f"def f(x, n, a):\n    return {expression}\n", names)
    function: Callable[..., Any] = names["f"]
    return function


def _result(function: Callable[..., Any], x: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(x, 2, 2.5)
    except Exception as error:
        return error


def _builtin(error: Exception) -> type:
    """Built-in class of an error."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
        return
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-3 if np.asarray(expected).dtype == "float16" else 1e-6)


@pytest.mark.parametrize(
    ("library", "after"), [("ember_ml.types", "return ops.abs(x)"), ("tinygrad", "return x.abs()")]
)
def test_the_tensor_of_another_library_keeps_its_methods(library: str, after: str) -> None:
    before = f"from {library} import Tensor\n\n\ndef f(x: Tensor | None):\n    return x.abs()\n"
    assert fixes.fixed(before.encode(), "module.py", CONFIG).data.decode().endswith(f"    {after}\n")


@pytest.mark.parametrize("connective", ["logical_and", "logical_or"])
@pytest.mark.parametrize(
    "form", ["not {}", "1 if not {} else 2", "1 if {} and b else 2", "1 if b or {} else 2", "[n for n in [1] if {}]"]
)
def test_conditions_keep_their_parentheses(connective: str, form: str, backend: str) -> None:
    before = form.format(f"ops.{connective}(n, ops.greater(n, 1))")
    after = fixed(before)
    assert "logical" not in after
    for n, b in itertools.product((0, 1, 2), (False, True)):
        assert eval(after, {"n": n, "b": b}) == eval(before, {"ops": ember_ml.ops, "n": n, "b": b})


def test_dtypes_are_compared_on_every_engine(backend: str) -> None:
    x = ember_ml.ops.asarray([1.0], dtype="float32")
    assert eval(fixed("x.dtype == np.float32"), {"ops": ember_ml.ops, "x": x}) is True
    assert eval(fixed("x.dtype != np.float32"), {"ops": ember_ml.ops, "x": x}) is False


@pytest.mark.parametrize(
    "body",
    [
        "def f():\n    a = np.pi\n    ops = 3\n    return a\n",
        "def g(ops):\n    def inner():\n        return np.pi\n    return inner()\n\n\ndef f():\n    return g(3)\n",
        "def f():\n    def inner():\n        return np.pi\n    ops = 3\n    return inner()\n",
        "def g():\n    global ops\n    ops = 3\n\n\ndef f():\n    g()\n    return np.pi\n",
        "def f():\n    a = np.pi\n    from os import path as ops\n    return a\n",
        "def f():\n    a = np.pi\n    import sys, os.path as ops\n    return a\n",
        "def f():\n    a = float(np.sqrt(2.0))\n    math = 3\n    return a\n",
        "def f():\n    @(ops := staticmethod)\n    def inner():\n        return 1\n\n    return np.pi\n",
        "def f():\n    match [3]:\n        case [*ops]:\n            return np.pi\n",
        "def f():\n    try:\n        raise KeyError\n    except KeyError as ops:\n        return np.pi\n",
        "from ember_ml import ops\n\n\ndef f(ops=3):\n    return np.pi\n",
        "from ember_ml import ops\n\n\ndef f():\n    a = np.pi\n    ops = 3\n    return a\n",
        "from ember_ml import ops\nops = 3\n\n\ndef f():\n    return np.pi\n",
        "from ember_ml import ops\ndel ops\n\n\ndef f():\n    return np.pi\n",
    ],
)
def test_a_name_that_the_file_binds_is_not_used(body: str) -> None:
    before = f"import numpy as np\n{body}"
    after = fixes.fixed(before.encode(), "module.py", CONFIG).data.decode()
    results = []
    for text in (before, after):
        names: dict[str, Any] = {}
        exec(text, names)
        results.append(names["f"]())
    assert after != before
    assert results[0] == results[1]
