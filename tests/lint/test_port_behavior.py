"""A port changes no behavior silently: attributes, arrays of objects, copies, views, and the report about them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import programs
import pytest

from ember_ml import get_available_backends
from emberlint import cli
from emberlint.commands import port
from emberlint.config import Config

ENGINES = get_available_backends()


def ported(text: str) -> port.Ported:
    """A ported program that imports NumPy."""
    return programs.ported(text, Config(), imports="import numpy as np\n")


def body(text: str) -> str:
    """Body of a ported program, without its imports."""
    lines = ported(text).after.decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("import ", "from "))).strip()


def changes(text: str) -> list[str]:
    """Reported changes of behavior, each with its line."""
    return [f"{one.line}: {one.message}" for one in ported(text).notes.changes]


FILTER = """
    class Filter:
        def __init__(self, n):
            self.S = np.eye(n)
            self.inv = np.linalg.inv
            self.dtype = np.float64

        def gain(self):
            return self.inv(self.S), np.zeros(3, dtype=self.dtype)
"""


def test_calls_through_an_assigned_attribute_stay() -> None:
    text = body(FILTER)
    assert "self.inv = ops.inv" in text
    assert "return self.inv(self.S), ops.zeros(3, dtype=self.dtype)" in text


@pytest.mark.parametrize(
    ("expression", "held"),
    [
        ("np.array([[None] * n])", "objects"),
        ("np.array([None] * n)", "objects"),
        ("np.array([[None, 1.0], [2.0, None]])", "objects"),
        ("np.array([None for _ in range(n)])", "objects"),
        ("np.array(x, dtype=object)", "objects"),
        ("np.zeros(n, dtype=object)", "objects"),
        ("np.empty(n, object)", "objects"),
        ("np.full(n, None)", "objects"),
        ("np.array([tuple([slice(0, i)]) for i in range(n)])", "objects"),
        ("np.array(x, dtype=[(str(i), object) for i in range(n)])", "records"),
        ("np.array([['a', 'b'], ['c', 'd']])", "text"),
        ("np.array(x, dtype=str)", "text"),
        ("np.array(x, dtype='U10')", "text"),
        ("np.empty(n, dtype='<U5')", "text"),
        ("np.zeros(n, dtype=[('a', float), ('b', int)])", "records"),
        ("np.zeros(n, dtype='f8,i4')", "records"),
        ("np.zeros(n, dtype=np.dtype([('a', float)]))", "records"),
        ("np.array(x, dtype='datetime64[D]')", "dates"),
    ],
)
def test_arrays_that_tensors_cannot_hold_stay_and_are_reported(expression: str, held: str) -> None:
    done = ported(f"def f(x, n):\n    return {expression}\n")
    kept = done.after.decode().partition("return ")[2].strip()
    assert kept.replace("ops.", "np.") == expression
    assert any(f"an array of {held}" in finding.message for finding in done.left), done.left


def test_methods_and_functions_of_an_array_of_objects_stay() -> None:
    text = body(
        """
        def f(n):
            z = np.array([[None] * n]).T
            names = np.array(["a"] * n)
            return z.copy(), np.unique(names), np.atleast_2d(names)
        """
    )
    assert "np.array([[None] * n]).T" in text
    assert "return z.copy(), np.unique(names), np.atleast_2d(names)" in text


def test_an_attribute_that_holds_objects_at_first_is_no_tensor() -> None:
    text = body(
        """
        class Filter:
            def __init__(self, n):
                self.z = np.array([None] * n)

            def update(self, z):
                self.z = np.asarray(z)
                self.z = np.asarray(z) + 1
                return self.z.copy()
        """
    )
    assert "return self.z.copy()" in text


def test_a_field_of_a_structured_array_is_no_tensor() -> None:
    assert "x['a'].copy()" in body("def f(x: np.ndarray):\n    return x['a'].copy()\n")


def test_values_that_a_program_may_reject_stay() -> None:
    text = body(
        """
        def f(values):
            try:
                return np.array(values)
            except ValueError:
                return None
        """
    )
    assert "np.array(values)" in text


def test_copies_become_the_operation_where_one_value_of_the_attribute_is_an_array() -> None:
    text = body(
        """
        class Filter:
            def __init__(self, n):
                self.x = np.zeros(n)

            def predict(self, f):
                self.x = f(self.x)
                self.prior = self.x.copy()
                self.x.fill(0)
        """
    )
    assert "self.prior = ops.copy(self.x)" in text
    assert "self.x[...] = 0" in text


def test_flatten_keeps_copying() -> None:
    assert "ops.reshape(x, (-1,), copy=True)" in body("def f(x: np.ndarray):\n    return x.flatten()\n")


def test_numpys_random_numbers_stay() -> None:
    """Programs and tests seed NumPy's generator."""
    assert "np.random.multivariate_normal(m, c, 3)" in body(
        "def f(m, c):\n    return np.random.multivariate_normal(m, c, 3)\n"
    )


