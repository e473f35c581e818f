"""Ports of JAX programs: rewritten code, unchanged code, the report, and equal results on every engine."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from emberlint import cli
from emberlint.commands import port
from emberlint.config import Config
from emberlint.knowledge import catalogue
from emberlint.rewrite.names import operation_for

IMPORTS = """
from functools import partial
import jax
import jax.numpy as jnp
from jax import lax
"""

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")


def ported(text: str, imports: str = IMPORTS) -> port.Ported:
    """A ported program, which a second port leaves as it is."""
    data = (imports + textwrap.dedent(text)).encode()
    done = port.ported(data, "program.py", "jax", Config())
    assert port.ported(done.after, "program.py", "jax", Config()).after == done.after
    return done


def body(done: port.Ported) -> str:
    """Lines of a ported program that are not imports."""
    lines = done.after.decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("import ", "from "))).strip()


FUNCTION = "def f(x: jax.Array, y: jax.Array, i: int, key, u):\n    return {}\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("jnp.exp(x)", "ops.exp(x)"),
        ("jnp.sum(x, 0)", "ops.sum(x, 0)"),
        ("jnp.where(x > 0, x, y)", "ops.where(x > 0, x, y)"),
        ("jnp.where(x > 0)", "ops.nonzero(x > 0)"),
        ("jnp.array(x)", "ops.asarray(x, copy=True)"),
        ("jnp.array([1.0, 2.0])", "ops.asarray([1.0, 2.0])"),
        ("jnp.float32(2)", "ops.asarray(2, dtype=ops.float32)"),
        ("jnp.empty((2, 3))", "ops.zeros((2, 3))"),
        ("jnp.std(x, ddof=1)", "ops.std(x, correction=1)"),
        ("jnp.linalg.norm(x)", "ops.norm(x)"),
        ("jnp.trace(x)", "ops.trace(x, axis1=0, axis2=1)"),
        ("jnp.fft.fft(x)", "ops.fft(x)"),
        ("x.mean(axis=0)", "ops.mean(x, axis=0)"),
        ("x.sort()", "ops.sort(x)"),
        ("x.astype(jnp.int32)", "ops.cast(x, ops.int32)"),
        ("x.T", "ops.transpose(x)"),
        ("isinstance(u, jax.Array)", "ops.is_tensor(u)"),
        ("jax.nn.relu(x)", "ops.relu(x)"),
        ("jax.nn.gelu(x)", "ops.gelu(x, approximate=True)"),
        ("jax.nn.gelu(x, approximate=False)", "ops.gelu(x, approximate=False)"),
        ("jax.nn.softmax(x, axis=-1)", "ops.softmax(x, axis=-1)"),
        ("jax.scipy.special.softmax(x)", "ops.softmax(x, axis=None)"),
        ("jax.scipy.special.log_softmax(x)", "ops.log_softmax(x, axis=None)"),
        ("jax.nn.dot_product_attention(x, x, x, x)", "ops.dot_product_attention(x, x, x, bias=x)"),
        ("jax.nn.one_hot(x, 10)", "ops.one_hot(x, 10)"),
        ("jax.scipy.special.expit(x)", "ops.sigmoid(x)"),
        ("jax.scipy.special.logsumexp(x)", "ops.logsumexp(x)"),
        ("lax.max(x, y)", "ops.maximum(x, y)"),
        ("lax.rsqrt(lax.mul(x, y))", "ops.rsqrt(ops.multiply(x, y))"),
        ("lax.select(x > 0, x, y)", "ops.where(x > 0, x, y)"),
        ("lax.concatenate([x, y], 0)", "ops.concat([x, y], 0)"),
        ("lax.cumsum(x)", "ops.cumsum(x, axis=0)"),
        ("lax.stop_gradient(x)", "ops.stop_gradient(x)"),
        ("lax.scan(u, x, y)", "ops.scan(u, x, y)"),
        ("lax.fori_loop(0, i, u, x)", "ops.fori_loop(0, i, u, x)"),
        ("lax.cond(x.any(), jnp.sin, jnp.cos, y)", "ops.cond(ops.any(x), ops.sin, ops.cos, y)"),
        ("lax.while_loop(u, u, x)", "ops.while_loop(u, u, x)"),
        (
            "lax.while_loop(u, u, (x, y))",
            "ops.while_loop(u, lambda variables: (u(variables),), ((x, y),))[0]",
        ),
        ("jax.grad(u)(x)", "ember_ml.grad(u)(x)"),
        ("jax.grad(u, argnums=(0, 1), has_aux=True)", "ember_ml.grad(u, argnums=(0, 1), has_aux=True)"),
        ("jax.vmap(jnp.dot, in_axes=(0, None))(x, y)", "ember_ml.vmap(ops.dot, in_axes=(0, None))(x, y)"),
        ("jax.jit(u, static_argnums=(1,))", "ember_ml.compile(u)"),
        ("partial(jax.jit, static_argnames='n')(u)", "ember_ml.compile(u)"),
        ("partial(jax.vmap, in_axes=1)(u)", "partial(ember_ml.vmap, in_axes=1)(u)"),
        ("jax.jit(jax.value_and_grad(u))", "ember_ml.compile(ember_ml.value_and_grad(u))"),
        ("jax.jacrev(u)(x)", "ember_ml.jacobian(u)(x)"),
        ("jax.vjp(u, x, y)", "ember_ml.vjp(u, x, y)"),
        ("jax.tree.map(jnp.square, u)", "tree.map(ops.square, u)"),
        ("x.at[i].set(1)", "ops.index_update(x, i, 1)"),
        ("x.at[i, 1:].add(y, unique_indices=True)", "ops.index_add(x, (i, slice(1, None)), y)"),
        ("x.at[:, ::2].set(y).sum()", "ops.sum(ops.index_update(x, (slice(None), slice(None, None, 2)), y))"),
        ("x.at[..., None].get()", "ops.index_get(x, (..., None))"),
        ("u.at[x > 0].set(0)", "ops.index_update(u, x > 0, 0)"),
        ("jax.random.key(0)", "ops.random.key(0)"),
        ("jax.random.split(key, 3)", "ops.random.split(key, 3)"),
        ("jax.random.normal(key, (2, 3))", "ops.random.normal(key=key, shape=(2, 3))"),
        (
            "jax.random.uniform(key, (2,), minval=-1.0)",
            "ops.random.uniform(key=key, shape=(2,), low=-1.0)",
        ),
        ("jax.random.bernoulli(key, 0.3, (4,))", "ops.random.bernoulli(key=key, p=0.3, shape=(4,))"),
        ("jax.random.choice(key, x, (2,))", "ops.random.choice(key=key, x=x, shape=(2,))"),
    ],
)
def test_expressions(before: str, expected: str) -> None:
    assert body(ported(FUNCTION.format(before))).partition("return ")[2] == expected


@pytest.mark.parametrize(
    "text",
    [
        "jnp.sum(x, out_sharding=u)",
        "jnp.dot(x, y, precision='high')",
        "jnp.piecewise(x, u, u)",
        "jax.nn.identity(x)",
        "jax.nn.softmax(x, where=u)",
        "lax.round(x)",
        "lax.div(x, y)",
        "lax.clamp(0, x, 1)",
        "lax.dynamic_slice(x, (0,), (2,))",
        "lax.cond(u, u, u, operand=x)",
        "lax.map(u, x, batch_size=2)",
        "jax.grad(u, holomorphic=True)",
        "jax.vmap(u, axis_name='i')",
        "jax.jit(u, out_shardings=u)",
        "jax.checkpoint(u, policy=u)",
        "jax.tree.map(u, u, is_leaf=u)",
        "jax.tree.leaves(u)",
        "jax.pmap(u)",
        "jax.random.categorical(key, x)",
        "jax.random.bernoulli(key, x)",
        "jax.random.key(0, impl='rbg')",
        "x.at[i].multiply(2)",
        "x.at[i].set(1, mode='drop')",
    ],
)
def test_what_is_not_rewritten_stays_and_is_listed(text: str) -> None:
    done = ported(FUNCTION.format(text))
    assert body(done).partition("return ")[2] == text
    line = done.after.decode().splitlines().index(f"    return {text}") + 1
    assert [finding for finding in done.left if finding.line == line]


def test_decorators_and_imported_names() -> None:
    done = ported(
        """
        from jax import grad, jit, random
        from jax.nn import relu

        @jit
        def f(x):
            return relu(x).sum()

        @partial(jit, static_argnums=1)
        def g(x, n):
            return grad(f)(x) * n

        @jax.checkpoint
        def h(key):
            return random.normal(random.fold_in(key, 1))
        """,
    )
    text = done.after.decode()
    assert "jax" not in text
    assert text.count("@ember_ml.compile\n") == 2
    assert "@ember_ml.checkpoint\n" in text
    assert "ember_ml.grad(f)(x) * n" in text
    assert "ops.random.normal(key=ops.random.fold_in(key, 1))" in text


def test_augmented_assignments_do_not_change_in_place() -> None:
    done = ported(
        """
        def f(x: jax.Array, u, names: list):
            count = 0
            count += 1
            x += jnp.ones(3)
            x *= 2 + count
            u += 1
            names += ["x"]
            return x, u
        """
    )
    text = done.after.decode()
    assert "x = x + ops.ones(3)" in text
    assert "x = x * (2 + count)" in text
    assert "count += 1" in text
    assert [note.message.partition("`")[2].partition("`")[0] for note in done.notes.changes] == ["u += 1"]


def test_the_report_names_what_changes() -> None:
    done = ported(
        """
        def f(key, w):
            z = jnp.zeros(2, dtype=jnp.complex64)
            return jax.random.normal(key), jax.grad(f)(w), jnp.linalg.qr(z), jnp.histogram(w), jnp.linalg.eigvals(w)
        """
    )
    messages = "\n".join(note.message for note in done.notes.changes)
    assert "draws other numbers of the same distribution" in messages
    assert "is the conjugate of JAX's gradient" in messages
    assert "other signs of the vectors" in messages
    assert "counts that are integers" in messages
    assert "has the eigenvalues in ascending order" in messages


def test_gradients_of_real_programs_are_not_reported() -> None:
    done = ported("def f(w):\n    return jax.grad(f)(w)\n")
    assert done.notes.changes == []


def test_libraries_of_jax_are_listed() -> None:
    done = ported("import optax\nfrom flax import linen\n\nx = jnp.exp(1)\n")
    messages = [finding.message for finding in done.left]
    assert "`optax` computes with JAX's arrays alone; use `ember_ml.optim`" in messages
    assert "`flax` computes with JAX's arrays alone; use `ember_ml.nn`" in messages


def test_names_that_the_file_uses_are_not_shadowed() -> None:
    done = ported("def f(tree, ops):\n    return jax.tree.map(jnp.exp, tree)\n")
    assert "ember_tree.map(ember_ops.exp, tree)" in done.after.decode()


def test_other_engines_and_objects_stay() -> None:
    done = ported(
        """
        import numpy as np
        import pandas as pd

        frame = pd.DataFrame()
        frame.at[0, "a"] = 1
        host = np.exp(np.ones(3))
        host += 1
        """
    )
    assert "np.exp(np.ones(3))" in done.after.decode()
    assert 'frame.at[0, "a"] = 1' in done.after.decode()


NETWORK = '''
"""A network in pure JAX, with what training programs use."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import jit, lax, random


