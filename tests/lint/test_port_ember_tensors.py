"""A port of NumPy code to EmberTensors: what is rewritten for them, what stays, and what the report says."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import programs
import pytest

from ember_ml import get_available_backends
from ember_ml.nn import tensor
from emberlint import cli
from emberlint.commands import port
from emberlint.config import EMBER_TENSORS, NAMESPACE, Config
from emberlint.lint import linter
from emberlint.rewrite import names

ENGINES = get_available_backends()


def ported(text: str) -> port.Ported:
    """A ported program that imports NumPy."""
    return programs.ported(text, imports="import numpy as np\n")


def changes(text: str) -> str:
    """Reported changes of behavior."""
    return "\n".join(f"{one.line}: {one.message}" for one in ported(text).notes.changes)


PROGRAM = """
    import collections


    def levels(x, table):
        x = np.asarray(x)
        counts = collections.defaultdict(int)
        for level in np.unique(x):
            counts[level] += np.sum(x == level)
        return counts


    def spread(x, b):
        rows = np.zeros((3, 2))
        for i in range(3):
            rows[i][1] = x[i]
        order = np.argsort(x)
        copies = [1] * np.sum(x > 1)
        x = np.array(x)
        x.sort()
        x += b - np.exp(np.zeros(3))
        return rows, order, copies, x, b @ np.eye(3), rows[rows > 1], np.mean(x) == 2
"""


def test_operators_and_indices_stay() -> None:
    text = ported(PROGRAM).after.decode()
    assert "from ember_ml.nn import tensor" in text
    assert "counts[level] += tensor.sum(x == level)" in text
    assert "x += b - tensor.exp(tensor.zeros(3))" in text
    assert "b @ tensor.eye(3), rows[rows > 1]" in text


def test_chained_indices_repeated_lists_and_sorting_in_place_are_rewritten() -> None:
    text = ported(PROGRAM).after.decode()
    assert "rows[i, 1] = x[i]" in text
    assert "[1] * int(tensor.sum(x > 1))" in text
    assert "x[...] = tensor.sort(x)" in text


@pytest.mark.parametrize("engine", ENGINES)
def test_the_program_computes_the_same(engine: str, tmp_path: Path) -> None:
    before = "import numpy as np\n" + textwrap.dedent(PROGRAM)
    (tmp_path / "before.py").write_text(before)
    (tmp_path / "program.py").write_bytes(ported(PROGRAM).after)
    check = """
        import numpy as np
        from ember_ml import ops
        ops.set_default_dtype("float64")
        import before, program
        x, b = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0])
        assert {float(k): int(v) for k, v in program.levels([1, 2, 1, 3], None).items()} == {1.0: 2, 2.0: 1, 3.0: 1}
        assert program.levels([1, 2, 1, 3], None)[2] == 1
        for found, expected in zip(program.spread(x, b), before.spread(x, b), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected)
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
        ("def f(n):\n    x = np.zeros((n, n))\n    row = x[0]\n    row[1] = 2.0\n    return x\n", 5, "a view of `x`"),
        ("def f(n):\n    x = np.eye(n)\n    for row in x:\n        row[0] = 1\n    return x\n", 5, "a view of `x`"),
        ("def f(x):\n    x.T[0] = np.exp(x)\n", 3, "a view of `x`"),
        ("def f(x, i):\n    x[i][0] = np.exp(x)\n", 3, "`x` is a tensor, it does not change"),
        ("def f(x):\n    x = np.asarray(x)\n    x[0] = 1\n    return x\n", 4, "changes the caller's `x` in NumPy"),
        (
            "def f(n):\n    x = np.zeros(n)\n    y = x[1:]\n    x[1] = 1\n    return x, y\n",
            4,
            "`y` is `x[1:]`, which is read after `x` is changed in place (line 5",
        ),
        (
            "class A:\n    def f(self, n):\n        self.x = np.zeros(n)\n        self.y = self.x[1:]\n"
            "        self.x[0] = 1\n",
            5,
            "`self.x[1:]` is stored",
        ),
        (
            "def f(n):\n    x = np.eye(n)\n    g(x[:, 0])\n    return x\n\n\ndef g(v):\n    v[0] = 1\n",
            4,
            "changes its argument `v` and with it `x`",
        ),
        ("def f(x):\n    return np.corrcoef(x) != 1\n", 3, "compares the rounded results of `tensor.corrcoef`"),
        ("def f(x):\n    return np.linalg.svd(x)\n", 3, "the signs of the vectors may differ from NumPy's"),
        ("def f(x):\n    return np.reciprocal(x)\n", 3, "of integers, NumPy rounds toward zero; this returns floats"),
        ("def f(n):\n    x = np.zeros(n)\n    print(n, x)\n", 4, "shows `EmberTensor(...)`; print `x.numpy()`"),
        ("def f(x):\n    return isinstance(x, (int, float)), np.exp(x)\n", 3, "false for elements of tensors"),
        ("def f(x):\n    return np.isscalar(x), np.exp(x)\n", 4, "false for elements of tensors"),
        ("def f(x):\n    x.sort()\n    return np.exp(x)\n", 3, "of a tensor it returns a new one"),
        ("def f(x):\n    return np.exp(x) if x.dtype.kind == 'f' else x\n", 3, "'real floating'"),
        ("def f(x):\n    return f'mean: {np.mean(x)}'\n", 3, "`tensor.mean(x)` in a text is `EmberTensor(...)`"),
        ("def f(x):\n    return str(np.mean(x))\n", 3, "is `EmberTensor(...)`"),
        ("def f(x):\n    y = x[-3:]\n    y[0] = np.exp(x)\n", 4, "changes a slice of `x`; if that is a tensor"),
        ("def f(v, x):\n    v = [v, v]\n    return v * np.sum(x)\n", 4, "repeats a list"),
    ],
)
def test_differences_without_an_error_are_reported(text: str, line: int, words: str) -> None:
    found = changes(text)
    assert any(one.startswith(f"{line}: ") and words in one for one in found.splitlines()), found


