"""``python -m ember_ml.testing NAME``: print the report of an engine; the exit status is 1 if a check fails."""

from __future__ import annotations

import argparse

from ember_ml.testing import check_backend


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m ember_ml.testing", description="Check a backend.")
    parser.add_argument("backend", help="name of the backend, such as numpy")
    parser.add_argument("operations", nargs="*", help="operations to check (default: all)")
    given = parser.parse_args()
    try:
        report = check_backend(given.backend, given.operations or None)
    except ValueError as error:  # an unknown backend or operation
        parser.error(str(error))
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
