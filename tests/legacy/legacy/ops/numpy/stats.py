"""Statistics with NumPy."""

import numpy as np

from legacy.ops import divide


def mean(x, axis=0):
    """The mean along an axis."""
    return np.mean(x, axis=axis)


def variance(x, axis=0):
    """The mean of squared distances from the mean."""
    return np.var(x, axis=axis)


def standardize(x, axis=0):
    """``x`` shifted and scaled to mean zero and variance one."""
    return divide(x - np.expand_dims(mean(x, axis), axis), np.sqrt(np.expand_dims(variance(x, axis), axis)))
