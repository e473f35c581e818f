"""``python -m ember_ml.tools.analyze_backend_operations``: the matrix of operations, and migration.

The former name of ``ember-ml ops matrix``, with ``--verbose`` of ``ember-ml ops plan`` too, and with ``--migrate`` of
``ember-ml ops migrate``.
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
    parser.description = (
        "Who provides each operation on each engine, and the operations that each lacks; with --verbose, the engine "
        "code of a package that should be migrated too; with --migrate, that code moved to its place."
    )
    parser.add_argument(
        "--migrate", action="store_true", help="move engine code of a package's frontend to its backend"
    )
    parser.add_argument("--package", metavar="FOLDER", type=Path, help="the package to migrate (default: ember_ml)")
    parser.add_argument("--backend", metavar="B", help="only this engine")
    parser.add_argument("--operation", metavar="OP", help="migrate only this operation")
    parser.add_argument("--dry-run", action="store_true", help="with --migrate: write nothing")
    parser.add_argument("--verbose", action="store_true", help="show what to migrate, and the changes as a diff")
    parser.add_argument("--force", action="store_true", help="with --migrate: write although the git tree is not clean")
    options = parser.parse_args(arguments)
    engine = ["--backend", options.backend] if options.backend else []
    package = options.package or Path(ember_ml.__file__).parent
    if not options.migrate:
        if options.dry_run or options.force:
            parser.error("--dry-run and --force need --migrate")
        status = cli.main(["ops", "matrix", *engine])
        if status or not (options.verbose or options.package or options.operation):
            return status
        print("\nto migrate:", flush=True)
        operation = ["--operation", options.operation] if options.operation else []
        return cli.main(["ops", "plan", str(package), *engine, *operation])
    flags = [f"--{name}" for name in ("dry-run", "verbose", "force") if getattr(options, name.replace("-", "_"))]
    operation = ["--operation", options.operation] if options.operation else []
    return cli.main(["ops", "migrate", str(package), *engine, *operation, *flags])


if __name__ == "__main__":
    sys.exit(main())
