"""NumPy's functions."""

from legacy.ops.numpy.math import *  # noqa: F403
