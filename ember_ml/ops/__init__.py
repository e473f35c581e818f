"""All operations: one documented signature each, one module per category."""

from typing import TYPE_CHECKING

from ember_ml.dtypes import *
from ember_ml.dtypes import EmberDType
from ember_ml.ops.activations import *
from ember_ml.ops.aliases import *
from ember_ml.ops.aliases import ELSEWHERE, Elsewhere
from ember_ml.ops.bitwise import *
from ember_ml.ops.comparison import *
from ember_ml.ops.control import *
from ember_ml.ops.creation import *
from ember_ml.ops.device import *
from ember_ml.ops.dtypes import *
from ember_ml.ops.fft import *
from ember_ml.ops.indexing import *
from ember_ml.ops.io import *
from ember_ml.ops.linearalg import *  # type: ignore[assignment] # its cond gives way below
from ember_ml.ops.losses import *
from ember_ml.ops.manipulation import *
from ember_ml.ops.math import *
from ember_ml.ops.neural import *
from ember_ml.ops.random import *
from ember_ml.ops.stats import *
from ember_ml.ops.vector import *

# Operations whose names others have taken: the ``scatter`` of indexing takes precedence over that of ranks.
from ember_ml.ops.collectives import *  # type: ignore[assignment] # isort: skip
from ember_ml.ops.indexing import scatter as scatter  # isort: skip

# Categories that are public namespaces, and the ``cond`` of control flow, which takes precedence over that of linalg.
from ember_ml.ops import bitwise as bitwise  # isort: skip
from ember_ml.ops import collectives as collectives  # isort: skip
from ember_ml.ops.control import cond as cond  # isort: skip
from ember_ml.ops import linearalg as linalg  # isort: skip
from ember_ml.ops import linearalg as linearalg  # isort: skip
from ember_ml.ops import random as random  # isort: skip
from ember_ml.ops import stats as stats  # isort: skip

# Transforms take functions rather than tensors, so they are not operations.
from ember_ml.transform import checkpoint as checkpoint  # isort: skip
from ember_ml.transform import compile as compile  # isort: skip
from ember_ml.transform import custom_gradient as custom_gradient  # isort: skip
from ember_ml.transform import grad as grad  # isort: skip
from ember_ml.transform import hessian as hessian  # isort: skip
from ember_ml.transform import jacobian as jacobian  # isort: skip
from ember_ml.transform import jvp as jvp  # isort: skip
from ember_ml.transform import value_and_grad as value_and_grad  # isort: skip
from ember_ml.transform import vjp as vjp  # isort: skip
from ember_ml.transform import vmap as vmap  # isort: skip

__all__ = [name for name, value in vars().items() if hasattr(value, "__operation__") or isinstance(value, EmberDType)]
__all__ += ["bitwise", "collectives", "e", "inf", "linalg", "linearalg", "nan", "newaxis", "pi", "random", "stats"]
# Any keyword is a name of a tensor, which parameters of operations cannot be.
__all__ += ["savez"]


def __dir__() -> list[str]:
    return sorted(__all__)


# Names that other libraries have, which say what to write. They are hidden from type checkers and not in ``__all__``.
globals().update({name: Elsewhere(name) for name in ELSEWHERE if name not in globals()})
