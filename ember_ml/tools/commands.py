"""The commands ``ember-ml ops ...``. Operations and engines are loaded only when a command runs."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml import backend as backends
from ember_ml.tools import UsageError, console

if TYPE_CHECKING:
    from ember_ml.tools.migration import Plan

_OPS = """List and measure the operations on each engine, and move engine code of other
packages to a backend."""

_OPS_EXAMPLES = """examples:
  ember-ml ops list --category linearalg
  ember-ml ops matrix --format html --out matrix.html
  ember-ml ops measure --out matrix.json
  ember-ml ops check matrix.lock.json
  ember-ml ops plan ./my_package
  ember-ml ops migrate ./my_package --backend torch --dry-run
"""

_LIST = """Every operation: its signature, its dtype rule, and its provider on each
installed engine: own (a function of the engine), defined (composed of other
operations) or missing."""

_MATRIX = """Operations by engine, and the operations that each engine lacks. Nothing is
run; --measured adds the results of an earlier 'ember-ml ops measure'."""

_MATRIX_EXAMPLES = """examples:
  ember-ml ops matrix
  ember-ml ops matrix --backend mlx --format csv
  ember-ml ops matrix --format html --measured matrix.json --out matrix.html
"""

_MEASURE = """Runs every operation on every installed engine with the samples of its contract and
with inputs generated from its signature and docstring (all dtypes, mixed dtypes,
shapes including empty and 0-d, NaN and infinities, every option, invalid input), and
compares value, dtype, shape and error class with the reference, NumPy. Crashes, hangs
and results that vary are recorded. An interrupted run can be continued."""

_MEASURE_EXAMPLES = """examples:
  ember-ml ops measure --out matrix.json
  ember-ml ops measure --ops sum mean --out few.json
  ember-ml ops measure --module my_package.operations --out mine.json
"""

_CHECK = """Measures again, and fails if an engine, a dtype or an option of an operation is
worse than in a lock file. A lock file is a matrix written by 'measure'."""

_CHECK_EXAMPLES = """examples:
  ember-ml ops check matrix.lock.json
  ember-ml ops check matrix.lock.json --sample 20 --seed 1
  ember-ml ops check matrix.lock.json --matrix matrix.json
"""

_PLAN = """Lists the operations that a package implements per engine in its frontend, such as
my_package/ops/torch/math.py, and shows a diff of the changes that move them to
my_package/backend/torch. Nothing is written. The exit status is that of a migration:
1 if an operation is refused."""

_PLAN_EXAMPLES = """examples:
  ember-ml ops plan ./my_package
  ember-ml ops plan ./my_package --backend torch --operation softmax
"""

_MIGRATE = """Moves the operations that a package implements per engine in its frontend to
my_package/backend/<engine>/<category>.py, with their imports, comments, decorators
and helpers. Functions that dispatch to the active engine take their place, and the
imports of the package are updated. Either all changes are written or none. An
operation that cannot be moved safely is refused, with the reason. Requires a clean
git tree, or --force."""

_MIGRATE_EXAMPLES = """examples:
  ember-ml ops migrate ./my_package --dry-run
  ember-ml ops migrate ./my_package --backend torch --operation softmax --verbose