MIXED = """
    class Model:
        def __init__(self, n):
            self.F = np.eye(n)
            self.x = np.zeros(n)

        def predict(self, b, rows):
            x = self.x
            y = np.zeros(3)
            y[0:2] = rows
            y[np.array([1])] = rows[0]
            self.x = x + np.dot(self.F, x)
            return self.F @ self.x, b - np.exp(y), np.exp(y) < b, y[y > 0]
"""


def test_operators_of_tensors_and_arrays_of_the_caller_become_operations() -> None:
    text = body(MIXED)
    assert "y[0:2] = ops.asarray(rows)" in text
    assert "y[ops.asarray([1])] = ops.asarray(rows[0], dtype=y.dtype)" in text
    assert "self.x = ops.add(x, ops.dot(self.F, x))" in text
    assert "ops.matmul(self.F, self.x), ops.subtract(b, ops.exp(y)), ops.less(ops.exp(y), b)" in text
    assert "ops.index_get(y, y > 0)" in text


def test_operators_of_numbers_and_of_two_arguments_stay() -> None:
    kept = "2 * x + y, x.shape[0] * 3, 0.5 * np.pi"
    assert body(f"def f(x: np.ndarray, y: np.ndarray):\n    return {kept}\n").endswith(kept.replace("np.", "ops."))


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_of_the_caller_are_accepted(engine: str, tmp_path: Path) -> None:
    done = ported(MIXED)
    (tmp_path / "program.py").write_bytes(done.after)
    if engine == "jax":
        # JAX's own arrays cannot be assigned to; the report says so, and EmberTensors can.
        assert any(finding.code == "EMB301" and "raises on JAX" in finding.message for finding in done.left)
        return
    check = """
        import numpy as np
        from ember_ml import ops
        ops.set_default_dtype("float64")
        from program import Model
        model = Model(2)
        model.F = np.array([[1.0, 2.0], [0.0, 1.0]])
        model.x = np.array([1.0, 2.0])
        product, difference, less, positive = model.predict(np.ones(3), np.array([1.0, 2.0]))
        np.testing.assert_allclose(np.asarray(product), [14.0, 4.0])
        np.testing.assert_allclose(np.asarray(difference), 1 - np.exp([1.0, 1.0, 0.0]))
        np.testing.assert_allclose(np.asarray(positive), [1.0, 1.0])
        assert not np.asarray(less).any()
    """
    run(check, engine, tmp_path)


def run(check: str, engine: str, folder: Path) -> None:
    """Run a program with a folder on the path, on an engine."""
    paths = os.pathsep.join([str(folder), *(path or os.getcwd() for path in sys.path)])
    environment = {**os.environ, "EMBER_ML_BACKEND": engine, "PYTHONPATH": paths}
    command = [sys.executable, "-c", textwrap.dedent(check)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            """
            class Filter:
                def __init__(self, n):
                    self.x = np.zeros(n)

                def update(self, z):
                    self.x += z
                    return self.x
            """,
            9,
            "`self.x` is returned",
        ),
        (
            """
            class Filter:
                def __init__(self, n):
                    self.x = np.zeros(n)

                def update(self, z):
                    self.x[0] = z
                    return self.x[0]
            """,
            9,
            "`self.x[0]` is returned, and `self.x` is changed in place (line 8, `self.x[0] = ops.asarray(z)`): on",
        ),
        (
            """
            def f(n):
                x, found = np.zeros(n), []
                for i in range(n):
                    x[i] = 1.0
                    found.append(x)
                return found
            """,
            7,
            "`x` is stored",
        ),
        (
            """
            def f(n):
                x = np.zeros((n, n))
                row = x[0]
                row[1] = 2.0
                return x
            """,
            6,
            "writes through a view of `x`",
        ),
        (
            """
            def f(values, table):
                for level in np.unique(np.asarray(values)):
                    table[level] = 1
                return table
            """,
            5,
            "`table[level]`: elements of torch and MLX tensors hash by identity",
        ),
        (
            """
            def f(n):
                x = np.zeros((n, n))
                flat = x.ravel()
                flat += 1.0
                return x
            """,
            6,
            "writes through a view of `x`",
        ),
    ],
)
def test_writes_to_what_was_returned_or_stored_are_reported(text: str, line: int, words: str) -> None:
    found = changes(text)
    assert any(one.startswith(f"{line}: ") and words in one for one in found), found


@pytest.mark.parametrize(
    "text",
    [
        "def f(n):\n    x = np.zeros(n)\n    x[0] = 1.0\n    return x\n",
        "def f(n):\n    x = np.zeros((n, n))\n    y = x[0].copy()\n    y[0] = 1.0\n    return x, y\n",
    ],
)
def test_writes_to_new_arrays_are_not_reported(text: str) -> None:
    assert changes(text) == []


