"""The C extension of dispatch, which is left out where there is no compiler; all else is in pyproject.toml."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("ember_ml.dispatch._fast", ["ember_ml/dispatch/_fast.c"], optional=True)])
