"""The older names: every row of ``ember_ml/older_names.py`` works as earlier versions wrote it, on every engine."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import cli, nn, ops
from ember_ml.backend import Backend
from ember_ml.nn import tensor
from ember_ml.nn.tensor import EmberTensor
from ember_ml.older_names import CALLS, COMMANDS, GONE, MODULES, NAMES, Older
from ember_ml.tools.analyze_backend_operations import main as analyze
from ember_ml.types import Tensor
from emberlint import cli as linter

ROOT = Path(__file__).parents[1]

# What earlier versions had under names that are still the same.
SAME = {
    "ember_ml": "get_backend set_backend get_backend_module auto_select_backend get_device",
    "ember_ml.backend": "get_backend set_backend get_backend_module auto_select_backend get_device",
    "ember_ml.ops": (
        "add subtract multiply divide matmul dot mean sum max min equal not_equal less less_equal greater "
        "greater_equal to_device get_device get_available_devices squeeze full arange tile sin random_poisson "
        "random_normal random_uniform zeros ones reshape split solve get_dtype to_numpy_dtype to_numpy "
        "convert_to_tensor"
    ),
    "ember_ml.ops.stats": "mean var median std percentile max min sum cumsum argmax sort argsort gaussian",
    "ember_ml.ops.linearalg": "solve inv svd eig eigvals det norm qr cholesky lstsq diag diagonal",
    "ember_ml.nn.modules.activations": "ReLU Sigmoid Tanh Softmax Softplus relu sigmoid tanh softmax softplus",
    "ember_ml.nn.features": "pca standardize_features normalize_features one_hot scatter PCA Normalizer",
    "ember_ml.nn.features.common": "pca standardize_features normalize_features PCA Standardizer Normalizer",
    "ember_ml.nn.features.common.tensor_features": "one_hot scatter",
    "ember_ml.nn.tensor.interfaces": "TensorInterface",
    "ember_ml.nn.tensor.interfaces.dtype": "DTypeInterface",
    "ember_ml.nn.tensor.common": (
        "EmberTensor zeros ones eye arange linspace zeros_like ones_like full full_like reshape transpose concatenate "
        "stack split"
    ),
    "ember_ml.nn.tensor.common.dtypes": "EmberDType DType dtype get_dtype to_dtype_str from_dtype_str",
    "ember_ml.nn.tensor": "convert_to_tensor EmberTensor EmberDType DType dtype TensorInterface DTypeInterface",
    "ember_ml.nn.modules.activations.relu_module": "ReLU",
    "ember_ml.nn.modules.activations.sigmoid_module": "Sigmoid",
    "ember_ml.nn.modules.activations.tanh_module": "Tanh",
    "ember_ml.nn.modules.activations.softmax_module": "Softmax",
    "ember_ml.nn.modules.activations.softplus_module": "Softplus",
    "ember_ml.types": "Numeric Shape ShapeLike TensorLike TensorTypes Parameter",
}  # fmt: skip


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


@pytest.mark.parametrize(("module", "name"), [(m, name) for m, names in SAME.items() for name in names.split()])
def test_names_that_are_the_same(module: str, name: str, backend: Backend) -> None:
    assert getattr(import_module(module), name) is not None


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


@rows(GONE)
def test_what_is_gone(row: Older) -> None:
    module, _, name = row.older.rpartition(".")
    if module.startswith("ember_ml"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
            getattr(import_module(module), name)
    else:
        with pytest.raises((ImportError, NameError, SyntaxError, TypeError)):
            exec(f"import {row.older}" if row.older.isidentifier() else row.older, {"x": 1.0})


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
    paths = [row.older for row in (*MODULES, *NAMES, *CALLS, *COMMANDS, *GONE)]
    assert len(set(paths)) == len(paths)
    assert all(row.remark for row in (*MODULES, *NAMES, *CALLS, *COMMANDS, *GONE))


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
