"""The NumPy engine, the reference for all others."""

from ember_ml.backend.numpy import core as core