@pytest.mark.parametrize(
    "text",
    [
        "def f(n):\n    x = np.zeros(n)\n    x[0] = 1.0\n    x += 1\n    return x\n",
        "class A:\n    def f(self, n):\n        self.x = np.zeros(n)\n        self.x += n\n        return self.x\n",
        "def f(n):\n    x = np.zeros(n)\n    a = x[0]\n    x[0] = 2\n    return a\n",
        "def f(x):\n    x = np.array(x)\n    x[0] = 1\n    return x\n",
        "def f(x, rng):\n    x = np.array(x)\n    rng.shuffle(x)\n    return x\n",
        "def f(x, d):\n    for key in np.unique(x):\n        d[key] = key.copy(), round(key), key.size\n",
        "def f(x):\n    print(np.exp(x).tolist())\n    return np.reciprocal(np.ones(3))\n",
        "def f(x):\n    return np.mean(x) == 0, np.sum(x > 1) == 2, np.max(x) == 1\n",
    ],
)
def test_what_ember_tensors_do_as_arrays_is_not_reported(text: str) -> None:
    done = ported(text)
    assert [one.message for one in (*done.notes.changes, *done.notes.unknown)] == []


def test_the_command_makes_ember_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import numpy as np\n\n\ndef f(x: np.ndarray):\n    x[0] = 1\n    return np.exp(x)\n")
    assert cli.main(["port", str(program), "--from", "numpy"]) == 0
    assert "return tensor.exp(x)" in program.read_text()
    printed = capsys.readouterr().out
    assert "EMB301" not in printed
    assert "`f` returns EmberTensors" in printed


