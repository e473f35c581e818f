"""The conformance kit: what every engine is held to, for the library's own engines and for those of others.

``check_backend("abacus")`` runs the contract against an installed engine and returns a report; it needs no test runner.
``pytest --pyargs ember_ml.testing --backend abacus`` runs the same checks as tests, and ``python -m ember_ml.testing
abacus`` prints the report.

``contract.py`` and ``gradients.py`` hold the checks: functions of an operation and an engine, declared with ``pairs``
(``pairing.py``). ``samples/`` holds the calls that they make, ``comparison.py`` says when two results are the same,
``inputs.py`` varies calls for ``ember-ml ops measure``, and ``plugin.py`` is for pytest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.testing.report import Report

__all__ = ["check_backend"]


def check_backend(name: str, operations: Iterable[str] | None = None) -> Report:
    """What the engine of that name passes of the contract: values, dtypes, errors, inputs, gradients, random bits.

    An operation that the engine lacks is reported as missing and fails nothing. The checks run in this process, one
    after the other, and leave its settings as they were.

    Args:
        operations: names of the operations to check, such as ``"add"``; all if not given.

    >>> report = check_backend("numpy", ["lerp"])
    >>> report.passed, report.failures, report.missing
    (['math.lerp'], [], {})
    """
    # The checks need NumPy, which an import of this package does not load.
    from ember_ml.testing.report import checked

    return checked(name, operations)
