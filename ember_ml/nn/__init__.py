"""Neural networks, built on the operations of ``ops``.

All modules are available here: ``nn.Linear`` is ``nn.modules.Linear``. Subpackages are imported on first use.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.nn.modules import *
    from ember_ml.nn.precision import LossScale as LossScale
    from ember_ml.nn.precision import Precision as Precision

_PRECISION = ("LossScale", "Precision")
_PARTS = ("features", "initializers", "modules", "tensor", "wirings")


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return _import_module(f"{__name__}.{name}")
    if name in _PRECISION:
        return getattr(_import_module(f"{__name__}.precision"), name)
    if not name.startswith("_"):
        modules = _import_module(f"{__name__}.modules")
        if name in modules.__all__:
            return getattr(modules, name)
    from ember_ml.spellings import unknown_name

    raise unknown_name(__name__, name, () if name.startswith("_") else __dir__())


def __dir__() -> list[str]:
    return sorted([*_PARTS, *_PRECISION, *_import_module(f"{__name__}.modules").__all__])
