"""The conformance tests that every engine must pass, included or added by another distribution.

``check_backend("abacus")`` checks an installed engine and returns a report; it does not need a test runner.
``pytest --pyargs ember_ml.testing --backend abacus`` runs the same checks as tests, and ``python -m ember_ml.testing
abacus`` prints the report.

``contract.py`` and ``gradients.py`` contain the checks: functions of an operation and an engine, declared with
``pairs`` (``pairing.py``). ``samples/`` contains the calls that they make, ``comparison.py`` compares results,
``inputs.py`` generates calls for ``ember-ml ops measure``, and ``plugin.py`` is the pytest plugin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.testing.report import Report

__all__ = ["check_backend"]


def check_backend(name: str, operations: Iterable[str] | None = None) -> Report:
    """Report of the checks of an installed engine: values, dtypes, errors, inputs, gradients, random bits.

    An operation that the engine does not support is reported as missing, not as failed. The checks run one after the
    other in this process and restore its settings.

    Args:
        operations: names of the operations to check, such as ``"add"``; all by default.

    >>> report = check_backend("numpy", ["lerp"])
    >>> report.passed, report.failures, report.missing
    (['math.lerp'], [], {})
    """
    # Imported here, because the checks import NumPy and importing this package must not.
    from ember_ml.testing.report import run_checks

    return run_checks(name, operations)