def init(key, sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (m, n)) * jnp.sqrt(2.0 / m), "b": jnp.zeros((n,))}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def given(sizes):
    return [
        {"w": jnp.cos(jnp.arange(m * n, dtype=jnp.float32)).reshape(m, n), "b": jnp.zeros(n)}
        for m, n in zip(sizes[:-1], sizes[1:])
    ]


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.gelu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jit
def step(params, x, y):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return value, jax.tree.map(lambda p, g: p - 0.05 * g, params, gradient)


def train(params, steps):
    x = jnp.linspace(-1.0, 1.0, 24).reshape(12, 2)
    y = jnp.sum(x**2, axis=1, keepdims=True)
    losses = []
    for _ in range(steps):
        value, params = step(params, x, y)
        losses.append(float(value))
    return losses


@partial(jax.jit, static_argnums=(1,))
def powers(x, n):
    return jnp.stack([x**k for k in range(n)])


def updated(x: jax.Array) -> jax.Array:
    x = x.at[0, 1:].set(0.0)
    x = x.at[:, 0].add(jnp.float32(2.0))
    x = x.at[jnp.array([1, 1]), 2].add(1.0)
    x += 1
    return x


def discounted(rewards, rate):
    def body(total, reward):
        total = reward + rate * total
        return total, total

    return lax.scan(body, jnp.zeros(()), rewards, reverse=True)[1]


