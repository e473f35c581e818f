"""Fourier transform extension of the array API standard, and the other operations of ``ops.fft``."""

import sys as _sys

from ember_ml.nn.tensor.functions import functions as _functions
from ember_ml.ops.fft import *  # noqa: F403 - all of them

# ``ops.fft`` is the function of that name, so take the module from sys.modules.
vars().update(_functions(vars(_sys.modules["ember_ml.ops.fft"])))

__all__ = [name for name, value in vars().items() if hasattr(value, "__operation__")]


def __dir__() -> list[str]:
    return sorted(__all__)