"""


def add(commands: Any) -> None:
    """Add ``ops`` and its actions to the commands of a parser."""
    parser = console.described(
        commands.add_parser("ops", help="list, measure and check operations; migrate packages"), _OPS, _OPS_EXAMPLES
    )
    parser.set_defaults(command=console.show_help(parser))
    actions = parser.add_subparsers(title="actions", metavar="ACTION")

    listing = actions.add_parser("list", help="every operation, its signature, dtype rule and providers")
    console.described(listing, _LIST, "")
    listing.add_argument("--category", metavar="C", help="only operations of this category, such as math")
    console.takes_json(listing, _list)

    matrix = actions.add_parser("matrix", help="operations by engine, and what each engine lacks")
    console.described(matrix, _MATRIX, _MATRIX_EXAMPLES)
    matrix.add_argument("--format", choices=("table", "md", "csv", "html", "json"), help="default: table")
    matrix.add_argument("--backend", metavar="B", help="only this engine")
    matrix.add_argument("--measured", metavar="FILE", type=Path, help="a matrix.json to show in the html page")
    matrix.add_argument("--out", metavar="FILE", type=Path, help="write here instead of printing")
    console.takes_json(matrix, _matrix)

    measure = actions.add_parser("measure", help="run every operation on every engine and compare")
    console.described(measure, _MEASURE, _MEASURE_EXAMPLES)
    measure.add_argument("--ops", metavar="NAME", nargs="+", action="extend", help="only these operations")
    _takes_run(measure)
    measure.add_argument("--out", metavar="FILE", type=Path, default=Path("matrix.json"), help="default: matrix.json")
    measure.add_argument("--fresh", action="store_true", help="discard the results of an interrupted run")
    console.takes_json(measure, _measure)

    check = actions.add_parser("check", help="fail if anything is worse than in a lock file")
    console.described(check, _CHECK, _CHECK_EXAMPLES)
    check.add_argument("lock", metavar="LOCK", type=Path, help="a matrix that 'ember-ml ops measure' wrote")
    check.add_argument("--matrix", metavar="FILE", type=Path, help="compare with this one instead of measuring")
    check.add_argument("--ops", metavar="NAME", nargs="+", action="extend", help="only these operations")
    check.add_argument("--sample", metavar="N", type=_positive, help="only N operations, drawn with --seed")
    check.add_argument("--seed", metavar="S", type=int, default=0, help="seed of --sample (default: 0)")
    _takes_run(check)
    console.takes_json(check, _check)

    plan = actions.add_parser("plan", help="show what a migration of a package would move and change")
    console.described(plan, _PLAN, _PLAN_EXAMPLES)
    _takes_package(plan)
    console.takes_json(plan, _plan)

    migrate = actions.add_parser("migrate", help="move engine code of a package's frontend to its backend")
    console.described(migrate, _MIGRATE, _MIGRATE_EXAMPLES)
    _takes_package(migrate)
    migrate.add_argument("--dry-run", action="store_true", help="show what would be done, and write nothing")
    migrate.add_argument("--verbose", action="store_true", help="show the changes as a diff")
    migrate.add_argument("--force", action="store_true", help="write although the git tree is not clean")
    console.takes_json(migrate, _migrate)


def _takes_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", metavar="B", nargs="+", action="extend", help="only these engines, compared with the reference"
    )
    parser.add_argument("--jobs", metavar="N", type=_positive, help="worker processes (default: one per processor)")
    parser.add_argument(
        "--limit", metavar="SECONDS", type=_seconds, default=10, help="time limit of a call (default: 10)"
    )
    parser.add_argument(
        "--module",
        metavar="M",
        nargs="+",
        action="extend",
        default=[],
        help="additional modules whose operations are measured",
    )


def _takes_package(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("package", metavar="PACKAGE", type=Path, help="the folder of the package")
    parser.add_argument("--backend", metavar="B", help="only the code of this engine (default: all)")
    parser.add_argument("--operation", metavar="OP", help="only this operation")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer > 0, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}")
    return seconds


def _list(options: argparse.Namespace) -> int:
    from ember_ml.tools import operations

    found = operations.entries(options.category, console.usable_backends())
    if options.json:
        sys.stdout.write(operations.as_json(found))
        return 0
    engines = list(found[0].providers)
    table = console.table_of("operation", "dtype rule", *engines)
    table.columns[0].overflow = "fold"
    for entry in found:
        table.add_row(f"{entry.name}{entry.signature}", entry.dtype_rule, *entry.providers.values())
    console.print_rich(table)
    print(f"{len(found)} operations")
    return 0


def _matrix(options: argparse.Namespace) -> int:
    from ember_ml.tools import measuring, operations
    from ember_ml.tools.page import page

    if options.backend is not None:
        backends.load(options.backend, "ember-ml ops matrix --backend")
    form = options.format or ("json" if options.json else "table")
    if options.measured is not None and form != "html":
        return console.complain("--measured is for --format html", console.MISUSED)
    found = operations.entries(engines=[options.backend] if options.backend else console.usable_backends())
    if form == "table":
        if options.out is not None:
            return console.complain("--out needs a --format of md, csv, html or json", console.MISUSED)
        _print_matrix(found)
        return 0
    if form == "html":
        text = page(found, measuring.read(options.measured) if options.measured else None)
    else:
        text = {"md": operations.as_markdown, "csv": operations.as_csv, "json": operations.as_json}[form](found)
    _put(text, options.out)
    return 0


def _print_matrix(found: list[Any]) -> None:
    from ember_ml.tools import operations

    table = console.table_of("operation", "category", *found[0].providers)
    table.columns[0].overflow = "fold"
    for entry in found:
        table.add_row(entry.name, entry.category, *entry.providers.values())
    console.print_rich(table)
    for engine, tally in operations.counts(found).items():
        print(f"{engine}: " + ", ".join(f"{count} {kind}" for kind, count in tally.items()))
    for engine, names in operations.lacking(found).items():
        print(f"missing on {engine}: {', '.join(names) or 'none'}")


def _put(text: str, path: Path | None) -> None:
    from emberlint import atomic

    if path is None:
        sys.stdout.write(text)
    else:
        atomic.write(path, text, parents=True)


def _measure(options: argparse.Namespace) -> int:
    from ember_ml.tools import measuring
    from emberlint import atomic

    atomic.check(options.out, parents=True)
    partial = options.out.with_name(options.out.name + ".partial")
    if options.fresh:
        partial.unlink(missing_ok=True)
    try:
        matrix = _run_measurement(options, options.ops, partial)
    except KeyboardInterrupt:
        print(f"ember-ml: stopped; the same command continues from {partial}", file=sys.stderr)
        raise
    measuring.write(matrix, options.out)
    partial.unlink(missing_ok=True)
    if options.json:
        console.print_json({"out": str(options.out), "counts": _tally(matrix)})
        return 0
    table = console.table_of("engine", "status", "operations")
    for engine, statuses in _tally(matrix).items():
        for status, count in statuses.items():
            table.add_row(engine, status, str(count))
    console.print_rich(table)
    print(f"written: {options.out}")
    return 0


def _run_measurement(options: argparse.Namespace, names: list[str] | None, partial: Path | None) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ember_ml.tools import measuring

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=options.json or not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        return measuring.measure(
            names,
            engines=options.backend,
            modules=options.module,
            jobs=options.jobs,
            limit=options.limit,
            partial=partial,
            progress=lambda done, total, name: bar.update(task, completed=done, total=total, description=name),
        )


def _tally(matrix: dict[str, Any]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for operation in matrix["operations"].values():
        for engine, entry in operation["engines"].items():
            statuses = found.setdefault(engine, {})
            statuses[entry["status"]] = statuses.get(entry["status"], 0) + 1
    return found


def _check(options: argparse.Namespace) -> int:
    from ember_ml.tools import measuring
    from ember_ml.tools.workers import known_operations

    lock = measuring.read(options.lock)
    known = known_operations(options.module)
    problems = [f"{name} is gone" for name in measuring.gone(lock, known)]
    now = measuring.read(options.matrix) if options.matrix is not None else None
    measuring.check_names(options.ops or (), known)
    for name in options.ops or ():
        for path, matrix in ((options.lock, lock), (options.matrix, now)):
            if matrix is not None and name not in matrix["operations"]:
                raise UsageError(f"{path}: the matrix must have the operation {name!r} to be compared")
    names = options.ops or [n for n in lock["operations"] if n in known and (now is None or n in now["operations"])]
    if not names and not problems:
        raise UsageError(f"{options.lock}: there must be something to compare with it, got nothing")
    if options.sample is not None:
        names = measuring.sample(names, options.sample, options.seed)
    if now is None:
        now = _run_measurement(options, names, None)
    checked = len(names)
    problems += measuring.worse(lock, now, names)
    if options.json:
        console.print_json({"checked": checked, "worse": problems})
    else:
        for problem in problems:
            print(problem)
        print(
            f"{checked} operations checked, {len(problems)} got worse"
            if problems
            else f"{checked} operations checked, nothing got worse"
        )
    return console.FAILED if problems else 0


def _plan(options: argparse.Namespace) -> int:
    plan = _make_plan(options)
    if options.json:
        console.print_json(plan.facts())
    else:
        sys.stdout.write(plan.text())
        sys.stdout.write(plan.diff())
    return console.FAILED if plan.refusals else 0


def _make_plan(options: argparse.Namespace) -> Plan:
    from ember_ml.tools import migration

    return migration.plan(options.package, engine=options.backend, operation=options.operation)


def _migrate(options: argparse.Namespace) -> int:
    plan = _make_plan(options)
    # The diff compares with the current files, so it is computed before anything is written.
    diff = plan.diff() if options.verbose else ""
    if not options.dry_run:
        plan.apply(force=options.force)
    if options.json:
        console.print_json({**plan.facts(), "written": not options.dry_run})
    else:
        sys.stdout.write(plan.text())
        sys.stdout.write(diff)
        print(
            "nothing was written"
            if options.dry_run or not plan.changes
            else f"{len(plan.changes)} files written or removed"
        )
    return console.FAILED if plan.refusals else 0
