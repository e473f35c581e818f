"""Neural networks, built on the operations of ``ops``.

All modules are available here: ``nn.Linear`` is ``nn.modules.Linear``. Subpackages are imported on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.nn.modules import *
    from ember_ml.nn.precision import LossScale as LossScale
    from ember_ml.nn.precision import Precision as Precision
    from ember_ml.nn.torch_modules import from_torch as from_torch
    from ember_ml.nn.torch_modules import to_torch as to_torch

# Names of other modules of this package, each with its module.
_NAMES = {
    "LossScale": "precision",
    "Precision": "precision",
    "from_torch": "torch_modules",
    "to_torch": "torch_modules",
}
_PARTS = ("features", "initializers", "modules", "tensor", "wirings")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return _import_module(f"{__name__}.{name}")
    if name in _NAMES:
        return getattr(_import_module(f"{__name__}.{_NAMES[name]}"), name)
    if not name.startswith("_"):
        modules = _import_module(f"{__name__}.modules")
        if name in modules.__all__:
            return getattr(modules, name)
    from ember_ml.spellings import unknown_name

    raise unknown_name(__name__, name, () if name.startswith("_") else __dir__())


def __dir__() -> list[str]:
    return sorted([*_PARTS, *_NAMES, *_import_module(f"{__name__}.modules").__all__])
