"""Ember ML."""

from ember_ml import ops as ops
from ember_ml.backend import *  # noqa: F403
