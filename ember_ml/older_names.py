"""Names, calls and commands of earlier versions: what each is now.

``MODULES`` and ``NAMES`` make the older names importable: a module whose older names are listed calls ``register``, and
``attribute`` or ``install``. ``SAME`` lists names that are what they were, ``CALLS``, ``COMMANDS`` and ``OPTIONS`` what
is written in another way now and still works, ``GONE`` what was removed. The tests try every row, and the page
``docs/older_names.md`` shows them.
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
    Older("ember_ml.nn.tensor.common", "ember_ml.nn.tensor", "the tensor and its functions are in one module"),
    Older("ember_ml.nn.tensor.common.dtypes", "ember_ml.nn.tensor", "dtypes are also in `ember_ml` itself"),
    Older("ember_ml.nn.tensor.interfaces.dtype", "ember_ml.nn.tensor.interfaces", "both protocols are in one module"),
    Older("ember_ml.nn.features.common", "ember_ml.nn.features", "one implementation serves every engine"),
    Older("ember_ml.nn.features.common.tensor_features", "ember_ml.nn.features", "also in `ember_ml.ops`"),
    *(
        Older(
            f"{_ACTIVATIONS}.{name}_module", _ACTIVATIONS, "all activations, functions and classes, are in one module"
        )
        for name in ("relu", "sigmoid", "tanh", "softmax", "softplus")
    ),
)

# What has the name that it had, by module.
SAME: dict[str, str] = {
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
    "ember_ml.ops.math": "sin",
    "ember_ml.nn.features.PCA": "fit",
    "ember_ml.types": "Shape TensorLike",
}  # fmt: skip

NAMES: tuple[Older, ...] = (
    Older("ember_ml.ops.set_backend", "ember_ml.set_backend", "operations follow it at once"),
    Older("ember_ml.ops.get_backend", "ember_ml.get_backend", "the name of the active backend"),
    Older("ember_ml.ops.get_backend_module", "ember_ml.get_backend_module", "the module of the active backend"),
    Older("ember_ml.ops.auto_select_backend", "ember_ml.auto_select_backend", "the backend that would be detected"),
    Older("ember_ml.get_device", "ember_ml.ops.get_device", "devices are a category of operations"),
    Older("ember_ml.backend.get_device", "ember_ml.ops.get_device", "devices are a category of operations"),
    Older("ember_ml.ops.linearalg.diag", "ember_ml.ops.diag", "it builds or extracts a diagonal; it solves nothing"),
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
    Older("ops.set_backend('numpy')", "set_backend('numpy')", "a backend applies to the whole library"),
    Older("get_backend_module().add(data, 2.0)", "ops.add(data, 2.0)", "`ops` follows the active backend"),
    Older("ops.get_device()", "ops.get_default_device()", "where tensors are created"),
    Older("ops.get_device(tensor=x)", "ops.get_device(x)", "where a tensor is"),
    Older("ops.is_available('metal')", "get_backend() == 'mlx' and ops.is_available('gpu')", "`metal` is MLX's GPU"),
    Older("ops.matrix_inv([[2.0]])", "ops.linearalg.inv([[2.0]])", "the name in the array API standard"),
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
        f"{_ANALYZE} --migrate --backend torch", "ember-ml ops migrate PACKAGE --backend torch", "changes the package"
    ),
    Older(
        "python utils/emberlint.py PACKAGE --frontend-backend-only --verbose",
        "emberlint PACKAGE --frontend-backend-only --verbose",
        "or `python -m emberlint`",
    ),
)

# An option of a script, and the command that has it now.
OPTIONS: tuple[Older, ...] = (
    Older("utils/analyze_backend_operations.py --verbose", "ember-ml ops migrate --verbose", "shows a diff"),
    Older("utils/analyze_backend_operations.py --migrate", "ember-ml ops migrate", "now a command"),
    Older("utils/analyze_backend_operations.py --backend", "ember-ml ops migrate --backend", "`plan` has it too"),
    Older("utils/analyze_backend_operations.py --dry-run", "ember-ml ops migrate --dry-run", "`plan` is the same"),
    Older("utils/emberlint.py --frontend-backend-only", "emberlint --frontend-backend-only", "`--select EMB1`"),
    Older("utils/emberlint.py --verbose", "emberlint --verbose", "why each value is a tensor"),
)

_CATEGORIES = {name: name for name in ("math", "random", "device", "comparison")} | {
    "dtype": "dtypes",
    "solver": "linearalg",
}

# Names that were removed; what has no successor has an empty second column. Braces list the variants of a name:
# ``{numpy,torch}_backend`` is ``numpy_backend`` and ``torch_backend``; where the second column has braces too, their
# variants belong together.
GONE: tuple[Older, ...] = (
    Older("emberharmony", "ember_ml", "the former name of the package, EmberHarmony: change the imports"),
    Older("ember_ml.ops._MASTER_OPS_LIST", "ember_ml.ops.__all__", "operations are no longer listed by hand"),
    Older("ember_ml.ops.stats._STATS_OPS_LIST", "ember-ml ops list --category stats", "each category is one file"),
    Older(
        "ember_ml.ops.linearalg._LINEARALG_OPS_LIST", "ember-ml ops list --category linearalg", "`--json` for programs"
    ),
    Older(
        "ember_ml.nn.modules.activations._ACTIVATION_OPS_LIST",
        "ember-ml ops list --category activations",
        "the classes are in `ember_ml.nn.modules.__all__`",
    ),
    Older("ember_ml.nn.features._FEATURES_OPS_LIST", "ember_ml.nn.features.__all__", "functions and classes"),
    Older("ember_ml.ops._update_ops_aliases", "ember_ml.set_backend", "operations follow the active backend"),
    Older("ember_ml.ops.stats._update_stats_aliases", "ember_ml.set_backend", "see `_update_ops_aliases`"),
    Older(
        "ember_ml.nn.modules.activations._update_activation_aliases",
        "ember_ml.set_backend",
        "see `_update_ops_aliases`",
    ),
    Older("ember_ml.nn.features._update_features_aliases", "ember_ml.set_backend", "see `_update_ops_aliases`"),
    Older("ember_ml.ops._aliased_backend", "ember_ml.get_backend()", "one place holds the active backend"),
    Older("ember_ml.ops.stats._aliased_backend_stats", "ember_ml.get_backend()", "see `_aliased_backend`"),
    Older(
        "ember_ml.nn.modules.activations._aliased_backend_activations",
        "ember_ml.get_backend()",
        "see `_aliased_backend`",
    ),
    Older("ember_ml.ops.original_set_backend", "ember_ml.set_backend", "there is only one such function now"),
    Older("ember_ml.ops.stats.get_stats_module", "ember_ml.get_backend_module()", "one module has every category"),
    Older(
        "ember_ml.nn.modules.activations.get_activations_module",
        "ember_ml.get_backend_module()",
        "see `get_stats_module`",
    ),
    Older("ember_ml.nn.features.features_ops_module", "ember_ml.nn.features", "one implementation for every engine"),
    Older("ember_ml.nn.tensor.common._convert_to_backend_tensor", "ember_ml.ops.asarray", "returns a native tensor"),
    Older("ember_ml.nn.tensor.dtype_instance", "ember_ml.nn.tensor.dtype", "the older name was that of an import"),
    Older("ember_ml.types.{NumpyArray,TensorType}", "ember_ml.types.Tensor", "annotations do not name an engine"),
    Older("ember_ml.backend._get_backend_from_file", "ember-ml backend show", "says which place chose the backend"),
    Older("ember_ml.backend.EMBER_BACKEND_FILE", "ember_ml.backend.choice_file()", "the file is the same"),
    Older(
        "ember_ml.backend.{_check_torch,_check_torch_cuda,_check_torch_mps}",
        "ember_ml.auto_select_backend()",
        "`ops.is_available('cuda')` for one device",
    ),
    Older("ember_ml.backend._BACKENDS", "ember_ml.get_available_backends()", "the engines that are installed"),
    Older("ember_ml.backend._CURRENT_BACKEND_MODULE", "ember_ml.get_backend_module()", "loaded on first use"),
    Older("get_backend().sin(x)", "ops.sin(x)", "`get_backend()` returns a name; the same for every operation"),
    Older("{Numpy,Torch,MLX}Tensor().convert_to_tensor(x)", "ops.convert_to_tensor(x)", "for the active backend"),
    Older(
        "{Numpy,Torch,MLX}{Tensor,Math,Random,Device,Comparison,DType,Solver}Ops",
        "get_backend_module()",
        "backends are modules of functions, not classes",
    ),
    Older(
        "ember_ml.backend.{numpy,torch,mlx}_backend", "ember_ml.backend.{numpy,torch,mlx}", "a folder for each engine"
    ),
    Older(
        "ember_ml.backend.{numpy,torch,mlx}.tensor_ops",
        "ember_ml.backend.{numpy,torch,mlx}.creation",
        "and `manipulation`, for `reshape` and similar",
    ),
    *(
        Older(
            f"ember_ml.backend.{{numpy,torch,mlx}}.{older}_ops",
            f"ember_ml.backend.{{numpy,torch,mlx}}.{now}",
            f"as `ember_ml.ops.{now}`",
        )
        for older, now in _CATEGORIES.items()
    ),
    *(
        Older(f"ember_ml.backend.{older}", "ember_ml.ops.convert_to_tensor", "engines convert in `core.py`")
        for older in ("numpy.tensor.tensor.NumpyTensor", "torch.tensor.TorchTensor", "mlx.tensor.MLXTensor")
    ),
    Older("ember_ml.ops.tensor_ops", "ember_ml.ops.creation", "and `manipulation`, for `reshape` and similar"),
    *(
        Older(f"ember_ml.ops.{older}_ops", f"ember_ml.ops.{now}", "its functions are also in `ember_ml.ops`")
        for older, now in _CATEGORIES.items()
    ),
    Older("ember_ml.ops.{numpy,torch,mlx}", "ember_ml.backend.{numpy,torch,mlx}", "`ops/` has no engine code"),
    Older(
        "ember_ml.ops.{numpy,torch,mlx}.math_ops",
        "ember_ml.backend.{numpy,torch,mlx}.math",
        "`ember-ml ops migrate` moves such code in your package",
    ),
    Older("utils/analyze_backend_operations.py", "ember-ml ops", "also a module of `ember_ml.tools`"),
    Older("utils/emberlint.py", "emberlint", "now a package with its own tests"),
    Older(".clinerules-code", "[tool.emberlint]", "in `pyproject.toml`; `emberlint rules` lists the rules"),
    Older("Frontend-Only Rule", "emberlint explain EMB102", "and the other EMB1 rules"),
    Older("Backend-Only Rule", "emberlint explain EMB111", "engine code belongs in `backend/`"),
    Older("rm -rf emberharmony/ops/{torch,mlx,numpy}", "", "`ember-ml ops migrate` removes a folder that it emptied"),
    Older("python -m pytest tests/", "make test", "also lints and checks types; `make quick` is shorter"),
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