def newton(a):
    def going(state):
        return state[0] < 5

    def improved(state):
        i, x = state
        return i + 1, 0.5 * (x + a / x)

    return lax.while_loop(going, improved, (0, a))[1]


def norms(x):
    return jax.vmap(lambda row: jnp.sqrt(jnp.dot(row, row)))(x)
'''
CHECK = """
import json, sys
import program

def plain(x):
    import numpy as np
    return np.asarray(x.detach().numpy() if hasattr(x, "detach") else x).tolist()

a, rows = {array}([1.0, 2.0, 3.0]), {array}([[1.0, 2.0, 2.0], [0.0, 3.0, 4.0]])
print(json.dumps([
    program.train(program.given([2, 8, 1]), 20),
    plain(program.powers(a, 3)), plain(program.updated(rows)), plain(program.discounted(a, 0.5)),
    plain(program.newton(a[1])), plain(program.norms(rows)),
    program.train(program.init({key}(0), [2, 8, 1]), 100)[-1] < 0.5,
]))
"""


def results(folder: Path, engine: str = "") -> list[object]:
    """What the program computes: with JAX itself, or with an engine of ember."""
    import json

    names = {"array": "jnp.asarray", "key": "jax.random.key"} if not engine else {}
    head = "import jax, jax.numpy as jnp" if not engine else "from ember_ml import ops"
    names = names or {"array": "ops.asarray", "key": "ops.random.key"}
    environment = {
        **os.environ,
        "EMBER_ML_BACKEND": engine or "numpy",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
    }
    code = f"{head}\n{CHECK.format(**names)}"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout)
    return found


@needs_jax
def test_the_network_computes_the_same_on_every_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
        (folder / "program.py").write_text(NETWORK)
    assert cli.main(["port", str(after), "--from", "jax"]) == 0
    printed = capsys.readouterr().out
    assert "Changes behavior (1): results may differ from JAX's" in printed
    assert "To be decided by hand" not in printed
    assert "int64 in ember" in printed
    assert "NumPy's" not in printed
    text = (after / "program.py").read_text()
    assert "import jax" not in text
    assert "from jax" not in text
    expected = results(before)
    for engine in ("numpy", "torch", "jax"):
        found = results(after, engine)
        assert found[-1] is True
        for one, other in zip(found[:-1], expected[:-1], strict=True):
            assert _is_close(one, other), (engine, one, other)


def _is_close(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_is_close(*pair) for pair in zip(one, other, strict=True))
    return bool(one == pytest.approx(other, rel=1e-3, abs=1e-5))


@needs_jax
def test_functions_of_lax_agree_with_their_operations() -> None:
    """Elementwise functions with one and two arguments, on NumPy."""
    code = """
        import sys
        import numpy as np
        from jax import lax
        from ember_ml import ops
        x = np.linspace(0.1, 0.9, 8, dtype=np.float32)
        y = x[::-1].copy()
        n = np.array([7, -7, 5], np.int32)
        m = np.array([3, 3, -2], np.int32)
        for pair in sys.argv[1:]:
            name, operation, kind = pair.split(":")
            given = {"x": (x,), "xy": (x, y), "nm": (n, m), "n": (n,), "z": (x + 1j * y,)}[kind]
            mine, theirs = getattr(ops, operation)(*given), getattr(lax, name)(*given)
            np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=1e-5, err_msg=pair)
    """
    pairs = []
    for path in catalogue.load()["engines"]["jax"]["functions"]:
        space, _, name = path.rpartition(".")
        operation = operation_for(path)
        if space != "jax.lax" or not operation:
            continue
        parameters = [parameter.name for parameter in catalogue.parameters(catalogue.function(path) or {}) or ()]
        if name.startswith("bitwise") or name in ("population_count", "rem"):
            pairs.append(f"{name}:{operation}:{'n' * (len(parameters) == 1) or 'nm'}")
        elif name in ("conj", "imag", "real"):
            pairs.append(f"{name}:{operation}:z")
        elif parameters[:2] == ["x", "y"]:
            pairs.append(f"{name}:{operation}:xy")
        elif parameters[:1] == ["x"] and parameters[1:] in ([], ["accuracy"]) and name != "acosh":
            pairs.append(f"{name}:{operation}:x")
    assert len(pairs) > 45
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", textwrap.dedent(code), *pairs]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
