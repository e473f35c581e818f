"""Ember ML: one set of array operations on NumPy, PyTorch, MLX and JAX.

>>> import ember_ml
>>> from ember_ml import ops
>>> with ember_ml.use_backend("numpy"):
...     ops.add([1.0, 2.0], 3.0).tolist()
[4.0, 5.0]
"""

from typing import TYPE_CHECKING

from ember_ml import older_names as _older_names
from ember_ml import ops as ops
from ember_ml.backend import auto_select_backend as auto_select_backend
from ember_ml.backend import clear_backend as clear_backend
from ember_ml.backend import get_available_backends as get_available_backends
from ember_ml.backend import get_backend as get_backend
from ember_ml.backend import get_backend_module as get_backend_module
from ember_ml.backend import set_backend as set_backend
from ember_ml.backend import use_backend as use_backend
from ember_ml.backend import using_backend as using_backend
from ember_ml.dispatch import op as op
from ember_ml.dispatch.checks import unchecked as unchecked
from ember_ml.dtypes import *
from ember_ml.dtypes import EmberDType as EmberDType
from ember_ml.errors import AxisError as AxisError
from ember_ml.errors import BackendNotFoundError as BackendNotFoundError
from ember_ml.errors import DeviceNotFoundError as DeviceNotFoundError
from ember_ml.errors import DistributedError as DistributedError
from ember_ml.errors import EmberError as EmberError
from ember_ml.errors import ForkError as ForkError
from ember_ml.errors import LinAlgError as LinAlgError
from ember_ml.errors import MissingOperationError as MissingOperationError
from ember_ml.errors import PrecisionWarning as PrecisionWarning
from ember_ml.errors import UnsupportedError as UnsupportedError
from ember_ml.transform import checkpoint as checkpoint
from ember_ml.transform import compile as compile
from ember_ml.transform import custom_gradient as custom_gradient
from ember_ml.transform import grad as grad
from ember_ml.transform import hessian as hessian
from ember_ml.transform import jacobian as jacobian
from ember_ml.transform import jvp as jvp
from ember_ml.transform import stop_gradient as stop_gradient
from ember_ml.transform import value_and_grad as value_and_grad
from ember_ml.transform import vjp as vjp
from ember_ml.transform import vmap as vmap
from emberlint import __version__ as __version__

if TYPE_CHECKING:
    from ember_ml import datasets as datasets
    from ember_ml import distributed as distributed
    from ember_ml import export as export
    from ember_ml import models as models
    from ember_ml import nn as nn
    from ember_ml import optim as optim
    from ember_ml import sklearn as sklearn
    from ember_ml import training as training

_older_names.install("ember_ml.ops", "ember_ml.ops.linearalg")

_PARTS = ("datasets", "distributed", "export", "models", "nn", "optim", "sklearn", "training")


def __getattr__(name: str) -> object:
    """The larger parts, which are imported when they are first used."""
    if name in _PARTS:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    try:
        return _older_names.attribute(__name__, name)
    except AttributeError:
        from ember_ml.spellings import unknown_name

        raise unknown_name(__name__, name, __dir__(), f"ops.{name}" if name in ops.__all__ else None) from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_PARTS})
