"""NumPy's differentiation: boxes of HIPS autograd, which record what is done to the arrays in them.

An array becomes a box while a gradient is computed. To dispatch, boxes are the tensors of a further engine, which
nobody chooses. It computes operations by the rules in ``ember_ml.gradients``, or by their definitions, whose own
operations see boxes too. The first gradient imports this package, after all of ``ops``, which the rules are written in.
"""

from ember_ml.backend.numpy import random as random
from ember_ml.backend.numpy.differentiation import core as core
