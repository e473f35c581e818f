"""The checks of ``gradients.py``, for pytest."""

from ember_ml.testing.gradients import *
