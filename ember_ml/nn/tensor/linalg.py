"""Linear algebra extension of the array API standard, and the other operations of ``ops.linearalg``."""

from ember_ml.nn.tensor.functions import functions as _functions
from ember_ml.ops.linearalg import *  # noqa: F403 - all of them
from ember_ml.ops.manipulation import matrix_transpose as matrix_transpose

vars().update(_functions(vars()))

__all__ = [name for name, value in vars().items() if hasattr(value, "__operation__")]


def __dir__() -> list[str]:
    return sorted(__all__)
