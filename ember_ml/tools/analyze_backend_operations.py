"""``python -m ember_ml.tools.analyze_backend_operations``: the matrix of operations, and migration.

The former name of ``ember-ml ops matrix`` and, with ``--migrate``, of ``ember-ml ops migrate``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import ember_ml
from ember_ml import cli
from ember_ml.tools import console


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status."""
    parser = console.Parser(prog="python -m ember_ml.tools.analyze_backend_operations")
    parser.description = "Who provides each operation on each engine; with --migrate, engine code moved to its place."
    parser.add_argument(
        "--migrate", action="store_true", help="move engine code of a package's frontend to its backend"
    )
    parser.add_argument("--package", metavar="FOLDER", type=Path, help="the package to migrate (default: ember_ml)")
    parser.add_argument("--backend", metavar="B", help="only this engine")
    parser.add_argument("--operation", metavar="OP", help="with --migrate: only this operation")
    parser.add_argument("--dry-run", action="store_true", help="with --migrate: write nothing")
    parser.add_argument("--verbose", action="store_true", help="with --migrate: show the changes as a diff")
    parser.add_argument("--force", action="store_true", help="with --migrate: write although the git tree is not clean")
    options = parser.parse_args(arguments)
    engine = ["--backend", options.backend] if options.backend else []
    if not options.migrate:
        if options.package or options.operation or options.dry_run or options.verbose or options.force:
            parser.error("--package, --operation, --dry-run, --verbose and --force need --migrate")
        return cli.main(["ops", "matrix", *engine])
    package = options.package or Path(ember_ml.__file__).parent
    flags = [f"--{name}" for name in ("dry-run", "verbose", "force") if getattr(options, name.replace("-", "_"))]
    operation = ["--operation", options.operation] if options.operation else []
    return cli.main(["ops", "migrate", str(package), *engine, *operation, *flags])


if __name__ == "__main__":
    sys.exit(main())
