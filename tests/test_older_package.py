"""Migration of packages with the architecture of earlier versions: engine code in ``ops/<engine>``, functions of the
frontend that call ``get_backend().sin(x)``, and a table of the modules to import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ember_ml
from ember_ml import cli
from ember_ml.tools.analyze_backend_operations import main as analyze
from ember_ml.tools.migration import plan
from emberlint import cli as linter

ENGINES = ("numpy", "torch", "mlx")

pytestmark = pytest.mark.skipif(
    not set(ENGINES) <= set(ember_ml.get_available_backends()), reason="the package is written for three engines"
)

# One engine's modules; the imports, the names of its module, and the conversion differ.
TENSOR_OPS = '''"""Tensors of {engine}."""

{imports}


def convert_to_tensor(data, dtype=None):
    """A tensor of {engine}."""
    return {convert}


def stack(tensors, axis=0):
    """Tensors along a new axis."""
    tensors = [convert_to_tensor(t) for t in tensors]
    return {module}.stack(tensors, {axis}=axis)


def to_numpy(x):
    """A NumPy array."""
    return {numpy}
'''

MATH_OPS = '''"""Arithmetic of {engine}."""

{imports}

from {package}.ops.{engine}.tensor_ops import convert_to_tensor

# The names of constants move too.
TWO = 2.0


def _ready(x):
    return convert_to_tensor(x)


def sin(x):
    """Sine of x, by {engine}."""
    return {module}.sin(x)


def add(x, y):
    """Sum, by {engine}."""
    return {module}.add(_ready(x), _ready(y))


def double(x):
    """Twice x, by {engine}."""
    from {package}.ops.{engine}.tensor_ops import convert_to_tensor as converted

    return {module}.multiply(converted(x), converted(TWO))
'''

OWN = {
    "numpy": {
        "imports": "import numpy as np", "module": "np", "axis": "axis", "numpy": "np.asarray(x)",
        "convert": "np.asarray(data, dtype=dtype or np.float32)",
    },
    "torch": {
        "imports": "import torch", "module": "torch", "axis": "dim", "numpy": "x.numpy()",
        "convert": "torch.as_tensor(data, dtype=dtype or torch.float32)",
    },
    "mlx": {
        "imports": "import mlx.core\nimport numpy", "module": "mlx.core", "axis": "axis", "numpy": "numpy.array(x)",
        "convert": "mlx.core.array(data, dtype=dtype or mlx.core.float32)",
    },
}  # fmt: skip

WITH_STARS = '''"""The operations of {engine}."""

from .math_ops import *
from .tensor_ops import *
'''

ENGINE_PACKAGE = '''"""The operations of {engine}."""

from {package}.ops.{engine}.math_ops import add, double, sin
from {package}.ops.{engine}.tensor_ops import convert_to_tensor, stack, to_numpy
'''

FRONTEND_MATH = '''"""Arithmetic of the active engine."""

from {package}.backend import {chooser}
from {package}.ops.tensor_ops import convert_to_tensor


def sin(x):
    """Compute the sine of x, element by element.

    Args:
        x: a tensor
    """
    x = convert_to_tensor(x)
    return {chooser}().sin(x)


def add(x, y):
    """Compute a sum."""
    x = convert_to_tensor(x)
    y = convert_to_tensor(y)
    return {chooser}().add(x, y)


def double(x):
    """Compute twice x."""
    backend = {chooser}()
    return backend.double(x)
'''

FRONTEND_TENSOR = '''"""Tensors of the active engine."""

from {package}.backend import {chooser}


def convert_to_tensor(data, dtype=None):
    """Create a tensor."""
    return {chooser}().convert_to_tensor(data, dtype=dtype)


def stack(tensors, axis=0):
    """Stack tensors."""
    return {chooser}().stack(tensors, axis)


def to_numpy(x):
    """Convert to NumPy."""
    return {chooser}().to_numpy(x)
'''

FRONTEND = '''"""Operations."""

from {package}.backend import set_backend
from {package}.ops.{math} import add, double, sin
from {package}.ops.tensor_ops import convert_to_tensor, stack, to_numpy
'''

TESTS = '''"""The package's own tests."""

import math

import pytest

from {package} import backend, ops

