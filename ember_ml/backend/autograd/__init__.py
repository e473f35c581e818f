"""The engine behind NumPy's gradients: HIPS autograd's boxes, which record what is done to the arrays in them.

Nobody chooses this backend. A tensor of NumPy becomes a box while a gradient is computed, and the operations on boxes
are computed here: by the rules in ``ember_ml.gradients``, or by their definitions, whose own operations see boxes too.
"""

from ember_ml.backend.autograd import core as core
from ember_ml.backend.numpy import random as random
