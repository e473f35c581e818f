"""What: every operation."""

from ember_ml.ops.math import *  # noqa: F403
