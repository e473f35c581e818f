"""Ports: rewritten code, unchanged code, equal results, and the report."""

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


def after(text: str, origin: str = "numpy") -> str:
    """Body of a ported program, without its imports."""
    imports = {"numpy": "import numpy as np\n", "torch": "import torch\n"}[origin]
    data = (imports + textwrap.dedent(text)).encode()
    done = port.ported(data, "program.py", origin, Config())
    again = port.ported(done.after, "program.py", origin, Config())
    assert again.after == done.after
    lines = done.after.decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("import ", "from "))).strip()


FUNCTION = "def f(x: np.ndarray, y: np.ndarray):\n    return {}\n"
TORCH = "def f(x: torch.Tensor, y: torch.Tensor):\n    return {}\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("np.exp(x)", "ops.exp(x)"),
        ("np.sum(x, 0)", "ops.sum(x, 0)"),
        ("np.triu(x, 1)", "ops.triu(x, 1)"),
        ("x.sum()", "ops.sum(x)"),
        ("x.sum(axis=0, keepdims=True)", "ops.sum(x, axis=0, keepdims=True)"),
        ("x.mean(0)", "ops.mean(x, 0)"),
        ("x.astype(np.float32)", "ops.cast(x, ops.float32)"),
        ("x.reshape(2, -1)", "ops.reshape(x, (2, -1))"),
        ("x.reshape((2, 3))", "ops.reshape(x, (2, 3))"),
        ("x.transpose(1, 0)", "ops.transpose(x, (1, 0))"),
        ("x.T", "ops.transpose(x)"),
        ("x.size", "ops.size(x)"),
        ("x.dot(y)", "ops.dot(x, y)"),
        ("x.flatten()", "ops.reshape(x, (-1,), copy=True)"),
        ("x.copy()", "ops.copy(x)"),
        ("(x + y).max()", "ops.max(x + y)"),
        ("np.exp(x).sum().reshape(1)", "ops.reshape(ops.sum(ops.exp(x)), (1,))"),
        ("np.array(x)", "ops.asarray(x, copy=True)"),
        ("np.array([1.0, 2.0])", "ops.asarray([1.0, 2.0])"),
        ("np.array(len(x))", "ops.asarray(len(x))"),
        ("np.array(x, np.int64)", "ops.asarray(x, dtype=ops.int64, copy=True)"),
        ("np.array(x, copy=False)", "ops.asarray(x, copy=None)"),
        ("np.where(x > 0)", "ops.nonzero(x > 0)"),
        ("np.where(x > 0, x, y)", "ops.where(x > 0, x, y)"),
        ("np.linalg.inv(x)", "ops.inv(x)"),
        ("np.radians(x)", "ops.deg2rad(x)"),
        ("np.r_[0, x]", "ops.concat([ops.atleast_1d(0), ops.atleast_1d(x)])"),
        ("x[::-1]", "ops.flip(x, axis=0)"),
        ("np.pi * x", "ops.pi * x"),
        ("np.std(x, ddof=1)", "ops.std(x, correction=1)"),
        ("np.resize(x, 5)", "np.resize(x, 5)"),
        ("list(map(np.load, x))", "list(map(np.load, x))"),
        ("isinstance(x, np.ndarray)", "ops.is_tensor(x)"),
        ("list(map(np.exp, [x, y]))", "list(map(ops.exp, [x, y]))"),
        ("x[:, np.newaxis]", "x[:, ops.newaxis]"),
        ("x.item(3)", "ops.ravel(x)[3].item()"),
        ("np.finfo(x.dtype.type).eps", "ops.finfo(x.dtype).eps"),
    ],
)
def test_numpy(before: str, expected: str) -> None:
    assert after(FUNCTION.format(before)).partition("return ")[2] == expected


