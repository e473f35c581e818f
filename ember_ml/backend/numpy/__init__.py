"""The NumPy engine: the reference that the others are held to."""

from ember_ml.backend.numpy import core as core
