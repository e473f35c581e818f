"""The JAX engine."""

from typing import TYPE_CHECKING, Any

from ember_ml.backend.jax import coordination as coordination  # isort: skip - before anything computes
from ember_ml.backend.jax import core as core

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        from ember_ml.dispatch import computed_by  # dispatch imports the engines

        return computed_by(__name__, name)
