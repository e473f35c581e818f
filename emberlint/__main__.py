"""``python -m emberlint``: the same program as ``emberlint``."""

import sys

from emberlint.cli import main

if __name__ == "__main__":
    sys.exit(main())
