"""Statistics with torch."""

import torch

# A circle: that package imports this module. It works because the name is looked up when a function runs.
from legacy import ops


def mean(x, axis=0):
    return torch.mean(x, axis)


def variance(x, axis=0):
    return torch.var(x, axis, correction=0)


def standardize(x, axis=0):
    centred = x - ops.mean(x, axis).unsqueeze(axis)
    return ops.divide(centred, variance(x, axis).unsqueeze(axis).sqrt())
