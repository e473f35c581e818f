"""Linear algebra extension of the array API standard, and the other operations of ``ops.linearalg``."""

from ember_ml.nn.tensor.creation import creators as _creators
from ember_ml.ops import linearalg as _linearalg
from ember_ml.ops.linearalg import *  # noqa: F403 - all of them
from ember_ml.ops.manipulation import matrix_transpose as matrix_transpose

vars().update(_creators(vars(_linearalg)))

__all__ = [name for name, value in vars().items() if hasattr(value, "__operation__")]


def __dir__() -> list[str]:
    return sorted(__all__)
