"""The C extension of dispatch, which is left out where there is no compiler; all else is in pyproject.toml.

With ``EMBER_ML_PURE_WHEEL=1`` it is never built, and the wheel is one for every platform (``py3-none-any``).
"""

import os

from setuptools import Extension, setup

fast = Extension("ember_ml.dispatch._fast", ["ember_ml/dispatch/_fast.c"], optional=True)
setup(ext_modules=[] if os.environ.get("EMBER_ML_PURE_WHEEL") == "1" else [fast])
