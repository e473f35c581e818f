"""Differentiation on NumPy: boxes of HIPS autograd, which record the operations on the arrays that they hold.

While a gradient is computed, arrays are in boxes. Dispatch treats boxes as the tensors of a separate, hidden engine. It
computes an operation by its rule in ``ember_ml.gradients``, or by its definition, whose operations receive boxes too.
The first gradient imports this package, because the rules need all of ``ops``.
"""

from ember_ml.backend.numpy import random as random
from ember_ml.backend.numpy.differentiation import core as core