@pytest.mark.parametrize(
    "text",
    [
        "np.exp(x, where=x > 0)",
        "np.maximum(x, y, out=x)",
        "np.roots(x)",
        "np.random.normal(size=3)",
        "x.sort()",
        "x.tolist()",
        'np.ravel(x, order="F")',
        "np.r_[0:3]",
        "x.view(np.int64)",
        "np.exp(*x)",
        'np.where(x > 0, "above", "below")',
        'np.array(["a", "b"])',
        "np.empty(3, dtype=object)",
    ],
)
def test_code_that_is_not_understood_stays(text: str) -> None:
    kept = after(FUNCTION.format(text)).partition("return ")[2]
    assert kept.replace("ops.int64", "np.int64") == text


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("torch.cat([x, y], dim=1)", "ops.concat([x, y], axis=1)"),
        ("x.unsqueeze(0)", "ops.expand_dims(x, 0)"),
        ("x.sum(dim=0, keepdim=True)", "ops.sum(x, axis=0, keepdims=True)"),
        ("x.float()", "ops.cast(x, ops.float32)"),
        ("x.numel()", "ops.size(x)"),
        ("x.permute(1, 0)", "ops.permute_dims(x, (1, 0))"),
        ("torch.clamp(x, 0, 1)", "ops.clip(x, 0, 1)"),
        ("x.detach()", "ops.stop_gradient(x)"),
        ("torch.nn.functional.relu(x)", "ops.relu(x)"),
        ("x.max(dim=0)", "x.max(dim=0)"),
        ("x.max()", "ops.max(x)"),
        ("torch.min(x)", "ops.min(x)"),
        ("x.norm()", "ops.norm(x)"),
        ("x.size(0)", "x.shape[0]"),
        ("x.size(dim=-1)", "x.shape[-1]"),
        ("x.t().size()", "ops.transpose(x).shape"),
        ("x.repeat(2, 3)", "ops.tile(x, (2, 3))"),
        ("x.repeat((2, 3))", "ops.tile(x, (2, 3))"),
        ("x.to(torch.half)", "ops.cast(x, ops.float16)"),
        ("x.to(dtype=y.dtype)", "ops.cast(x, y.dtype)"),
        ('x.to("cuda")', 'x.to("cuda")'),
        ("x.byte()", "ops.cast(x, ops.uint8)"),
        ("x.type()", "x.type()"),
        ("x.transpose(0, 1).contiguous()", "ops.swapaxes(x, 0, 1)"),
        ("x.flip(0)", "ops.flip(x, 0)"),
        ("torch.zeros(3)", "ops.zeros(3)"),
        ("torch.zeros((2, 3))", "ops.zeros((2, 3))"),
        ("torch.zeros(2, y.size(0), dtype=torch.long)", "ops.zeros((2, y.shape[0]), dtype=ops.int64)"),
        ("x.std(dim=0)", "ops.std(x, axis=0, correction=1)"),
        ("torch.var(x, 0, unbiased=False)", "ops.var(x, 0, correction=0)"),
        ("torch.equal(x, y)", "ops.array_equal(x, y)"),
        ("torch.nn.functional.normalize(x)", "ops.normalize(x, axis=1)"),
        ("torch.nn.functional.normalize(x, dim=-1)", "ops.normalize(x, axis=-1)"),
        ("torch.cosine_similarity(x, y)", "ops.cosine_similarity(x, y, axis=1)"),
        ("torch.diagonal(x)", "ops.diagonal(x, axis1=0, axis2=1)"),
        ("x.diagonal()", "ops.diagonal(x, axis1=0, axis2=1)"),
        ("torch.diagonal(x, dim1=1, dim2=2)", "ops.diagonal(x, axis1=1, axis2=2)"),
        ("torch.nn.functional.one_hot(x, 10)", 'ops.one_hot(x, 10, dtype="int64")'),
        ("torch.nn.functional.linear(x, y)", "torch.nn.functional.linear(x, y)"),
        ("torch.nn.functional.ctc_loss(x, y, x, y)", "torch.nn.functional.ctc_loss(x, y, x, y)"),
        ("torch.histogram(x)", "torch.histogram(x)"),
        ("x.nanmedian()", "x.nanmedian()"),
        ("torch.cummax(x, 0)", "torch.cummax(x, 0)"),
        ("torch.take_along_dim(x, y)", "torch.take_along_dim(x, y)"),
        ("torch.tensor(x)", "ops.asarray(x, copy=True)"),
        ("torch.tensor([1.0], device=d)", "ops.asarray([1.0], device=d)"),
        ("torch.tensor(x, requires_grad=True)", "torch.tensor(x, requires_grad=True)"),
        ("torch.as_tensor(x)", "ops.asarray(x)"),
        ("torch.sum(x, 1, True)", "ops.sum(x, 1, keepdims=True)"),
        ("torch.logsumexp(x, 1, True)", "ops.logsumexp(x, 1, keepdims=True)"),
        ("torch.argmax(x, 1)", "ops.argmax(x, 1)"),
        ("torch.max(x, 1)", "torch.max(x, 1)"),
        ("torch.add(x, y, alpha=2)", "torch.add(x, y, alpha=2)"),
        ("torch.nan_to_num(x, 5.0)", "ops.nan_to_num(x, nan=5.0)"),
        ("torch.tril(x, diagonal=1)", "ops.tril(x, k=1)"),
        ("torch.roll(x, shifts=1, dims=0)", "ops.roll(x, shift=1, axis=0)"),
        ("torch.fft.fftn(x, dim=(0, 1))", "ops.fftn(x, axes=(0, 1))"),
        ("torch.transpose(x, dim0=0, dim1=1)", "ops.swapaxes(x, axis1=0, axis2=1)"),
        ("torch.swapaxes(x, axis0=0, axis1=1)", "ops.swapaxes(x, axis1=0, axis2=1)"),
        ("torch.searchsorted(x, y, right=True)", "torch.searchsorted(x, y, right=True)"),
        ("torch.nn.functional.gelu(x, approximate='tanh')", "torch.nn.functional.gelu(x, approximate='tanh')"),
        ("torch.linalg.solve_triangular(x, y, upper=True)", "torch.linalg.solve_triangular(x, y, upper=True)"),
        ("x.unfold(0, 2, 1)", "x.unfold(0, 2, 1)"),
    ],
)
def test_torch(before: str, expected: str) -> None:
    assert after(TORCH.format(before), "torch").partition("return ")[2] == expected


