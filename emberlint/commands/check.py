"""``emberlint PATH...`` and ``emberlint check PATH...``: report findings and apply their fixes."""

from __future__ import annotations

import argparse
import os
import sys

from emberlint import __version__
from emberlint import config as configuration
from emberlint.commands.options import Parser, code_list, natural, parse_intermixed, settings, some_codes
from emberlint.commands.status import CLEAN, ERROR, FOUND, count_files, warn
from emberlint.config import Config
from emberlint.findings import Finding
from emberlint.lint import runner
from emberlint.lint.listing import Unread
from emberlint.lint.runner import Run
from emberlint.source.modules import module_of
from emberlint.source.sources import Sources

_USAGE = """emberlint [check] PATH... [options]
       emberlint explain CODE | why FILE:LINE | port PATH --from ENGINE | baseline ACTION | rules"""
_DESCRIPTION = "Find code that does not run on every array engine, and rewrite it where that is safe."
_EPILOGUE = """\
commands:
  emberlint check PATH...               the same as emberlint PATH...; write ./check for a path named like a command
  emberlint rules                       list every rule: code, name, kind of fix
  emberlint explain EMB203              print the page of a rule: what, why, an example, what to write instead
  emberlint why FILE:LINE               show the inferred types of the values on a line, and why
  emberlint port PATH --from numpy      rewrite a file or package to ember operations, with a report
  emberlint baseline update|prune|stats PATH...   write, prune or count the accepted findings

Suppress findings on a line with `# noqa: EMB102` or `# emberlint: ignore[EMB102] reason`.
Settings are read from [tool.emberlint] of the nearest pyproject.toml.
Exit status: 0 no findings, 1 findings, 2 wrong usage, invalid configuration, an internal error or a path that
cannot be read; all other paths are still checked.
"""


