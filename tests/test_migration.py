"""Migration: a package with engine code in its frontend is moved whole, and what cannot be moved is refused."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import cli
from ember_ml.tools import UsageError, migration
from ember_ml.tools.analyze_backend_operations import main as analyze
from ember_ml.tools.migration import Plan, plan
from emberlint import atomic

ROOT = Path(__file__).parent.parent
ENGINES = ("numpy", "torch", "mlx")

all_engines = pytest.mark.skipif(
    not set(ENGINES) <= set(ember_ml.get_available_backends()), reason="the package is written for three engines"
)


@pytest.fixture
def legacy(tmp_path: Path) -> Path:
    """A copy of the package in a separate git repository."""
    shutil.copytree(
        ROOT / "tests" / "legacy" / "legacy", tmp_path / "legacy", ignore=shutil.ignore_patterns("__pycache__")
    )
    commit(tmp_path)
    return tmp_path / "legacy"


def commit(folder: Path) -> None:
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True, capture_output=True)


def files(package: Path) -> dict[str, str]:
    """The Python files of a package, by their place in it."""
    return {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}


def package_of(folder: Path, sources: dict[str, str]) -> Path:
    """A package made of these sources, with the missing __init__.py files."""
    package = folder / "small"
    for name, text in sources.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (path / "__init__.py").touch()
    return package


def python(folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", **changes}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def own_tests(package: Path, engine: str) -> None:
    done = python(
        package.parent, "-m", "pytest", "-q", "-p", "no:cacheprovider", "legacy/tests/examples.py",
        EMBER_ML_BACKEND=engine,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("6 passed, 1 skipped" if engine == "mlx" else "7 passed") in done.stdout


def lint(package: Path) -> tuple[int, list[dict[str, Any]]]:
    """emberlint's exit status and findings about the frontend and the backend."""
    done = python(package.parent, "-m", "emberlint", package.name, "--frontend-backend-only", "--output-format", "json")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    return done.returncode, found["findings"] if isinstance(found, dict) else found


def violations(package: Path) -> set[tuple[str, int, str]]:
    """What is wrong with the package, found by looking at its lines: file, line and rule."""
    found = set()
    for name, text in files(package).items():
        engine_folder = re.match(r"ops/(numpy|torch|mlx)/__init__", name)
        if engine_folder:
            found.add((name, 1, "EMB111"))
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r"\s*(import|from) (numpy|torch|mlx)\b", line):
                found.add((name, number, "EMB101"))
            if re.search(r'== "(numpy|torch|mlx)"', line):
                found.add((name, number, "EMB108"))
            if re.search(r"\b(np|mx|torch)\.[a-z_]+\(", line) and "no_grad" not in line:
                found.add((name, number, "EMB102"))
            if re.search(r"(: |-> )(np\.ndarray|torch\.Tensor|Tensor)\b", line):
                found.add((name, number, "EMB105"))
    return found


def test_emberlint_lists_every_violation(legacy: Path) -> None:
    status, found = lint(legacy)
    assert status == 1
    reported = {(f["filename"].removeprefix("legacy/"), f["location"]["row"], f["code"]) for f in found}
    missed = violations(legacy) - reported
    assert not missed
    assert {name for name, _, _ in reported} >= {
        "ops/__init__.py", "ops/activations.py", "nn/layers.py", "ops/torch/math.py", "ops/mlx/stats.py"
    }  # fmt: skip


@all_engines
def test_the_package_is_moved_whole(legacy: Path) -> None:
    before = files(legacy)
    own_tests(legacy, "numpy")
    found = plan(legacy)
    assert files(legacy) == before, "a plan writes nothing"
    assert not found.refusals
    moved = {(move.engine, move.operation) for move in found.moves}
    assert moved == functions_in(before)
    found.apply()
    after = files(legacy)
    assert not [name for name in after if re.match(r"ops/(numpy|torch|mlx)/", name)]
    assert not (legacy / "ops" / "torch").exists()
    assert {name.partition("/")[2].partition("/")[0] for name in after if name.startswith("backend/")} >= set(ENGINES)
    assert lint(legacy) == (0, [])
    for engine in ENGINES:
        own_tests(legacy, engine)
    assert plan(legacy).moves == [], "nothing is left to move"


