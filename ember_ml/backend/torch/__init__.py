"""The torch engine."""

from ember_ml.backend.torch import core as core