def test_changes_of_behavior_are_the_first_part_of_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n\n\ndef f(x: np.ndarray, c):\n    y = np.exp(x)\n    row = y[0]\n    row[0] = 1\n"
        "    c.fill(0)\n    x += 1\n    return np.roots(y)\n\n\ndef g(x):\n    return np.exp(x)\n"
    )
    assert cli.main(["port", str(program), "--from", "numpy", "--native"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("Changes behavior (2)")
    assert f"{program}:9: `row[0] = 1` writes through a view of `y`" in lines[3]
    assert f"{program}:11: `x +=` changes the caller's `x`" in lines[4]
    text = "\n".join(lines)
    assert text.index("Changes behavior") < text.index("To be decided by hand")
    assert f"{program}:10: `c.fill()`" in text
    assert f"{program}:15: `g` returns tensors of the active backend" in text


def test_tensors_that_other_code_gets_are_reported() -> None:
    done = ported(
        """
        from scipy import optimize
        from scipy.stats import rv_continuous


        class Model(rv_continuous):
            def cost(self, data):
                return self.logpdf(data)


        def f(rng, n):
            x = np.zeros(n)
            rng.shuffle(x)
            return optimize.fmin(x), round(np.sum(x), 3), np.eye(n) @ x
        """
    )
    unknown = "\n".join(one.message for one in done.notes.unknown)
    assert "`self.logpdf()` is inherited" in unknown
    assert "`optimize.fmin()` of another library gets a tensor" in unknown
    assert "use `ops.round`" in unknown
    assert ["shuffles a copy" in one.message for one in done.notes.changes] == [True]
    assert b"ops.matmul(ops.eye(n), x)" in done.after


PACKAGES = ("numpy_financial", "transforms3d", "skfuzzy")
PLUGIN = "from ember_ml import ops\n\nops.set_default_dtype('float64')\n"


def copied(package: str, folder: Path) -> Path:
    """Copy of an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    place = folder / package
    shutil.copytree(spec.submodule_search_locations[0], place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


@pytest.mark.parametrize("package", PACKAGES)
def test_the_estimate_is_no_better_than_what_the_files_say(package: str, tmp_path: Path) -> None:
    """A use of NumPy that is left, and a reported change of behavior, is a site that is not portable."""
    done = list(port.port([str(copied(package, tmp_path))], "numpy", Config(root=str(tmp_path)), []))
    assert port.share(done, 0) < port.share(done, 1)
    sites = sum(one.sites[1] for one in done)
    noted = {(one.path, note.line) for one in done for note in (*one.notes.changes, *one.notes.unknown)}
    for count in (sum(_numpy_names(one.after) for one in done), len(noted)):
        assert port.share(done, 1) <= 1 - count / sites


@pytest.mark.parametrize("engine", ENGINES)
def test_the_estimate_is_no_better_than_what_runs(engine: str, tmp_path: Path) -> None:
    """The tests of a package fail after the port only at places that the report names."""
    package = copied("numpy_financial", tmp_path)
    done = list(port.port([str(package)], "numpy", Config(root=str(tmp_path)), []))
    for one in done:
        Path(one.path).write_bytes(one.after)
    (tmp_path / "conftest.py").write_text(PLUGIN)
    paths = os.pathsep.join([str(tmp_path), *(path or os.getcwd() for path in sys.path)])
    environment = {**os.environ, "EMBER_ML_BACKEND": engine, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", str(package)]
    text = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
    assert "passed" in text, text
    frames = r"^numpy_financial/(?!tests)(\w+\.py):(\d+): in "
    failed = [
        found[-1]
        for part in re.split(r"^_{3,} .* _{3,}$", text, flags=re.MULTILINE)
        if (found := re.findall(frames, part, re.MULTILINE))
    ]
    named = {
        (os.path.basename(one.path), note.line)
        for one in done
        for note in (*one.left, *one.notes.unknown, *one.notes.inputs)
    }
    functions = {os.path.basename(one.path): ast.parse(one.after) for one in done}
    unnamed = [
        (name, line)
        for name, line in failed
        if not any((name, other) in named for other in _function_lines(functions[name], int(line)))
    ]
    assert unnamed == []


def _function_lines(tree: ast.Module, line: int) -> range:
    """Lines of the function that a line belongs to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            return range(node.lineno, (node.end_lineno or 0) + 1)
    return range(line, line + 1)


def _numpy_names(data: bytes) -> int:
    """Number of uses of NumPy's names in a file."""
    tree = ast.parse(data)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "numpy"
    }
    return sum(
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
        for node in ast.walk(tree)
    )
