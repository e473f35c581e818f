"""``python -m ember_ml.testing NAME``: print what an engine passes; the exit status is 1 if anything fails."""

from __future__ import annotations

import argparse

from ember_ml.testing import check_backend


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m ember_ml.testing", description="Hold a backend to the contract.")
    parser.add_argument("backend", help="its name, such as numpy")
    parser.add_argument("operations", nargs="*", help="operations to check (default: all)")
    given = parser.parse_args()
    try:
        report = check_backend(given.backend, given.operations or None)
    except ValueError as error:  # a name that is no backend's, or no operation's
        parser.error(str(error))
    print(report)
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
