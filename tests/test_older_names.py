"""The older names: every row of ``ember_ml/older_names.py`` works as earlier versions wrote it, on every engine."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from older_documents import DOCUMENTS

import ember_ml
from ember_ml import cli, nn, ops
from ember_ml.backend import Backend
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor
from ember_ml.older_names import CALLS, COMMANDS, GONE, MODULES, NAMES, OPTIONS, SAME, Older
from ember_ml.tools.analyze_backend_operations import main as analyze
from ember_ml.types import Tensor
from emberlint import cli as linter

ROOT = Path(__file__).parents[1]


def rows(table: tuple[Older, ...]) -> Any:
    return pytest.mark.parametrize("row", table, ids=lambda row: row.older)


@rows(MODULES)
def test_modules(row: Older, backend: Backend) -> None:
    assert import_module(row.older) is import_module(row.now)
    parent, _, name = row.older.rpartition(".")
    assert getattr(import_module(parent), name) is import_module(row.now)


@rows(NAMES)
def test_names(row: Older, backend: Backend) -> None:
    names: dict[str, Any] = {}
    for path in (row.older, row.now):
        place, _, name = path.rpartition(".")
        exec(f"from {place} import {name} as found", names)
        names[path] = names["found"]
    assert names[row.older] is names[row.now]


@pytest.mark.parametrize(("place", "name"), [(place, name) for place, names in SAME.items() for name in names.split()])
def test_names_that_are_the_same(place: str, name: str, backend: Backend) -> None:
    assert resolve(f"{place}.{name}") is not None


def resolve(path: str) -> Any:
    """Object with a dotted path: a module, or an attribute of one."""
    module, _, name = path.rpartition(".")
    try:
        return import_module(path)
    except ModuleNotFoundError as error:
        if not module or error.name is None or not path.startswith(error.name):
            raise
        return getattr(resolve(module), name)


def variants(pattern: str) -> list[str]:
    """Names that a pattern with braces stands for."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


@rows(CALLS)
def test_calls(row: Older, backend: Backend) -> None:
    def value(call: str) -> Any:
        ember_ml.set_backend(backend.name)
        names = {**vars(ember_ml), "ember_ml": ember_ml, "nn": nn, "x": ops.asarray([1.0, 3.0]), "data": [1.0, 3.0]}
        return eval(call, names), ember_ml.get_backend()

    (older, engine), (now, other) = value(row.older), value(row.now)
    assert (type(older), engine) == (type(now), other)
    if isinstance(older, Tensor):
        assert (ops.dtype(older), older.tolist()) == (ops.dtype(now), now.tolist())
    else:
        assert older == now