def test_the_axes_of_matrices_are_numpys() -> None:
    text = ported("def f(x: np.ndarray):\n    return np.trace(x), x.diagonal(), np.trace(x, 0, 1, 2)\n").after.decode()
    assert "tensor.trace(x, axis1=0, axis2=1), tensor.diagonal(x, axis1=0, axis2=1), tensor.trace(x, 0, 1, 2)" in text


def test_imports_that_other_files_take_stay(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "types.py").write_text("import numpy as np\nfrom numpy.typing import DTypeLike\n")
    (package / "names.py").write_text("import numpy as np\n\nX = np.zeros(3)\n")
    (package / "a.py").write_text(
        "from package.types import *\n\n\ndef f(x, dtype: DTypeLike = None):\n    return np.exp(x)\n"
    )
    (package / "b.py").write_text("from .names import np\n\nY = np.ones(3)\n")
    assert cli.main(["port", str(package), "--from", "numpy"]) == 0
    assert (package / "types.py").read_text() == "import numpy as np\nfrom numpy.typing import DTypeLike\n"
    assert "import numpy as np" in (package / "names.py").read_text()


def test_views_that_functions_of_other_files_change_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text(
        "import numpy as np\n\n\ndef fill(x, out=None):\n    out = np.empty(3) if out is None else out\n"
        "    out[0] = x\n    return out\n"
    )
    (package / "b.py").write_text(
        "import numpy as np\nfrom package.a import fill\n\n\ndef f(x):\n    y = np.zeros((3, 3))\n"
        "    fill(x, out=y[:, 0])\n    return y\n\n\ndef g(x):\n    y = x[1:]\n    h(y)\n    return np.exp(x)\n"
        "\n\ndef h(y):\n    y[0] = 1\n"
    )
    assert cli.main(["port", str(package), "--from", "numpy"]) == 0
    printed = capsys.readouterr().out
    assert (
        f"{package / 'b.py'}:7: `fill(x, out=y[:, 0])` changes its argument `out` and with it `y` in NumPy" in printed
    )
    assert f"{package / 'b.py'}:13: `h(y)` changes `y`, a slice of `x`" in printed


def test_floats_that_are_assigned_to_what_may_be_integers_are_reported() -> None:
    text = "def f(x, v):\n    y, z = np.where(x > 0, 1, -1), np.zeros(3)\n    y[0] = v\n    z[0] = v\n    return y, z\n"
    assert [f"{one.line}: {one.message}" for one in ported(text).notes.unknown] == [
        "4: `y[0] = v` raises for floats if `y` holds integers, where NumPy truncates them"
    ]


def test_functions_that_are_inspected_stay() -> None:
    text = ported("import inspect\n\nX = inspect.signature(np.linalg.pinv), map(np.exp, [1])\n").after.decode()
    assert "inspect.signature(np.linalg.pinv), map(tensor.exp, [1])" in text


def test_functions_that_return_tensors_in_one_case_are_named() -> None:
    done = ported("def f(x, g):\n    if g:\n        return g(x)\n    return np.exp(x)\n")
    assert [one.message for one in done.notes.results] == ["`f` returns EmberTensors"]


def test_mathematics_of_values_of_unknown_types_is_reported() -> None:
    done = ported("import math\n\n\ndef f(x):\n    return math.cos(x), math.sin(len(x)), np.zeros(3)\n")
    assert ["math.cos(x)" in one.message for one in done.notes.unknown] == [True]


def test_the_transform_is_in_its_namespace() -> None:
    """``ember_ml.nn.tensor.fft`` is the namespace of the array API standard, ``ember_ml.ops.fft`` also the function."""
    text = ported("def f(x):\n    return np.fft.fft(x), np.fft.ifft(x), map(np.fft.fft, [x])\n").after.decode()
    assert "tensor.fft.fft(x), tensor.ifft(x), map(tensor.fft.fft, [x])" in text