def functions_in(sources: dict[str, str]) -> set[tuple[str, str]]:
    """The public functions of the engine modules, by engine and name."""
    found = set()
    for name, text in sources.items():
        match = re.match(r"ops/(numpy|torch|mlx)/", name)
        if match:
            found |= {(match[1], n.name) for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
    return {(engine, name) for engine, name in found if not name.startswith("_")}


def test_comments_decorators_helpers_and_constants_come_along(legacy: Path) -> None:
    comments = {
        line.partition("#")[2].strip()
        for name, text in files(legacy).items()
        if re.match(r"ops/(numpy|torch|mlx)/.*[a-z]\.py", name) and not name.endswith("__init__.py")
        for line in text.splitlines()
        if "#" in line
    }
    plan(legacy).apply()
    after = files(legacy)
    backend = "".join(text for name, text in after.items() if name.startswith("backend/"))
    for comment in comments:
        assert comment in backend
    assert "@_without_gradient\ndef add" in after["backend/torch/math.py"]
    assert "_TINY = 1e-12" in after["backend/numpy/math.py"]
    assert "def _largest" in after["backend/numpy/math.py"]
    assert "from legacy.checks import axis_in" in after["backend/torch/math.py"]


def test_engine_by_engine_is_the_same_as_at_once(legacy: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy" / "legacy"
    shutil.copytree(legacy, other)
    plan(legacy).apply()
    for engine in ("mlx", "torch", "numpy"):
        plan(other, engine).apply(force=True)
        for text in files(other).values():
            compile(text, "module", "exec")
    mine = {name: ast.dump(ast.parse(text)) for name, text in files(legacy).items()}
    theirs = {name: ast.dump(ast.parse(text)) for name, text in files(other).items()}
    # The order of engines decides the order of functions in a frontend that is written in steps.
    assert mine.keys() == theirs.keys()
    assert all(sorted(mine[name]) == sorted(theirs[name]) for name in mine if name.startswith("backend/"))


@all_engines
def test_the_steps_between_work_too(legacy: Path) -> None:
    plan(legacy, "mlx").apply()
    assert '"legacy.ops"' in (legacy / "backend" / "dispatch.py").read_text()
    own_tests(legacy, "numpy")
    own_tests(legacy, "mlx")


def test_one_operation_moves_alone(legacy: Path) -> None:
    found = plan(legacy, "numpy", "logsumexp")
    assert [(move.engine, move.operation) for move in found.moves] == [("numpy", "logsumexp")]
    found.apply()
    after = files(legacy)
    moved, stayed = after["backend/numpy/math.py"], after["ops/numpy/math.py"]
    assert "def logsumexp" in moved
    assert "def _largest" in moved, "its helper goes with it"
    assert "# Subtracting the largest value first" in moved
    assert "from legacy.checks import axis_in" in moved
    assert "def add" not in moved
    assert "logsumexp" not in stayed
    assert "def divide" in stayed
    assert "_TINY = 1e-12" in stayed
    done = python(
        legacy.parent, "-c", "import legacy; print(legacy.ops.logsumexp.__module__)", EMBER_ML_BACKEND="numpy"
    )
    assert done.stdout == "legacy.ops.math\n", done.stderr


@pytest.mark.parametrize("text", ["One line.", 'Several lines.\n\nWith "quotes" and a \\ in them.\n\n    indented'])
def test_the_frontend_has_the_whole_docstring(tmp_path: Path, text: str) -> None:
    function = ast.parse("def f(x):\n    return np.abs(x)\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body.insert(0, ast.Expr(ast.Constant(text)))
    package = package_of(tmp_path, {"ops/numpy/m.py": f"import numpy as np\n\n{ast.unparse(function)}\n"})
    plan(package).apply(force=True)
    (moved,) = (
        node for node in ast.parse((package / "ops/m.py").read_text()).body if isinstance(node, ast.FunctionDef)
    )
    assert ast.get_docstring(moved) == text


def test_what_a_shared_helper_leaves_behind(tmp_path: Path) -> None:
    text = (
        "import numpy as np\n\ndef _half(x):\n    return x / 2\n\n"
        "def a(x):\n    return _half(np.abs(x))\n\ndef b(x):\n    return _half(x)\n"
    )
    package = package_of(tmp_path, {"ops/numpy/m.py": text})
    plan(package, operation="a").apply(force=True)
    assert "from small.backend.numpy.m import _half" in (package / "ops/numpy/m.py").read_text()
    assert "import numpy as np" not in (package / "ops/numpy/m.py").read_text()
    plan(package).apply(force=True)
    moved = (package / "backend/numpy/m.py").read_text()
    assert moved.count("def _half") == 1
    assert "def a" in moved
    assert "def b" in moved
    done = python(tmp_path, "-c", "from small.ops.m import a, b; print(a(-4), b(6))", EMBER_ML_BACKEND="numpy")
    assert done.stdout == "2.0 3.0\n", done.stderr


F = "def f(x):\n    return x\n"

REFUSED = {
    "global": ({"ops/torch/m.py": "n = 0\ndef f(x):\n    global n\n    n += 1\n"}, "module state: n is assigned"),
    "effect": ({"ops/torch/m.py": f"import torch\ntorch.manual_seed(0)\n{F}"}, "runs when the module is imported"),
    "star": ({"ops/torch/m.py": f"from torch import *\n{F}"}, "star import"),
    "twice": ({"ops/torch/m.py": F + F.replace("return x", "return -x")}, "bound more than once"),
    "clash in the backend": ({"ops/torch/m.py": F, "backend/torch/m.py": "def f(x):\n    return 2\n"}, "name clash"),
    "clash in the frontend": ({"ops/torch/m.py": F, "ops/m.py": "def f(x):\n    return 2\n"}, "name clash"),
    "clash with a constant": ({"ops/torch/m.py": F, "ops/m.py": "f = 2\n"}, "name clash"),
    "dispatch": ({"ops/torch/m.py": F, "backend/dispatch.py": "x = 1\n"}, "dispatch.py is there"),
    "string": ({"ops/torch/m.py": F, "a.py": 'path = "small.ops.torch.m.f"\n'}, "names small.ops.torch.m in a string"),
    "computed": (
        {
            "ops/torch/m.py": F,
            "a.py": "import importlib\ndef g(n):\n    return importlib.import_module(f'small.ops.{n}')\n",
        },
        "name is computed",
    ),
    "computed inside": (
        {"ops/torch/m.py": "def f(x):\n    return __import__(x)\n"},
        "imports a module whose name is computed",
    ),
    "helper": (
        {"ops/torch/m.py": f"K = 1\n{F}", "a.py": "from small.ops.torch.m import K\n"},
        "imports its K, which is no operation",
    ),
    "attribute": (
        {"ops/torch/m.py": f"K = 1\n{F}", "a.py": "from small.ops.torch import m\nprint(m.K)\n"},
        "uses its K",
    ),
    "module of which a part stays": (
        {
            "ops/torch/m.py": f"n = 0\ndef g(x):\n    global n\n    n += 1\n{F}",
            "a.py": "from small.ops.torch import m\nprint(m.f(1))\n",
        },
        "imports the module small.ops.torch.m as a whole",
    ),
    "engine package": (
        {"ops/torch/m.py": F, "a.py": "from small.ops import torch\n"},
        "binds the whole engine package",
    ),
    "dotted": (
        {"ops/torch/m.py": F, "a.py": "import small.ops.torch.m\nprint(small.ops.torch.m.f(1))\n"},
        "by its dotted name",
    ),
    "another engine": (
        {"ops/torch/m.py": "from small.ops.numpy.n import g\n" + F, "ops/numpy/n.py": "def g(x):\n    return x\n"},
        "imports the numpy engine's g",
    ),
    "circular": (
        {"ops/torch/m.py": "from small.ops.portable import g\n" + F, "ops/portable.py": "def g(x):\n    return x\n"},
        "circular import",
    ),
    "circular by attribute": (
        {"ops/torch/m.py": "from small import ops\ndef f(x):\n    return ops.g(x)\n"},
        "circular import",
    ),
    "circle of two": (
        {
            "ops/__init__.py": "",
            "ops/torch/m.py": "from small.ops.torch.n import g\ndef f(x):\n    return g(x)\n",
            "ops/torch/n.py": "from small.ops.torch.m import f\ndef g(x):\n    return f(x)\n",
        },
        "circular import",
    ),
    "default": ({"ops/torch/m.py": "import torch\ndef f(x, dtype=torch.float32):\n    return x\n"}, "default of dtype"),
    "another file": ({"ops/torch/m.py": "def f(x):\n    return open(__file__).read()\n"}, "reads __file__"),
    "branch": ({"ops/torch/m.py": "import torch\nif torch.cuda:\n    def f(x):\n        return x\n"}, "in a branch"),
    "lambda": ({"ops/torch/m.py": "f = lambda x: x\n"}, "not a definition"),
    "partial": ({"ops/torch/m.py": "import functools\nf = functools.partial(print, 1)\n"}, "not a definition"),
    "another name": ({"ops/torch/m.py": f"{F}g = f\n"}, "not a definition"),
    "native function": ({"ops/torch/m.py": "import torch\nexp = torch.exp\npi = torch.pi\n"}, "not a definition"),
    "needs a lambda": ({"ops/torch/m.py": "g = lambda x: x\ndef f(x):\n    return g(x)\n"}, "needs g, which stays"),
    "defaults differ": (
        {"ops/numpy/m.py": "def f(x, axis=0):\n    return x\n", "ops/torch/m.py": "def f(x, axis=-1):\n    return x\n"},
        "by default",
    ),
    "fewer arguments": (
        {"ops/numpy/m.py": "def f(x, y):\n    return x\n", "ops/torch/m.py": F},
        "takes 1 arguments",
    ),
    "keyword of a caller": (
        {
            "ops/numpy/m.py": "def f(x, axis=0):\n    return x\n",
            "ops/torch/m.py": "def f(x, dim=0):\n    return x\n",
            "a.py": "from small.ops.torch.m import f\nprint(f(1, dim=0))\n",
        },
        "passes dim=",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_moved_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    sources, reason = REFUSED[name]
    package = package_of(tmp_path, sources)
    found = plan(package)
    reasons = [refusal.reason for refusal in found.refusals]
    assert any(reason in given for given in reasons), found.text()
    assert reason in found.text()


def test_what_is_refused_stays_and_the_rest_moves(tmp_path: Path) -> None:
    text = (
        "import torch\n\nn = 0\n\n\ndef f(x):\n    global n\n    n += 1\n    return torch.abs(x)\n\n\n"
        "def g(x):\n    return torch.exp(x)\n"
    )
    package = package_of(tmp_path, {"ops/torch/m.py": text})
    found = plan(package)
    assert [refusal.operation for refusal in found.refusals] == ["f"]
    assert [move.operation for move in found.moves] == ["g"]
    found.apply(force=True)
    assert "def g" in (package / "backend/torch/m.py").read_text()
    stayed = (package / "ops/torch/m.py").read_text()
    assert "def f" in stayed
    assert "def g" not in stayed


def test_names_for_functions_stay_and_find_what_moved(tmp_path: Path) -> None:
    text = "import numpy as np\n\n\ndef f(x):\n    return np.abs(x)\n\n\ng = f\nexp = np.exp\n"
    package = package_of(tmp_path, {"ops/numpy/m.py": text})
    found = plan(package)
    assert [(move.operation, move.engine) for move in found.moves] == [("f", "numpy")]
    assert sorted(refusal.operation for refusal in found.refusals) == ["exp", "g"]
    found.apply(force=True)
    code = "from small.ops.m import f; from small.ops.numpy.m import exp, g; print(f(-4), g(-6), exp(0))"
    done = python(tmp_path, "-c", code, EMBER_ML_BACKEND="numpy")
    assert done.stdout == "4 6 1.0\n", done.stderr


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_files_of_every_form_stay_whole(tmp_path: Path, end: str, mark: str) -> None:
    """Form feeds and separators that are no ends of lines, other ends of lines, and a mark of the encoding."""
    engine = (
        "import numpy as np\n\f\ndef f(x):\n    'a\fb\u2028c'\n    return np.abs(x)\n\f\ndef g(x):\n    return f(x)\n"
    )
    front = "import os\n\f\nS = 'a\u2028\fb'\ndef other(x):\n    return S + x\n"
    user = "from small.ops.numpy.m import f, g\nprint(f(-1), g(-2))\n"
    package = package_of(tmp_path, {"ops/numpy/m.py": "", "ops/m.py": "", "a.py": ""})
    for name, text in (("ops/numpy/m.py", engine), ("ops/m.py", front), ("a.py", user)):
        (package / name).write_bytes((mark + text.replace("\n", end)).encode())
    found = plan(package)
    assert found.refusals == []
    assert "+++ b/small/a.py" in found.diff()
    found.apply(force=True)
    for path in (package / "ops/m.py", package / "a.py"):
        assert path.read_bytes().count(b"\n") == path.read_bytes().count(end.encode())
    code = "import small.a; from small.ops.m import other; print(ascii(other('c')))"
    done = python(tmp_path, "-c", code, EMBER_ML_BACKEND="numpy")
    assert done.stdout == "1 2\n'a\\u2028\\x0cbc'\n", done.stderr


@pytest.mark.parametrize("head", [b"", b"# coding: latin-1\n", b"# coding: klingon\n"])
def test_a_file_in_another_encoding_is_named(tmp_path: Path, head: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    package = package_of(tmp_path, {"ops/numpy/m.py": ""})
    (package / "ops/numpy/m.py").write_bytes(head + b"S = '\xe9'\ndef f(x):\n    return S\n")
    assert cli.main(["ops", "plan", str(package)]) == 2
    said = capsys.readouterr().err
    assert f"{package / 'ops/numpy/m.py'} must be written in UTF-8" in said
    assert said.count("\n") == 1


def test_kinds_of_parameters_are_passed_on(tmp_path: Path) -> None:
    text = (
        "from typing import Any\nimport numpy as np\n\n"
        "def f(a: np.ndarray, /, b: int = 1, *rest: Any, c: 'float' = 2.0, **more: Any) -> np.ndarray:\n"
        "    return [a, b, rest, c, more]\n"
    )
    package = package_of(tmp_path, {"ops/numpy/m.py": text})
    plan(package).apply(force=True)
    front = (package / "ops/m.py").read_text()
    assert "def f(a: TensorLike, /, b: int = 1, *rest: Any, c: float = 2.0, **more: Any) -> Tensor:" in front
    code = "from small.ops.m import f; print(f(0, 3, 4, c=5, d=6))"
    done = python(tmp_path, "-c", code, EMBER_ML_BACKEND="numpy")
    assert done.stdout == "[0, 3, (4,), 5, {'d': 6}]\n", done.stderr


def test_imports_of_every_form_are_mended(tmp_path: Path) -> None:
    package = package_of(
        tmp_path,
        {
            "ops/numpy/m.py": "import numpy as np\n\ndef f(x):\n    return np.abs(x)\n",
            "ops/numpy/__init__.py": "from .m import *\n",
            "ops/__init__.py": "from .numpy.m import f as absolute  # the size\n",
            "a.py": (
                "import small.ops.numpy.m as m\nfrom small.ops.numpy import f\n\n"
                "def g(x):\n    from .ops.numpy.m import f as h\n    return m.f(f(h(x)))\n"
            ),
            "tests/test_m.py": "from small.ops.numpy.m import f\n",
            "ops/m.py": "from small.ops.numpy.m import *\n",
        },
    )
    plan(package).apply(force=True)
    after = files(package)
    assert after["ops/__init__.py"] == "from small.ops.m import f as absolute  # the size\n"
    assert "import small.ops.m as m\nfrom small.ops.m import f\n" in after["a.py"]
    assert "    from small.ops.m import f as h\n" in after["a.py"]
    assert after["tests/test_m.py"] == "from small.backend.numpy.m import f\n", "tests import from the engine"
    assert "import *" not in after["ops/m.py"]
    done = python(tmp_path, "-c", "from small.a import g; print(g(-1))", EMBER_ML_BACKEND="numpy")
    assert done.stdout == "1\n", done.stderr


def test_a_dirty_tree_is_not_written(legacy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (legacy / "new.py").write_text("")
    before = files(legacy)
    assert cli.main(["ops", "migrate", str(legacy)]) == 2
    assert "must have no uncommitted changes, got 1" in capsys.readouterr().err
    assert files(legacy) == before
    assert cli.main(["ops", "migrate", str(legacy), "--force"]) == 0
    assert files(legacy) != before


def test_what_git_ignores_is_not_written(tmp_path: Path) -> None:
    package = package_of(tmp_path, {"ops/torch/m.py": F})
    (tmp_path / ".gitignore").write_text("small/\n")
    commit(tmp_path)
    before = files(package)
    with pytest.raises(UsageError, match=r"git must not ignore .*--force"):
        plan(package).apply()
    assert files(package) == before


def test_no_repository_is_not_written(tmp_path: Path) -> None:
    package = package_of(tmp_path, {"ops/torch/m.py": F})
    with pytest.raises(UsageError, match="must be in a git repository"):
        plan(package).apply()
    assert (package / "ops/torch/m.py").exists()


def test_all_is_written_or_nothing(legacy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(legacy)
    written: list[Path] = []
    write = atomic.write

    def failing(path: Path, text: str, *, parents: bool) -> None:
        written.append(path)
        if len(written) == 7:
            raise OSError("no space left")
        write(path, text, parents=parents)

    monkeypatch.setattr(migration.atomic, "write", failing)
    with pytest.raises(OSError, match="no space"):
        plan(legacy).apply()
    assert len(written) > 7, "what was written is put back"
    assert files(legacy) == before
    assert not (legacy / "backend").exists()


def test_dry_run_says_everything_and_writes_nothing(legacy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(legacy)
    assert cli.main(["ops", "migrate", str(legacy), "--backend", "torch", "--dry-run", "--verbose"]) == 0
    out = capsys.readouterr().out
    assert "torch: 10 operations to move" in out
    assert "+++ b/legacy/backend/torch/math.py" in out
    assert "--- a/legacy/ops/torch/math.py\n+++ /dev/null" in out
    assert "mlx:" not in out
    assert "nothing was written" in out
    assert files(legacy) == before
    assert cli.main(["ops", "migrate", str(legacy), "--backend", "torch", "--verbose"]) == 0
    done = capsys.readouterr().out
    assert files(legacy) != before
    assert done.replace(done.splitlines()[-1], "nothing was written") == out, "the same is said when it is done"


def test_plan_for_machines(legacy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ops", "plan", str(legacy), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["moves"]) == 29
    assert facts["refused"] == []
    assert any("missing on mlx" in note for note in facts["notes"])


def test_the_diff_is_one_that_git_applies(legacy: Path) -> None:
    found = plan(legacy)
    patch = legacy.parent / "a.patch"
    patch.write_text(found.diff())
    applied = subprocess.run(["git", "apply", "--check", "a.patch"], cwd=legacy.parent, capture_output=True)
    assert applied.returncode == 0, applied.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "nowhere"], "must be a folder"),
        (["plan", "."], "must be a package"),
        (["plan", "small", "--backend", "abacus"], "engine must be one of"),
        (["migrate", "small", "--operation", "h"], "must have the operation in its frontend, got 'h'"),
    ],
)
def test_misuse_is_one_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package_of(tmp_path, {"ops/torch/m.py": F})
    monkeypatch.chdir(tmp_path)
    assert cli.main(["ops", *arguments]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_file_that_does_not_parse_is_named(tmp_path: Path) -> None:
    package = package_of(tmp_path, {"ops/torch/m.py": "def f(:\n"})
    with pytest.raises(UsageError, match=r"m\.py must be valid Python"):
        plan(package)


def test_the_older_command(legacy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze(["--migrate", "--backend", "torch", "--dry-run", "--verbose"]) == 0
    assert "nothing to move" in capsys.readouterr().out
    assert analyze(["--migrate", "--package", str(legacy), "--backend", "torch", "--operation", "relu"]) == 0
    assert "relu: legacy.ops.torch.activations -> legacy.backend.torch.activations" in capsys.readouterr().out
    assert analyze(["--backend", "numpy"]) == 0
    assert "numpy: " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        analyze(["--dry-run"])


def test_nothing_to_move(tmp_path: Path) -> None:
    package = package_of(tmp_path, {"a.py": "x = 1\n"})
    found = plan(package)
    assert isinstance(found, Plan)
    assert found.text() == "nothing to move: no engine code in the frontend\n"
    assert found.diff() == ""
    found.apply()


@pytest.fixture(autouse=True)
def _numpy() -> Iterator[None]:
    ember_ml.set_backend("numpy")
    yield
    ember_ml.set_backend("numpy")


def test_imports_that_still_hold_move_as_they_are_written(tmp_path: Path) -> None:
    kept = "from numpy import (\n    abs as size,  # of each element\n    exp,\n)\n"
    package = package_of(tmp_path, {"ops/numpy/m.py": f"{kept}\n\ndef f(x):\n    return size(exp(x))\n"})
    plan(package).apply(force=True)
    assert kept in (package / "backend/numpy/m.py").read_text()
