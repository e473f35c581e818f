"""Activations, as functions."""

from ember_ml.ops.activations import *  # noqa: F403 - what there is, is said there