CONSTANTS = """
    SOBEL = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float64)
    HALF = SOBEL.T * 0.5
    TABLE: np.ndarray = np.zeros(2)
    TABLE[0] = np.sum(HALF)
    SCALE = np.sqrt(2.0)


    class Filter:
        kernel = np.ones((2, 2)) / 4

        def apply(self, x, w=np.array([1.0, 2.0]), *, bias=np.arange(2)):
            x = np.asarray(x)
            return np.exp(x) * self.kernel @ HALF + w - bias, SOBEL.T, np.where(x > 1, SOBEL, x), TABLE * SCALE


    data = np.arange(4)
    print(np.exp(data).tolist())
"""


def test_arrays_that_are_made_at_import_stay() -> None:
    done = ported(CONSTANTS)
    text = done.after.decode()
    assert "SOBEL = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float64)\nHALF = SOBEL.T * 0.5\n" in text
    assert "TABLE: np.ndarray = np.zeros(2)\nTABLE[0] = np.sum(HALF)\nSCALE = math.sqrt(2.0)\n" in text
    assert "kernel = np.ones((2, 2)) / 4" in text
    assert "w=np.array([1.0, 2.0]), *, bias=np.arange(2)):" in text
    assert "tensor.exp(x) * self.kernel @ HALF + w - bias, tensor.transpose(SOBEL)" in text
    assert "data = tensor.arange(4)\nprint(tensor.exp(data).tolist())" in text
    assert done.left == []
    assert done.bound[1] == 0
    assert done.notes.changes == []


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays_that_are_made_at_import_work_on_every_backend(engine: str, tmp_path: Path) -> None:
    (tmp_path / "before.py").write_text("import numpy as np\n" + textwrap.dedent(CONSTANTS))
    (tmp_path / "program.py").write_bytes(ported(CONSTANTS).after)
    check = """
        import numpy as np
        from ember_ml import get_available_backends, use_backend
        import before, program
        x = [[0.5, 1.0], [1.5, 2.0]]
        for engine in get_available_backends():
            with use_backend(engine):
                for found, expected in zip(program.Filter().apply(x), before.Filter().apply(x), strict=True):
                    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)
    """
    run(check, engine, tmp_path)


def test_tensors_that_are_made_at_import_are_reported() -> None:
    text = """
        import numpy as np


        def ramp(n):
            return np.linspace(0, 1, n)


        RAMP = ramp(3)


        def f(x, w=np.arange(2)):
            return x + RAMP + w
    """
    ramp = "`RAMP` is a tensor of the backend that is active at import"
    default = "`f(w)` is a tensor of the backend that is active at import"
    for config, expected in ((programs.CONFIG, [ramp]), (Config(), [ramp, default])):
        notes = programs.ported(text, config).notes.changes
        assert [one.message.partition(";")[0] for one in notes] == expected


OUT = """
    def f(a, b, out):
        np.matmul(a, b.T, out=out)
        np.dot(a, b, out)
        return np.sum(a)


    def g(a: np.ndarray, b: np.ndarray):
        out, rows = np.zeros((2, 2)), np.zeros((2, 2, 2))
        np.matmul(a, b.T, out=out)
        np.maximum(out, b, out)
        c = np.multiply(out, 2, out=out)
        np.cumsum(a, axis=0, out=rows[0])
        np.dot(a, rows[0], rows[1])
        return c, rows


    def h(a: np.ndarray):
        out = np.zeros((2, 2))
        np.add(a, 1, out=out, where=a > 1)
        return np.exp(a, out=out)


    def either(a: np.ndarray, out=None):
        return np.exp(a, out=out)
"""


def test_results_that_are_written_into_arrays_are_assigned() -> None:
    text = ported(OUT).after.decode()
    assert "    out[...] = tensor.matmul(a, tensor.transpose(b))\n    out[...] = tensor.dot(a, b)\n" in text
    assert "    out[...] = tensor.maximum(out, b)\n    out[...] = tensor.multiply(out, 2)\n    c = out\n" in text
    assert "    rows[0] = tensor.cumsum(a, axis=0)\n    rows[1] = tensor.dot(a, rows[0])\n" in text
    assert "    out[...] = tensor.exp(a)\n    return out\n" in text
    assert "np.add(a, 1, out=out, where=a > 1)" in text
    assert "return np.exp(a, out=out)" in text