ENGINES = ("numpy", "torch", "mlx")


def test_sin(engine):
    assert abs(float(ops.sin([0.5])[0]) - math.sin(0.5)) < 1e-6


def test_add(engine):
    assert ops.to_numpy(ops.add([1.0, 2.0], [3.0, 4.0])).tolist() == [4.0, 6.0]


def test_double(engine):
    assert ops.to_numpy(ops.double([1.5])).tolist() == [3.0]


def test_stack(engine):
    assert ops.to_numpy(ops.stack([[1.0], [2.0]], axis=1)).tolist() == [[1.0, 2.0]]


def test_tensors_are_of_the_engine(engine):
    assert type(ops.convert_to_tensor([1.0])).__module__.partition(".")[0] == engine


def test_the_engine_can_be_changed(engine):
    for name in ENGINES:
        ops.set_backend(name)
        assert backend.name() == name
        assert type(ops.sin([1.0])).__module__.partition(".")[0] == name
'''

# The module that chooses an engine. The first has a dictionary of the engines' packages in the frontend.
BY_TABLE = '''"""The choice of an engine."""

import importlib

_BACKENDS = {{
    "numpy": "{package}.ops.numpy",
    "torch": "{package}.ops.torch",
    "mlx": '{package}.ops.mlx',
}}

_CURRENT_BACKEND = "numpy"
_CURRENT_BACKEND_MODULE = None


def name():
    return _CURRENT_BACKEND


def set_backend(backend):
    global _CURRENT_BACKEND, _CURRENT_BACKEND_MODULE
    if backend not in _BACKENDS:
        raise ValueError(backend)
    _CURRENT_BACKEND = backend
    _CURRENT_BACKEND_MODULE = None


def {chooser}():
    global _CURRENT_BACKEND_MODULE
    if _CURRENT_BACKEND_MODULE is None:
        # Import the backend module only when needed
        _CURRENT_BACKEND_MODULE = importlib.import_module(_BACKENDS[_CURRENT_BACKEND])
    return _CURRENT_BACKEND_MODULE
'''

# The second computes the name of a module of the backend, which imports the code of its engine from the frontend.
BY_FORMAT = '''"""The choice of an engine."""

import importlib

_current = "numpy"


def name():
    return _current


def set_backend(backend):
    global _current
    _current = backend


def {chooser}():
    return importlib.import_module(f"{package}.backend.{{_current}}_backend")
'''

BACKEND_MODULE = '''"""What {engine} computes."""