def test_host_maths_becomes_python() -> None:
    text = after("def f(x: np.ndarray):\n    return np.prod(x.shape), np.sqrt(x.ndim)\n")
    assert "math.prod(x.shape), math.sqrt(x.ndim)" in text


def test_the_import_of_the_engine_is_removed() -> None:
    data = b"import numpy as np\n\n\ndef f(x):\n    return np.exp(np.asarray(x)).sum()\n"
    done = port.ported(data, "program.py", "numpy", Config())
    assert done.after == b"from ember_ml import ops\n\n\ndef f(x):\n    return ops.sum(ops.exp(ops.asarray(x)))\n"
    assert done.left == []
    assert port.share([done], 0) < port.share([done], 1) == 1


def test_other_engines_do_not_change() -> None:
    data = b"import numpy as np\nimport torch\n\na = torch.exp(torch.ones(3))\nb = np.exp(np.ones(3))\n"
    done = port.ported(data, "program.py", "numpy", Config()).after.decode()
    assert "torch.exp(torch.ones(3))" in done
    assert "ops.exp(ops.ones(3))" in done


PROGRAM = '''
"""Statistics of rows."""

import numpy as np


def standardised(x, axis=0):
    """Rows with mean 0.

    Parameters
    ----------
    x : ndarray
        the data
    """
    x = np.array(x, dtype=np.float64)
    centre = x.mean(axis=axis, keepdims=True)
    x -= centre
    scale = np.sqrt((x**2).sum(axis=axis, keepdims=True) / x.shape[axis])
    return np.where(scale > 0, x / scale, 0.0)


def ranks(x):
    order = np.argsort(np.asarray(x))
    return np.argsort(order) + 1


def spread(x):
    x = np.asarray(x, dtype=np.float64).ravel()
    return np.abs(np.diff(np.sort(x))).max() * np.prod(x.shape)
'''


