"""Names, calls and commands of earlier versions: what each is now.

``MODULES`` and ``NAMES`` make the older names importable: a module whose older names are listed calls ``register``, and
``attribute`` or ``install``. ``CALLS`` and ``COMMANDS`` list what is written in another way now and still works,
``GONE`` what was removed. The tests try every row, and the page ``docs/older_names.md`` shows them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NamedTuple


class Older(NamedTuple):
    """What earlier versions had, what it is now, and a remark."""

    older: str
    now: str
    remark: str


_ACTIVATIONS = "ember_ml.nn.modules.activations"

MODULES: tuple[Older, ...] = (
    Older("ember_ml.nn.tensor.common", "ember_ml.nn.tensor", "one module has the tensor and its functions"),
    Older("ember_ml.nn.tensor.common.dtypes", "ember_ml.nn.tensor", "dtypes are also names of `ember_ml` itself"),
    Older("ember_ml.nn.tensor.interfaces.dtype", "ember_ml.nn.tensor.interfaces", "one module has both protocols"),
    Older("ember_ml.nn.features.common", "ember_ml.nn.features", "one implementation serves every engine"),
    Older("ember_ml.nn.features.common.tensor_features", "ember_ml.nn.features", "also operations of `ember_ml.ops`"),
    *(
        Older(f"{_ACTIVATIONS}.{name}_module", _ACTIVATIONS, "one module has all activations, as functions and classes")
        for name in ("relu", "sigmoid", "tanh", "softmax", "softplus")
    ),
)

NAMES: tuple[Older, ...] = (
    Older("ember_ml.ops.set_backend", "ember_ml.set_backend", "nothing has to be updated after it"),
    Older("ember_ml.ops.get_backend", "ember_ml.get_backend", "the name of the active backend"),
    Older("ember_ml.ops.get_backend_module", "ember_ml.get_backend_module", "the module of the active backend"),
    Older("ember_ml.ops.auto_select_backend", "ember_ml.auto_select_backend", "what detection would choose"),
    Older("ember_ml.get_device", "ember_ml.ops.get_device", "devices are a category of operations"),
    Older("ember_ml.backend.get_device", "ember_ml.ops.get_device", "devices are a category of operations"),
    Older("ember_ml.ops.linearalg.diag", "ember_ml.ops.diag", "it builds or takes a diagonal; nothing is solved"),
    Older("ember_ml.nn.tensor.linalg.diag", "ember_ml.nn.tensor.diag", "the same, for EmberTensors"),
    Older("ember_ml.nn.tensor.DType", "ember_ml.dtypes.EmberDType", "the class of all dtypes"),
    Older("ember_ml.nn.tensor.TensorInterface", "ember_ml.nn.tensor.interfaces.TensorInterface", "for annotations"),
    Older("ember_ml.nn.tensor.DTypeInterface", "ember_ml.nn.tensor.interfaces.DTypeInterface", "for annotations"),
    Older("ember_ml.nn.features.Standardizer", "ember_ml.nn.features.StandardScaler", "scikit-learn's name"),
    Older("ember_ml.types.Numeric", "ember_ml.types.Number", "bool and complex are numbers too"),
    Older("ember_ml.types.ShapeLike", "ember_ml.types.Shape", "an integer or a sequence of integers"),
    Older("ember_ml.types.TensorTypes", "ember_ml.types.Tensor", "what the tensors of all engines have in common"),
    Older("ember_ml.types.Parameter", "ember_ml.nn.modules.Parameter", "a trainable tensor of a module"),
)

# Expressions over ``ember_ml``, ``ops``, ``nn``, the functions of ``ember_ml`` that choose a backend, and tensors
# ``x`` and ``data``. Both columns have the same value on every engine.
CALLS: tuple[Older, ...] = (
    Older("set_backend(backend='numpy')", "set_backend('numpy')", "the parameter is called `name`"),
    Older("ops.set_backend('numpy')", "set_backend('numpy')", "backends are chosen for the whole library"),
    Older("get_backend_module().add(data, 2.0)", "ops.add(data, 2.0)", "`ops` follows the active backend"),
    Older("ops.get_device()", "ops.get_default_device()", "where tensors are created"),
    Older("ops.get_device(tensor=x)", "ops.get_device(x)", "where a tensor is"),
    Older("ops.is_available('metal')", "get_backend() == 'mlx' and ops.is_available('gpu')", "a name of MLX's GPU"),
    Older("ops.linearalg.diag(x)", "ops.diag(x)", "or `nn.tensor.linearalg.diag`"),
    Older(
        "ops.convert_to_tensor(data, 'float64', 'cpu', False)",
        "ops.asarray(data, dtype='float64', device='cpu')",
        "`asarray` is the name in the array API standard",
    ),
    Older(
        "ops.convert_to_tensor(data=data, dtype='int32', device='cpu', requires_grad=False)",
        "ops.asarray(data, dtype='int32', device='cpu')",
        "`requires_grad=True` works on torch; `ember_ml.grad` works on every engine",
    ),
    Older(
        "nn.tensor.convert_to_tensor(data, 'float64', 'cpu', False)",
        "nn.tensor.EmberTensor(data, dtype='float64', device='cpu')",
        "functions of `nn.tensor` return EmberTensors",
    ),
    Older(
        "nn.tensor.EmberTensor(data, 'int32', 'cpu', False)",
        "nn.tensor.EmberTensor(data, dtype='int32', device='cpu')",
        "`requires_grad` as in `convert_to_tensor`",
    ),
    Older("nn.tensor.dtype.float32", "ember_ml.float32", "`nn.tensor.dtype(x)` is the dtype of `x`"),
    Older("nn.tensor.add(data, 2)", "nn.tensor.EmberTensor(data) + 2", "functions of `nn.tensor` return EmberTensors"),
    Older(
        "nn.features.Standardizer().fit_transform([x, x + 2])",
        "nn.features.StandardScaler().fit_transform([x, x + 2])",
        "`standardize_features()` returns one",
    ),
    Older(
        "nn.features.Normalizer().fit_transform([x])",
        "nn.features.normalize_features().fit_transform([x])",
        "rows of norm 1",
    ),
)

_ANALYZE = "python utils/analyze_backend_operations.py"

COMMANDS: tuple[Older, ...] = (
    Older(f"{_ANALYZE} --verbose", "ember-ml ops matrix", "`ember-ml ops plan` lists what would move"),
    Older(f"{_ANALYZE} --migrate --dry-run --verbose", "ember-ml ops plan PACKAGE", "`--backend torch` for one engine"),
    Older(
        f"{_ANALYZE} --migrate --backend torch", "ember-ml ops migrate PACKAGE --backend torch", "writes the package"
    ),
    Older(
        "python utils/emberlint.py PACKAGE --frontend-backend-only --verbose",
        "emberlint PACKAGE --frontend-backend-only --verbose",
        "or `python -m emberlint`",
    ),
)

GONE: tuple[Older, ...] = (
    Older("emberharmony", "ember_ml", "the former name of the package: change the imports"),
    Older("ember_ml.ops._MASTER_OPS_LIST", "ember_ml.ops.__all__", "each operation is listed by its definition alone"),
    Older(
        "ember_ml.ops._update_ops_aliases", "ember_ml.set_backend", "operations follow the backend; nothing is updated"
    ),
    Older("NumpyTensor().convert_to_tensor(x)", "ops.convert_to_tensor(x)", "so with `TorchTensor` and `MLXTensor`"),
    Older("MLXMathOps, TorchTensorOps, ...", "get_backend_module()", "backends are modules of functions, not classes"),
)


# The module that takes the place of an older one, which may be the parent of another.
_PLACES = {older: now for older, now, _ in MODULES}


def register(parent: str) -> None:
    """Make the older modules below the module ``parent`` importable; ``parent`` calls it when it is imported."""
    for older, now, _ in MODULES:
        if older.startswith(f"{parent}."):
            # Python takes a module that is listed here without looking for a file.
            sys.modules[older] = sys.modules.get(now) or import_module(now)


def install(*modules: str) -> None:
    """Set the older names of modules whose attributes are read often, which a ``__getattr__`` would slow down."""
    for older, now, _ in (*NAMES, *MODULES):
        parent, _, name = older.rpartition(".")
        module = _PLACES.get(parent, parent)
        if module in modules:
            place, _, attribute = now.rpartition(".")
            setattr(sys.modules[module], name, sys.modules.get(now) or getattr(import_module(place), attribute))


def attribute(module: str, name: str) -> Any:
    """Object that ``module.name`` was in earlier versions; an ``AttributeError`` if there was none."""
    path = f"{module}.{name}"
    for older, now, _ in NAMES:
        if older == path:
            place, _, attribute = now.rpartition(".")
            return getattr(import_module(place), attribute)
    for older, now in _PLACES.items():
        parent, _, child = older.rpartition(".")
        if child == name and _PLACES.get(parent, parent) == module:
            return import_module(now)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