@rows(COMMANDS)
def test_commands(row: Older, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "small"
    (package / "ops" / "torch").mkdir(parents=True)
    for folder in (package, package / "ops", package / "ops" / "torch"):
        (folder / "__init__.py").touch()
    (package / "ops" / "torch" / "math.py").write_text("import torch\n\n\ndef sin(x):\n    return torch.sin(x)\n")
    older = [str(package) if word == "PACKAGE" else word for word in shlex.split(row.older)]
    now = [str(package) if word == "PACKAGE" else word for word in shlex.split(row.now)]
    if "emberlint" in older[1]:
        assert older[2:] == now[1:]
        assert linter.main([*older[2:], "--no-cache"]) == 1
        assert "EMB101" in capsys.readouterr().out
    else:
        given = ["--package", str(package), *(["--force"] if "migrate" in now else [])]
        assert analyze([*older[2:], *given]) == 0
        before = capsys.readouterr().out
        assert "sin: small.ops.torch.math -> small.backend.torch.math" in before
        assert (package / "backend").exists() == ("migrate" in now)
        assert cli.main([*now[1:], *(["--force"] if "migrate" in now else [])]) == 0


def exit_status(run: Callable[[list[str]], int], arguments: list[str]) -> int:
    """What a command returns, or exits with."""
    try:
        return run(arguments)
    except SystemExit as error:
        return int(error.code or 0)


@rows(OPTIONS)
def test_options(row: Older, capsys: pytest.CaptureFixture[str]) -> None:
    script, flag = row.older.split()
    run = analyze if "analyze" in script else linter.main
    assert exit_status(run, ["--help"]) == 0
    assert f"{flag} " in capsys.readouterr().out.replace("\n", " ").replace(",", " ").replace("]", " ")
    assert_exists(row.now, capsys)


@rows(GONE)
def test_what_is_gone(row: Older, capsys: pytest.CaptureFixture[str]) -> None:
    ember_ml.set_backend("numpy")
    older, now = variants(row.older), variants(row.now)
    for name in older:
        assert_gone(name)
    assert len(now) in (1, len(older))
    for name in now:
        assert_exists(name, capsys)


def assert_gone(older: str) -> None:
    if older.startswith("ember_ml"):
        with pytest.raises((AttributeError, ModuleNotFoundError)) as caught:
            resolve(older)
        assert str(caught.value).rpartition("'")[0].rpartition("'")[2].rpartition(".")[2] in older.split(".")
    elif older.isidentifier() or "(" in older:
        names = {**vars(ember_ml), "x": 1.0}
        with pytest.raises((AttributeError, ImportError, NameError)):
            exec(f"import {older}" if older.islower() and older.isidentifier() else older, names)
    else:
        # A file, a command line or the name of a rule.
        assert not (ROOT / older).exists()


def assert_exists(now: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Assert that there is what the second column names: a command with its options, a setting, or a name."""
    words = now.split()
    if words[:1] in (["ember-ml"], ["emberlint"]):
        flags = [word for word in words[1:] if word.startswith("--")]
        actions = list(itertools.takewhile(lambda word: not word.startswith("--"), words[1:]))
        run: Callable[[list[str]], int] = cli.main if words[0] == "ember-ml" else linter.main
        assert exit_status(run, [*actions, *(["--help"] if words[0] == "ember-ml" or not actions else [])]) == 0
        said = capsys.readouterr().out
        assert all(flag in said for flag in flags)
        if "--category" in flags:
            assert run([*words[1:], "--json"]) == 0
            assert words[-1] in capsys.readouterr().out
    elif words[:1] == ["make"]:
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    elif now.startswith("["):
        assert f"\n{now}\n" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    elif now:
        call = now.endswith(")")
        names = {**vars(ember_ml), "ember_ml": ember_ml, "ops": ops, "x": ops.asarray([1.0, 3.0])}
        assert (eval(now, names) if call else resolve(now)) is not None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_page_has_every_name_of_the_older_documents(document: str) -> None:
    """A name is in the first column of a table, or in the text, as code; files are there as modules."""
    page = (ROOT / "docs" / "older_names.md").read_text(encoding="utf-8")
    cells = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
    same = [cell for cell in cells if len(cell) == 2]
    text = "\n".join(line for line in page.splitlines() if not line.startswith("|"))
    shown = [cell[0] for cell in cells] + [cell[1] for cell in same] + re.findall("`[^`\n]+`", text)
    known = "\n".join(name for span in re.findall("`([^`\n]+)`", "\n".join(shown)) for name in variants(span))
    for name in DOCUMENTS[document].split():
        module = name
        if ("/" in name and not name.startswith(("utils/", "~"))) or name.endswith("_backend.py"):
            module = name.replace("emberharmony", "ember_ml").removesuffix("__init__.py").removesuffix(".py")
            module = module.strip("/").replace("/", ".")
        assert re.search(rf"(?<![\w-]){re.escape(module)}(?![\w-])", known), name


def test_settings_are_the_same() -> None:
    from ember_ml import backend

    assert backend.VARIABLE == "EMBER_ML_BACKEND"
    assert backend.choice_file() == Path.home() / ".ember" / "backend"


def test_unknown_names_are_errors_still() -> None:
    for module in (
        "ember_ml.ops",
        "ember_ml.ops.linearalg",
        "ember_ml.types",
        "ember_ml.nn.features",
        "ember_ml.nn.tensor",
    ):
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'$"):
            _ = import_module(module).nothing
    with pytest.raises(ModuleNotFoundError):
        import_module("ember_ml.nn.features.nothing")
    assert "Standardizer" not in dir(import_module("ember_ml.nn.tensor"))


def test_every_row_is_of_a_module_that_has_it() -> None:
    """A row is found by its path, so no path is there twice."""
    every = (*MODULES, *NAMES, *CALLS, *COMMANDS, *OPTIONS, *GONE)
    paths = [path for row in every for path in variants(row.older)]
    assert len(set(paths)) == len(paths)
    assert all(row.remark for row in every)


def test_they_load_no_engine() -> None:
    program = (
        "import sys, ember_ml, ember_ml.older_names, ember_ml.types\nember_ml.ops.set_backend, ember_ml.types.Numeric\n"
    )
    program += "assert not {'numpy', 'torch', 'mlx', 'ember_ml.nn'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_set_backend_takes_one_name(backend: Backend) -> None:
    ember_ml.set_backend(backend=backend.name)
    assert ember_ml.get_backend() == backend.name
    with pytest.raises(
        TypeError, match=r"^set_backend: only one of name and backend must be given, got 'numpy' and 'n"
    ):
        ember_ml.set_backend("numpy", backend="numpy")
    with pytest.raises(TypeError, match=r"^set_backend: the name of a backend must be a string"):
        ember_ml.set_backend()


def test_the_module_of_a_backend_has_every_operation(backend: Backend) -> None:
    module = ember_ml.get_backend_module()
    assert import_module(f"ember_ml.backend.{backend.name}") is module
    assert module.__name__ == f"ember_ml.backend.{backend.name}"
    other = next(name for name in ember_ml.get_available_backends() if name != backend.name)
    ember_ml.set_backend(other)
    for name, arguments in (
        ("add", ([1.0], 2.0)),
        ("zeros", (2,)),
        ("absolute", ([-1.0],)),
        ("random_normal", ((2,),)),
    ):
        assert isinstance(getattr(module, name)(*arguments), backend.tensors), name
    for name in ("nothing", "random_", "pi"):
        with pytest.raises(AttributeError, match=f"^module 'ember_ml.backend.{backend.name}' has no attribute"):
            getattr(module, name)


def test_get_device(backend: Backend) -> None:
    x = ops.ones(2)
    assert ops.get_device() == ops.get_device(x) == ops.get_device(tensor=x) == ops.get_default_device()
    assert tensor.get_device(tensor=EmberTensor(x)) == EmberTensor(x).get_device() == ops.get_device()


def test_metal_is_the_gpu_of_mlx(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend.name != "mlx":
        with pytest.raises(ValueError, match="metal"):
            ops.zeros(2, device="metal")
        return
    import mlx.core as mx

    if "gpu" in backend.devices():
        assert backend.find_device("metal") == mx.Device(mx.gpu)
        return
    with pytest.raises(ValueError, match="device must be one of cpu on the mlx backend, got 'metal'"):
        ops.zeros(2, device="metal")
    monkeypatch.setattr(backend.core, "devices", lambda: ["cpu", "gpu"])
    assert backend.find_device("metal") == mx.Device(mx.gpu)


makers = pytest.mark.parametrize(
    "make", [ops.convert_to_tensor, tensor.convert_to_tensor, EmberTensor], ids=["ops", "nn.tensor", "EmberTensor"]
)


@makers
def test_conversion_by_position_and_by_keyword(make: Callable[..., Any], backend: Backend) -> None:
    for x in (
        make([1, 2], "float32", "cpu", False),
        make(data=[1, 2], dtype=ember_ml.float32, device="cpu", requires_grad=False),
    ):
        assert isinstance(x, backend.tensors if make is ops.convert_to_tensor else EmberTensor)
        assert (ops.dtype(x), ops.get_device(x), x.tolist()) == ("float32", "cpu", [1.0, 2.0])
        assert not getattr(x, "requires_grad", False)
    assert ops.dtype(make([1, 2])) == "int64"


@makers
def test_conversion_with_a_gradient(make: Callable[..., Any], backend: Backend) -> None:
    if backend.name != "torch":
        with pytest.raises(
            ember_ml.UnsupportedError,
            match=f"^{make.__name__}: requires_grad must be False except on the torch backend, got True on the "
            f"{backend.name} backend; ember_ml.grad works on every engine",
        ):
            make([1.0], requires_grad=True)
        return
    x = make([3.0], requires_grad=True)
    ops.sum(ops.multiply(x, x)).backward()
    assert x.grad.tolist() == [6.0]
    given = ops.ones(2)
    shared = make(given, None, None, True)
    assert (shared.requires_grad, given.requires_grad) == (True, False), "the argument is not changed"
    assert make(shared, requires_grad=True).requires_grad
    with pytest.raises(TypeError, match=f"^{make.__name__}: requires_grad must be False for a tensor that is not fl"):
        make([1], requires_grad=True)


@makers
def test_errors_name_what_was_called(make: Callable[..., Any], backend: Backend) -> None:
    name = make.__name__
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (("one",), {}),
        (([[1], [1, 2]],), {}),
        (([1],), {"dtype": "float33"}),
        (([1], "float32", "abacus"), {}),
        (([1],), {"requires_grad": "yes"}),
        (([1],), {"grad": True}),
        (([1], None, None, False, None, None), {}),
        ((), {}),
    ]
    for arguments, options in wrong:
        with pytest.raises((TypeError, ValueError), match=rf"^{name}(: |\(\) |\.__init__\(\) )") as caught:
            make(*arguments, **options)
        assert "asarray" not in "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


def test_dtype_has_the_dtypes(backend: Backend) -> None:
    for place in (tensor, ops, import_module("ember_ml.nn.tensor.common.dtypes")):
        for name in ember_ml.dtypes.__all__:
            assert getattr(place.dtype, name) is getattr(ember_ml, name)
        assert place.dtype(ops.ones(2)) == "float32"
    assert isinstance(tensor.ones(2, dtype=tensor.dtype.int8).dtype, tensor.DType)


def test_protocols(backend: Backend) -> None:
    x = EmberTensor([1.0])
    assert isinstance(x, tensor.TensorInterface)
    assert isinstance(x.dtype, tensor.DTypeInterface)
    assert not isinstance(x.native, tensor.TensorInterface)
    assert not isinstance("float32", tensor.DTypeInterface)


# Calls without an EmberTensor among the arguments.
NATIVE_CALLS = {
    "add": ([1.0], 2), "sum": ([1.0, 2.0],), "stack": ([[1.0], [2.0]],), "concatenate": ([[1.0], [2.0]],),
    "where": ([True, False], 1.0, 2.0), "matmul": ([[1.0]], [[2.0]]), "one_hot": ([0, 1], 2), "sort": ([2.0, 1.0],),
    "split": ([1.0, 2.0], 2), "svd": ([[1.0]],), "unique_counts": ([1, 1],), "nonzero": ([1, 0],), "relu": ([1.0],),
    "broadcast_arrays": ([1.0], 2.0), "mean_squared_error": ([1.0], [2.0]), "diag": ([1.0],),
    "astype": ([1.0], "int32"),
    "atleast_1d": (1.0,), "divmod": ([3.0], 2.0), "zeros": (2,), "random_normal": ((2,),), "asarray": ([1.0],),
    "linearalg.norm": ([1.0],), "linalg.qr": ([[1.0]],), "linearalg.diag": ([1.0],), "stats.mean": ([1.0],),
    "fft.fft": ([1.0],), "bitwise.bitwise_and": ([1], [1]), "random.random_uniform": ((2,),),
}  # fmt: skip


@pytest.mark.parametrize("name", NATIVE_CALLS)
def test_functions_of_tensor_return_ember_tensors(name: str, backend: Backend) -> None:
    function: Any = tensor
    reference: Any = ops
    for part in name.split("."):
        function = getattr(function, part)
        reference = getattr(reference, part, reference)
    found = function(*NATIVE_CALLS[name])
    leaves = list(found) if isinstance(found, (list, tuple)) else [found]
    assert leaves
    for leaf in leaves:
        assert type(leaf) is EmberTensor
        assert leaf.backend == backend.name
        assert isinstance(leaf.native, backend.tensors)
    if name == "svd":
        assert found._fields == ("U", "S", "Vh")


def test_every_operation_of_tensor_that_returns_tensors_wraps_them(backend: Backend) -> None:
    plain = [name for name in tensor.__all__ if getattr(tensor, name) is getattr(ops, name, None)]
    returned = {
        str(operation.function.__annotations__["return"])
        for name in plain
        if (operation := getattr(getattr(tensor, name), "__operation__", None)) is not None
    }
    assert len(returned) > 5
    assert not [kind for kind in returned if "Tensor" in kind or kind == "Any" or kind.endswith("Result")]
    assert type(tensor.to_numpy([1.0])) is np.ndarray


def test_native_tensors_become_ember_tensors_of_their_engine(backend: Backend) -> None:
    x = ops.ones((2, 2))
    other = next(name for name in ember_ml.get_available_backends() if name != backend.name)
    if backend.name != "numpy":
        with ember_ml.use_backend(other):
            assert tensor.matmul(x, x).backend == backend.name
    bound = EmberTensor(x).__array_namespace__()
    with ember_ml.use_backend(other):
        elsewhere = EmberTensor(x).__array_namespace__() if backend.name != "numpy" else bound
        if backend.name != "numpy":
            assert elsewhere.add([1.0], 2).backend == elsewhere.zeros(2).backend == backend.name
            assert elsewhere.add(EmberTensor(x), 2).backend == backend.name
    assert elsewhere.add([1.0], 2).backend == backend.name
