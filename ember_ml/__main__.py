"""``python -m ember_ml``: the command line."""

import sys

from ember_ml.cli import main

if __name__ == "__main__":
    sys.exit(main())