@pytest.mark.parametrize("engine", ENGINES)
def test_results_that_are_written_into_arrays_are_the_same(engine: str, tmp_path: Path) -> None:
    (tmp_path / "before.py").write_text("import numpy as np\n" + textwrap.dedent(OUT))
    (tmp_path / "program.py").write_bytes(ported(OUT).after)
    check = """
        import numpy as np
        from ember_ml import ops
        from ember_ml.nn import tensor
        import before, program
        a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, 1.0], [9.0, 2.0]])
        expected, found = np.zeros((2, 2)), tensor.zeros((2, 2), dtype="float64")
        before.f(a, b, expected)
        program.f(tensor.asarray(a), tensor.asarray(b), found)
        np.testing.assert_allclose(np.asarray(found), expected)
        for found, expected in zip(program.g(a, b), before.g(a, b), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected)
    """
    run(check, engine, tmp_path)


def test_a_second_run_reports_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n\n\ndef f(n):\n    x = np.zeros((n, n))\n    border = x[0]\n"
        "    border[:] = 0\n    return x\n"
    )
    reports = []
    for _ in range(2):
        assert cli.main(["port", str(program), "--from", "numpy"]) == 0
        reports.append(capsys.readouterr().out)
    first, second = (report[report.index("Changes behavior (1)") :] for report in reports)
    assert "`border[:] = 0` writes through a view of `x`" in second
    assert first.partition("Estimated")[0] == second.partition("Estimated")[0]
    after = first.partition("before, ")[2].partition(" after")[0]
    assert f"Estimated portable sites: {after} before, {after} after" in second
    assert after != "100%"


def test_windows_are_rewritten() -> None:
    text = """
        from numpy.lib.stride_tricks import sliding_window_view


        def f(x):
            return np.lib.stride_tricks.sliding_window_view(x, 3), sliding_window_view(x, (2, 2), axis=(0, 1))
    """
    after = ported(text).after.decode()
    assert "tensor.sliding_window(x, 3), tensor.sliding_window(x, (2, 2), axis=(0, 1))" in after
    assert "numpy" not in after


def test_operators_of_ember_tensors_and_numpy_arrays_make_ember_tensors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    text = """
        import numpy as np
        from ember_ml.nn import tensor


        def f(steps, seed):
            rng = np.random.default_rng(seed)
            state = tensor.zeros((steps, 2))
            zs = state[:, 0] + rng.normal(size=steps)
            zs[rng.random(steps) < 0.05] = tensor.nan
            ys = rng.normal(size=steps)
            ys[0] = 1
            return zs, ys
    """
    program.write_text(textwrap.dedent(text))
    assert cli.main([str(program), "--select", "EMB301", "--output-format", "concise"]) == 1
    assert ["`ys`" in line for line in capsys.readouterr().out.splitlines() if "EMB301" in line] == [True]


def test_advice_names_the_namespace_and_the_argument(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "def f(x, y, out=None):\n    z = np.matmul(x, y, out=out, casting='no')\n"
        "    return z, np.maximum(x, y, out), np.exp(*x), np.zeros(3)\n"
    )
    done = ported(text)
    expected = [
        "`np.matmul` runs on numpy only; use `tensor.matmul`, which has no `out` and no `casting`",
        "`np.maximum` runs on numpy only; use `tensor.maximum`, which has no `out`",
        "`np.exp` runs on numpy only; use `tensor.exp`, which has other arguments",
    ]
    assert [one.message for one in done.left if one.code == "EMB102"] == expected
    program = tmp_path / "program.py"
    program.write_bytes(done.after)
    assert cli.main([str(program), "--select", "EMB102", "--output-format", "concise"]) == 1
    printed = capsys.readouterr().out
    assert all(message in printed for message in expected)