def test_the_program_computes_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, ported = tmp_path / "before.py", tmp_path / "program.py"
    before.write_text(PROGRAM)
    ported.write_text(PROGRAM)
    assert cli.main(["port", str(ported), "--from", "numpy"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 of 1 files rewritten")
    assert "Estimated portable sites:" in printed
    assert "set_default_dtype" in printed
    assert "numpy" not in ported.read_text()
    check = """
        import numpy as np, before, program
        x = [[3.0, 1.0, 2.0], [5.0, 4.0, 9.0], [1.0, 0.0, 4.0]]
        np.testing.assert_allclose(np.asarray(program.standardised(x)), before.standardised(x))
        np.testing.assert_allclose(np.asarray(program.ranks([3, 1, 2])), before.ranks([3, 1, 2]))
        np.testing.assert_allclose(float(program.spread(x)), before.spread(x))
    """
    for engine in ("numpy", "torch"):
        command = [sys.executable, "-c", textwrap.dedent(check)]
        environment = {
            **os.environ,
            "EMBER_ML_BACKEND": engine,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        }
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_diff_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert cli.main(["port", str(tmp_path), "--from", "numpy", "--diff"]) == 0
    assert "+from ember_ml.nn import tensor" in capsys.readouterr().out
    assert cli.main(["port", str(tmp_path), "--from", "numpy", "--native", "--diff"]) == 0
    assert "+from ember_ml import ops" in capsys.readouterr().out
    assert program.read_text() == PROGRAM


def test_the_report_lists_what_remains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text("import numpy as np\n\n\ndef f(x: np.ndarray):\n    x[0] = 1\n    return np.roots(x)\n")
    assert cli.main(["port", str(program), "--from", "numpy", "--native"]) == 0
    printed = capsys.readouterr().out
    assert "EMB301 item assignment: 1" in printed
    assert f"{program}:6" in printed
    assert "`np.roots` has no equivalent operation" in printed


def test_constants_are_bound_to_an_engine_until_they_are_ported() -> None:
    """A site is a place that has to do with arrays; the counts are those before the port, and after it."""
    text = b"import numpy as np\n\n\ndef f(x: np.ndarray):\n    return x.shape, np.pi, np.nan, np.little_endian\n"
    done = port.ported(text, "program.py", "numpy", Config())
    assert b"ops.pi, ops.nan, np.little_endian" in done.after
    assert (done.sites, done.bound) == ((4, 3), (4, 1))


def test_a_port_ignores_rules_about_backends() -> None:
    done = port.ported(b"import numpy as np\nnp.save('x.npy', 1)\n", "program.py", "numpy", Config())
    assert {finding.code for finding in done.left} == {"EMB101", "EMB102"}


def test_tests_are_ported_on_request(tmp_path: Path) -> None:
    test = tmp_path / "tests" / "test_it.py"
    test.parent.mkdir()
    test.write_text("import numpy as np\n\nX = np.exp(1.0)\nY = np.zeros(3)\n")
    kept = test.read_bytes()
    cli.main(["port", str(tmp_path), "--from", "numpy"])
    assert test.read_bytes() == kept
    cli.main(["port", str(tmp_path), "--from", "numpy", "--tests"])
    assert test.read_bytes() != kept


def test_a_wrong_engine_or_path_is_an_error(tmp_path: Path) -> None:
    assert cli.main(["port", str(tmp_path), "--from", "fortran"]) == 2
    assert cli.main(["port", str(tmp_path / "missing"), "--from", "numpy"]) == 2


@pytest.mark.skipif(find_spec("numpy_financial") is None, reason="numpy-financial is not installed")
def test_numpy_financial(tmp_path: Path) -> None:
    """Its own tests pass after the port, on NumPy, except those with Decimal, which need arrays of objects, and one.

    ``test_fv`` calls ``np.testing.assert_equal``, for which a number and a 0-d tensor are never equal.
    """
    import shutil

    spec = find_spec("numpy_financial")
    assert spec is not None
    assert spec.submodule_search_locations
    package = tmp_path / "numpy_financial"
    shutil.copytree(spec.submodule_search_locations[0], package, ignore=shutil.ignore_patterns("__pycache__"))
    cli.main(["port", str(package), "--from", "numpy"])
    (tmp_path / "conftest.py").write_text("from ember_ml import ops\n\nops.set_default_dtype('float64')\n")
    environment = {**os.environ, "EMBER_ML_BACKEND": "numpy", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "not decimal and not test_fv",
        str(package),
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_a_file_that_does_not_parse_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import numpy as np\nx = np.exp(\n", encoding="utf-8")
    assert cli.main(["port", "--from", "numpy", str(path)]) == 1
    assert "broken.py:2: does not parse: '(' was never closed" in capsys.readouterr().out