from {package}.ops.{engine}.math_ops import add, double, sin
from {package}.ops.{engine}.tensor_ops import convert_to_tensor, stack, to_numpy
'''


def write(folder: Path, kind: str) -> Path:
    """A package in the form that earlier documents teach."""
    package = f"older_{kind}"
    names = {"package": package, "chooser": "get_backend_module" if kind == "format" else "get_backend"}
    math = "math" if kind == "table" else "math_ops"
    sources = {
        "__init__.py": "",
        "backend/__init__.py": (BY_FORMAT if kind == "format" else BY_TABLE).format(**names),
        "ops/__init__.py": FRONTEND.format(math=math, **names),
        f"ops/{math}.py": FRONTEND_MATH.format(**names),
        "ops/tensor_ops.py": FRONTEND_TENSOR.format(**names),
        "tests/__init__.py": "",
        "tests/test_ops.py": TESTS.format(**names),
    }
    for engine, own in OWN.items():
        words = {**names, **own, "engine": engine}
        sources[f"ops/{engine}/__init__.py"] = (WITH_STARS if kind == "stars" else ENGINE_PACKAGE).format(**words)
        sources[f"ops/{engine}/math_ops.py"] = MATH_OPS.format(**words)
        sources[f"ops/{engine}/tensor_ops.py"] = TENSOR_OPS.format(**words)
        if kind == "format":
            sources[f"backend/{engine}_backend.py"] = BACKEND_MODULE.format(**words)
    for name, text in sources.items():
        path = folder / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / package


@pytest.fixture(params=["table", "stars", "format"])
def package(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield write(tmp_path, request.param)
    forget(f"older_{request.param}")


def forget(package: str) -> None:
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
        del sys.modules[name]


def run_own_tests(package: Path) -> int:
    """Run the tests of a package on every engine, with its modules imported anew, and return their number."""
    forget(package.name)
    import importlib

    importlib.invalidate_caches()
    tests: ModuleType = importlib.import_module(f"{package.name}.tests.test_ops")
    found = [value for name, value in vars(tests).items() if name.startswith("test_")]
    for engine in ENGINES:
        for test in found:
            importlib.import_module(f"{package.name}.ops").set_backend(engine)
            test(engine)
    return len(found)


def files(package: Path) -> dict[str, str]:
    return {path.relative_to(package).as_posix(): path.read_text() for path in sorted(package.rglob("*.py"))}


def test_the_package_migrates_whole(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(package)
    assert run_own_tests(package) == 6
    assert cli.main(["ops", "plan", str(package)]) == 0
    planned = capsys.readouterr().out
    assert "refused" not in planned
    for engine in ENGINES:
        assert f"{engine}: 6 operations to move" in planned
    assert cli.main(["ops", "migrate", str(package), "--force"]) == 0
    after = files(package)
    assert not [name for name in after if name.startswith(tuple(f"ops/{engine}" for engine in ENGINES))]
    for engine in ENGINES:
        assert {f"backend/{engine}/math_ops.py", f"backend/{engine}/tensor_ops.py"} <= set(after)
    for name in ("ops/__init__.py", "ops/math.py", "ops/math_ops.py", "ops/tensor_ops.py"):
        assert after.get(name) == before.get(name), "the functions of the frontend stay as they are"
    assert run_own_tests(package) == 6
    assert plan(package).moves == [], "nothing is left to move"
    capsys.readouterr()
    assert linter.main([str(package), "--frontend-backend-only", "--no-cache"]) == 0, capsys.readouterr().out


def test_engine_by_engine(package: Path) -> None:
    for engine in ENGINES:
        assert cli.main(["ops", "migrate", str(package), "--backend", engine, "--force"]) == 0
        assert run_own_tests(package) == 6
    assert not [name for name in files(package) if name.startswith(tuple(f"ops/{engine}" for engine in ENGINES))]


def test_the_older_command_shows_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = write(tmp_path, "table")
    assert analyze(["--verbose", "--package", str(package)]) == 0
    out = capsys.readouterr().out
    assert "matmul" in out
    for engine in ENGINES:
        assert f"missing on {engine}: none" in out
        assert f"{engine}: 6 operations to move" in out
    assert analyze(["--migrate", "--package", str(package), "--backend", "torch", "--dry-run", "--verbose"]) == 0
    assert f"+++ b/{package.name}/backend/torch/math_ops.py" in capsys.readouterr().out


def test_the_older_command_without_a_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze(["--verbose"]) == 0
    out = capsys.readouterr().out
    assert "missing on numpy: none" in out
    assert "nothing to move" in out


NAMED = "def f(x):\n    return x\n"
CHOICE = "import importlib\n\nTABLE = {'torch': 'small.ops.torch.m'}\n\n\ndef get(name):\n"

# What another module has, and what is said.
REFUSED = {
    "a table that changes": (
        CHOICE + "    TABLE[name] = name\n    return importlib.import_module(TABLE[name])\n", "name is computed"),
    "a table that is updated": (
        CHOICE + "    TABLE.update(name)\n    return importlib.import_module(TABLE[name])\n", "name is computed"),
    "a table of computed names": (
        "import importlib\nTABLE = {'torch': 'small.' + 'ops'}\nm = importlib.import_module(TABLE['torch'])\n",
        "name is computed"),
    "a name below the frontend": (
        "import importlib\n\n\ndef get(name):\n    return importlib.import_module(f'small.ops.{name}.m')\n",
        "name is computed"),
    "a parameter": ("import importlib\n\n\ndef get(name):\n    return importlib.import_module(name)\n", "is computed"),
    "a string elsewhere": ("NAMES = ['small.ops.torch']\n", "names small.ops.torch in a string"),
    "a function of the frontend that computes": (None, "does more than choose an engine"),
}  # fmt: skip


def small(folder: Path, other: str | None) -> Path:
    package = folder / "small"
    sources = {"ops/torch/m.py": NAMED, "a.py": other or ""}
    if other is None:
        sources["ops/m.py"] = (
            "from small.backend import get_backend\n\n\ndef f(x):\n    return get_backend().f(x) + 1\n"
        )
    for name, text in sources.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (path / "__init__.py").touch()
    return package


@pytest.mark.parametrize("case", REFUSED)
def test_what_may_be_another_name_is_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, says = REFUSED[case]
    package = small(tmp_path, other)
    assert cli.main(["ops", "plan", str(package)]) == 1, "as the migration would"
    assert says in capsys.readouterr().out
    assert cli.main(["ops", "plan", str(package), "--json"]) == 1
    assert cli.main(["ops", "migrate", str(package), "--force"]) == 1


ACCEPTED: dict[str, tuple[str, str]] = {
    "a table": (CHOICE + "    return importlib.import_module(TABLE[name])\n", "'small.backend.torch.m'"),
    "a table with a default": (
        CHOICE + "    return importlib.import_module(TABLE.get(name, 'math'))\n", "'small.backend.torch.m'"),
    "a variable": (
        CHOICE + "    path = TABLE[name]\n    return importlib.import_module(path)\n", "'small.backend.torch.m'"),
    "a constant": ("import importlib\nm = importlib.import_module('small.ops.torch.m')\n", "'small.backend.torch.m'"),
    "the package of an engine": (
        "import importlib\nTABLE = {'torch': 'small.ops.torch'}\nm = importlib.import_module(TABLE['torch'])\n",
        "'small.backend.torch'"),
    "a name below the backend": (
        "import importlib\n\n\ndef get(name):\n    return importlib.import_module(f'small.backend.{name}')\n",
        "f'small.backend.{name}'"),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_names_of_modules_are_changed(case: str, tmp_path: Path) -> None:
    other, now = ACCEPTED[case]
    package = small(tmp_path, other)
    found: Any = plan(package)
    assert not found.refusals
    found.apply(force=True)
    assert now in (package / "a.py").read_text()
    assert (package / "backend" / "torch" / "m.py").read_text() == NAMED
    assert not (package / "ops" / "torch").exists()


def test_a_package_of_an_engine_joins_the_one_that_its_backend_has(tmp_path: Path) -> None:
    other, _ = ACCEPTED["the package of an engine"]
    package = small(tmp_path, other)
    (package / "ops" / "torch" / "__init__.py").write_text("from small.ops.torch.m import f\n")
    (package / "backend" / "torch").mkdir(parents=True)
    (package / "backend" / "__init__.py").touch()
    held = package / "backend" / "torch" / "__init__.py"
    held.write_text('"""How torch computes."""\n\nimport math\n')
    plan(package).apply(force=True)
    assert held.read_text() == '"""How torch computes."""\n\nimport math\nfrom small.backend.torch.m import f\n'
    held.write_text("state = []\n")
    again = small(tmp_path / "again", other)
    (again / "backend" / "torch").mkdir(parents=True)
    for folder in (again / "backend", again / "backend" / "torch"):
        (folder / "__init__.py").write_text("state = []\n")
    assert [refusal.reason for refusal in plan(again).refusals] == [
        "name clash: small.backend.torch already has an __init__.py that does more"
    ]


def test_what_no_function_of_the_frontend_calls_gets_none(tmp_path: Path) -> None:
    """A package that chooses its engine itself has no use for functions that follow ``ember_ml.get_backend()``."""
    package = write(tmp_path, "table")
    for engine in ENGINES:
        with (package / "ops" / engine / "math_ops.py").open("a") as file:
            file.write("\n\ndef extra(x):\n    return x\n")
    found = plan(package)
    assert not found.refusals
    assert {move.operation for move in found.moves} >= {"extra", "sin"}
    assert not [path for path in found.changes if path.name == "dispatch.py" or path == package / "ops" / "math_ops.py"]
    user = package / "layers.py"
    user.write_text("from older_table.ops.numpy.math_ops import extra\n\n\ndef layer(x):\n    return extra(x)\n")
    found = plan(package)
    assert found.changes[package / "backend" / "dispatch.py"] is not None
    assert "extra: its engine is ember_ml.get_backend(), not that of the package" in found.notes
    assert "from older_table.ops.math_ops import extra" in str(found.changes[user])