def test_forced_evaluation_is_not_part_of_a_port() -> None:
    text = """
        def f(n):
            x = np.zeros(n, dtype=np.float64)
            if np.sum(x) > 1 or 0 < np.max(x) < 1:
                return float(np.mean(x)), x.tolist(), np.roots(x)
            return max(x), 0 in x, 0
    """
    assert {one.code for one in ported(text).left} == {"EMB101", "EMB102"}
    assert {one.code for one in programs.ported(text, Config(), imports="import numpy as np\n").left} > {
        "EMB201",
        "EMB203",
    }


COUNTS = """
    TOTAL = np.zeros(3)
    np.add.at(TOTAL, [0, 0], 1.0)


    class Histogram:
        def __init__(self, n):
            self.counts = np.zeros(n)
            self.tables = {}

        def add(self, i, v, total):
            alias = self.counts
            np.add.at(self.counts, i, v)
            rows = np.zeros((2, 3))
            np.add.at(rows[0], i, v)
            np.add.at(total, i, 1)
            return np.exp(alias), rows
"""


def test_additions_at_indices_are_assigned() -> None:
    text = ported(COUNTS).after.decode()
    assert "np.add.at(TOTAL, [0, 0], 1.0)" in text
    assert "self.counts[...] = tensor.index_add(self.counts, i, v)" in text
    assert "rows[0] = tensor.index_add(rows[0], i, v)" in text
    assert "total[...] = tensor.index_add(total, i, 1)" in text


@pytest.mark.parametrize("native", [False, True])
def test_additions_at_indices_are_the_same(native: bool, tmp_path: Path) -> None:
    """An alias of the array and the array of a caller change too; JAX's tensors cannot be changed."""
    config = Config() if native else programs.CONFIG
    (tmp_path / "before.py").write_text("import numpy as np\n" + textwrap.dedent(COUNTS))
    (tmp_path / "program.py").write_bytes(programs.ported(COUNTS, config, imports="import numpy as np\n").after)
    check = """
        import numpy as np
        from ember_ml import ops, use_backend
        ops.set_default_dtype("float64")
        import before, program
        np.testing.assert_array_equal(np.asarray(program.TOTAL), before.TOTAL)
        for engine in ("numpy", "torch"):
            with use_backend(engine):
                totals = np.zeros(3), np.zeros(3)
                expected = before.Histogram(3).add([0, 2, 0], [1.0, 2.0, 4.0], totals[0])
                found = program.Histogram(3).add([0, 2, 0], [1.0, 2.0, 4.0], totals[1])
                for one, other in zip((*found, totals[1]), (*expected, totals[0]), strict=True):
                    np.testing.assert_allclose(np.asarray(one), other)
    """
    run(check, "numpy", tmp_path)


def test_methods_of_functions_of_elements_that_stay_are_listed() -> None:
    text = """
        def f(x, d, i, v):
            np.subtract.at(d["x"], i, v)
            np.add.at(d["x"], i, v)
            np.maximum.at(x, i, v)
            np.negative.at(x, i)
            y = np.exp(x)
            np.add.outer(y, y)
            return np.add.reduce(x), np.add.accumulate(x), np.add.reduceat(x, i), np.subtract.outer(x, v)
    """
    assert [one.message for one in ported(text).left if one.code == "EMB102"] == [
        "`np.subtract.at` runs on numpy only; use `x = tensor.index_add(x, i, -v)`",
        "`np.add.at` runs on numpy only; use `x = tensor.index_add(x, i, v)`",
        "`np.maximum.at` runs on numpy only; "
        "use `x = tensor.index_update(x, i, tensor.maximum(x[i], v))` if no index repeats",
        "`np.negative.at` runs on numpy only; "
        "use `x = tensor.index_update(x, i, tensor.negative(x[i]))` if no index repeats",
        "`np.add.reduce` runs on numpy only; use `tensor.sum(x, axis=0)`",
        "`np.add.accumulate` runs on numpy only; use `tensor.cumsum(x, axis=0)`",
        "`np.add.reduceat` runs on numpy only; write it with operations",
        "`np.subtract.outer` runs on numpy only; use `tensor.subtract(x[:, None], y)` for vectors",
    ]