def parser() -> argparse.ArgumentParser:
    """Parser of the options of ``emberlint check``."""
    made = Parser(
        prog="emberlint",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("paths", nargs="*", metavar="PATH", help="files and folders (default: the current folder)")
    add("--version", action="version", version=f"emberlint {__version__}")
    add("--verbose", "-v", action="store_true", help="show why each value is a tensor, and cache statistics")
    rules = made.add_argument_group("rules")
    add = rules.add_argument
    add(
        "--select",
        type=some_codes,
        metavar="CODES",
        help="run only these rules: codes or prefixes, such as EMB1,EMB203; ALL for every rule",
    )
    add("--ignore", type=code_list, metavar="CODES", help="do not run these rules")
    add("--frontend-backend-only", action="store_true", help="run only the purity rules: the same as --select EMB1")
    add("--targets", type=some_codes, metavar="ENGINES", help="engines that the code must run on, such as torch,mlx")
    add(
        "--target",
        choices=("ember", "array-api"),
        help="functions that fixes use: ember's operations or the array API standard",
    )
    fixes = made.add_argument_group("fixes")
    add = fixes.add_argument
    add("--fix", action="store_true", help="apply the safe fixes")
    add(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix or --diff: also fixes that may change dtypes, errors or laziness",
    )
    add("--diff", action="store_true", help="show what --fix would change, without changing files")
    output = made.add_argument_group("output")
    add = output.add_argument
    formats = ("full", "concise", "json", "github", "gitlab", "sarif", "junit")
    add("--output-format", choices=formats, default="full", help="output format (default: full)")
    add("--statistics", action="store_true", help="print the number of findings of each rule instead of the findings")
    scope = made.add_argument_group("scope")
    add = scope.add_argument
    add("--baseline", metavar="FILE", help="do not report the findings in this file")
    add("--diff-base", metavar="REF", help="report only findings on lines that changed since this git revision")
    add(
        "--force-exclude",
        action="store_true",
        help="skip excluded files even if they are named on the command line, as hooks do",
    )
    add(
        "--jobs",
        type=natural,
        default=0,
        metavar="N",
        help="number of processes (default: one per core, if there are many files)",
    )
    add("--no-cache", action="store_true", help="neither read nor write the cache in .emberlint_cache")
    return made


def main(arguments: list[str]) -> int:
    """Lint files and return the exit status."""
    options = parse_intermixed(parser(), arguments)
    if options.unsafe_fixes and not (options.fix or options.diff):
        parser().error("--unsafe-fixes requires --fix or --diff")
    if options.diff_base and (options.fix or options.diff):
        parser().error("--diff-base cannot be combined with --fix or --diff, which change other lines too")
    if options.statistics and options.output_format not in ("full", "concise", "json"):
        parser().error(f"--statistics requires --output-format full, concise or json, got {options.output_format}")
    options.paths = options.paths or ["."]
    config = settings(options)
    if options.force_exclude:
        options.paths = [path for path in options.paths if not _is_excluded(path, config)]
    if options.diff:
        return _diff(options, config)
    fixed: dict[str, int] = {}
    is_complete = True
    if options.fix:
        fixed, is_complete = _fix(options, config)
    run = runner.run(options.paths, config, jobs=options.jobs, cached=not options.no_cache)
    if options.fix and run.stale:
        from emberlint.report import baseline

        baseline.prune(os.path.join(config.root, config.baseline), run.stale)
        fixed["EMB004"] = len(run.stale)
        run = run._replace(findings=[finding for finding in run.findings if finding.code != "EMB004"])
    findings = run.findings
    if options.diff_base:
        from emberlint.report import changes

        first = options.paths[0] if options.paths else "."
        folder = first if os.path.isdir(first) else os.path.dirname(first) or "."
        findings = changes.only(findings, changes.changed(options.diff_base, folder))
    _print(findings, run, fixed, options)
    if warn(run.unread) or not is_complete:
        return ERROR
    return FOUND if findings else CLEAN


def _is_excluded(path: str, config: Config) -> bool:
    where = configuration.relative(path, config)
    return any(configuration.matches(where, pattern) for pattern in config.exclude)


def _fix(options: argparse.Namespace, config: Config) -> tuple[dict[str, int], bool]:
    """Write the fixed files. Return the number of fixed findings by code, and whether every file could be written."""
    from emberlint.source import files

    total: dict[str, int] = {}
    is_complete = True
    for path, before, after, fixed in _fixed(options, config, []):
        if after == before:
            continue
        try:
            files.write(path, after)
        except OSError as error:
            sys.stderr.write(f"emberlint: warning: {path}: {error.strerror}\n")
            is_complete = False
            continue
        for code, count in fixed.items():
            total[code] = total.get(code, 0) + count
    return total, is_complete


def _fixed(
    options: argparse.Namespace, config: Config, unread: list[Unread]
) -> list[tuple[str, bytes, bytes, dict[str, int]]]:
    """Files that have fixes, before and after, and the number of fixed findings by code.

    Paths that cannot be read are added to ``unread``.
    """
    from emberlint.lint import fixes
    from emberlint.source import files

    safe = ("safe", "unsafe") if options.unsafe_fixes else ("safe",)
    run = runner.run(options.paths, config, jobs=options.jobs, cached=not options.no_cache)
    unread += run.unread
    todo = dict.fromkeys(f.path for f in run.findings if f.fix is not None and f.fix.safety in safe)
    done = []
    for path in todo:
        try:
            before = files.read(path)
        except OSError as error:
            unread.append(Unread(path, str(error.strerror)))
            continue
        module, package = module_of(path)
        after = fixes.fixed(before, path, config, unsafe=options.unsafe_fixes, module=module, package=package)
        done.append((path, before, after.data, after.fixed))
    return done


def _diff(options: argparse.Namespace, config: Config) -> int:
    import difflib

    changed = 0
    unread: list[Unread] = []
    for path, before, after, _ in _fixed(options, config, unread):
        if after == before:
            continue
        changed += 1
        old = before.decode(errors="replace").splitlines(keepends=True)
        new = after.decode(errors="replace").splitlines(keepends=True)
        for line in difflib.unified_diff(old, new, path, path):
            sys.stdout.write(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    sys.stderr.write(f"{count_files(changed)} would change.\n" if changed else "No files would change.\n")
    if warn(unread):
        return ERROR
    return FOUND if changed else CLEAN


def _print(findings: list[Finding], run: Run, fixed: dict[str, int], options: argparse.Namespace) -> None:
    from emberlint.report import formats

    if options.statistics:
        sys.stdout.write(_statistics(findings, options.output_format))
    else:
        sources = Sources(run.texts)
        sys.stdout.write(formats.rendered(findings, options.output_format, verbose=options.verbose, sources=sources))
    if options.output_format not in ("full", "concise"):
        return
    safeties = [f.fix.safety for f in findings if f.fix is not None]
    fixable, hidden = safeties.count("safe"), safeties.count("unsafe")
    if findings:
        text = f"{len(findings)} finding{'s' * (len(findings) != 1)} in {count_files(len({f.path for f in findings}))}"
        if fixable:
            text += f"; {fixable} fixable with --fix"
        if hidden:
            text += (
                f"; {hidden} more with --unsafe-fixes" if fixable else f"; {hidden} fixable with --fix --unsafe-fixes"
            )
    else:
        text = f"no findings in {count_files(len(run.files))}"
    if fixed:
        text += f"; {sum(fixed.values())} fixed"
    if run.unread:
        text += f"; {len(run.unread)} path{'s were' if len(run.unread) != 1 else ' was'} not checked"
    sys.stdout.write(text + ".\n")
    if options.verbose:
        read = f"{count_files(len(run.files))} read, {run.cached} found in the cache"
        sys.stdout.write(f"{read}; {run.suppressed} findings suppressed, {run.known} in the baseline.\n")


def _statistics(findings: list[Finding], style: str) -> str:
    from collections import Counter

    from emberlint import rules

    counts = Counter(finding.code for finding in findings)
    fixable = Counter(f.code for f in findings if f.fix is not None and f.fix.safety == "safe")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if style == "json":
        import json

        rows = [
            {"code": code, "name": rules.load(code).name, "count": count, "fixable": fixable[code]}
            for code, count in ordered
        ]
        return json.dumps(rows, indent=2) + "\n"
    return "".join(
        f"{count:>6}  {code}{' [*]' if fixable[code] else '    '}  {rules.load(code).summary}\n"
        for code, count in ordered
    )