@pytest.mark.parametrize("path", sorted(names._INSTEAD))
def test_what_the_linter_advises_is_equal(path: str) -> None:
    x, i, v, n, shape = np.asarray([[0.0, 1.5, -2.0], [3.0, 0.0, 4.0]]), [1, 2], 5.0, 3, (2, 3)
    arguments = {
        "copyto": (x, x + 1),
        "extract": (x > 0, x),
        "indices": (shape,),
        "put": (x, i, v),
        "putmask": (x, x > 0, v),
        "tril_indices": (n,),
        "triu_indices": (n,),
    }
    name = path.removeprefix("numpy.")
    scope = {"tensor": tensor, "x": tensor.asarray(x, copy=True), "mask": tensor.asarray(x > 0), "y": x + 1}
    scope |= {"i": i, "v": v, "n": n, "shape": shape}
    expected = getattr(np, name)(*arguments.get(name, (x + 0j if name == "iscomplex" else x,)))
    if name == "iscomplex":
        scope["x"] = tensor.asarray(x + 0j)
    advice = names.substitute(path, "tensor").strip("`").replace("` and `", ", ")
    if "=" in advice.replace("!=", "").replace("indexing=", ""):
        exec(advice, scope)
        np.testing.assert_array_equal(np.asarray(scope["x"]), x)
    else:
        found = eval(advice, scope)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)


def linted(text: str, config: Config) -> list[str]:
    """Findings of the linter, each with its line."""
    return [
        f"{one.line}: {one.code} {one.message}" for one in linter.lint(text.encode(), "program.py", config).findings
    ]


def test_an_import_for_arrays_that_stay_is_not_to_be_decided() -> None:
    assert [one.code for one in ported(CONSTANTS).left] == []
    text = CONSTANTS + "    def drawn(seed):\n        return np.random.default_rng(seed)\n"
    assert "EMB101" in [one.code for one in ported(text).left]


def test_arrays_that_are_made_at_import_are_not_reported_after_the_port() -> None:
    """The fix would make tensors of the engine that is active at import."""
    text = ported(CONSTANTS).after.decode()
    codes = ("EMB101", "EMB102", "EMB103", "EMB105", "EMB106", "EMB314")
    assert linted(text, Config(select=codes)) == []
    later = text + "\n\ndef f(x):\n    return np.array(x)\n"
    assert [one.partition(" ")[2][:6] for one in linted(later, Config(select=codes))] == ["EMB101", "EMB102"]


def test_what_ember_tensors_do_on_every_engine_is_not_reported() -> None:
    text = """from ember_ml.nn import tensor


def smoothed(x):
    x = tensor.asarray(x, dtype=float)
    y = tensor.zeros_like(x)
    y[1:] = (x[1:] + x[:-1]) / 2
    y[0] = x[0]
    y += 1
    return y[::-1], y[y > 0]
"""
    for namespace in (NAMESPACE, EMBER_TENSORS):
        assert linted(text, Config(namespace=namespace)) == []


def test_constants_of_files_without_tensors_follow_the_namespace() -> None:
    text = "import numpy as np\n\nSOBEL = np.array([1.0, 2.0], dtype=np.float64)\n"
    codes = ("EMB101", "EMB102", "EMB103")
    assert linted(text, Config(select=codes, namespace=EMBER_TENSORS)) == []
    assert len(linted(text, Config(select=codes))) == 3
