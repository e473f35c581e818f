"""The command line: ``emberlint PATH...`` and the commands around it."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

from emberlint import __version__
from emberlint.output import standard_output

if TYPE_CHECKING:
    from emberlint.config import Config
    from emberlint.findings import Finding
    from emberlint.lint.listing import Unread
    from emberlint.lint.runner import Run

CLEAN, FOUND, ERROR, INTERRUPTED, PIPE_BROKEN = 0, 1, 2, 130, 141

_USAGE = """emberlint PATH... [options]
       emberlint explain CODE | why FILE:LINE | port PATH --from ENGINE | baseline ACTION | rules"""
_DESCRIPTION = "Finds what keeps array code from running on another engine, and rewrites it where that is safe."
_EPILOGUE = """\
commands:
  emberlint rules                       every rule: code, name, whether it has a fix
  emberlint explain EMB203              the page of a rule: what, why, an example, what to write instead
  emberlint why FILE:LINE               what is known of the values on a line, and how
  emberlint port PATH --from numpy      rewrite a file or package for ember, with a report
  emberlint baseline update|prune|stats PATH...   keep, shorten or count the findings that are let be

silence one line with `# noqa: EMB102` or `# emberlint: ignore[EMB102] the reason`.
settings are read from [tool.emberlint] of the nearest pyproject.toml.
exit status: 0 clean, 1 findings, 2 wrong usage, bad configuration, an internal error or a path that cannot be read;
what can be read is checked all the same.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}\nsee {self.prog} --help\n")
        raise SystemExit(ERROR)


def _intermixed(made: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """The options of a command line whose paths may stand before, between and after them."""
    # argparse loses what is behind `--` in one of its two ways.
    return made.parse_args(arguments) if "--" in arguments else made.parse_intermixed_args(arguments)


def _codes(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _some_codes(text: str) -> list[str]:
    codes = _codes(text)
    if not codes:
        raise argparse.ArgumentTypeError("it names nothing, so nothing would be looked for")
    return codes


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The options of a plain run."""
    made = _Parser(
        prog="emberlint",
        usage=_USAGE,
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("paths", nargs="*", metavar="PATH", help="files and folders (the current folder, if none is given)")
    add("--version", action="version", version=f"emberlint {__version__}")
    add("--verbose", "-v", action="store_true", help="say why each value is a tensor, and what was read from the cache")
    rules = made.add_argument_group("rules")
    add = rules.add_argument
    add(
        "--select",
        type=_some_codes,
        metavar="CODES",
        help="run these only: codes or prefixes, such as EMB1,EMB203; ALL for every rule",
    )
    add("--ignore", type=_codes, metavar="CODES", help="leave these out")
    add("--frontend-backend-only", action="store_true", help="run the purity rules only: the same as --select EMB1")
    add("--targets", type=_some_codes, metavar="ENGINES", help="the engines that the code is to run on: torch,mlx")
    add(
        "--target",
        choices=("ember", "array-api"),
        help="what fixes are written in: ember's operations or the array API standard",
    )
    fixes = made.add_argument_group("fixes")
    add = fixes.add_argument
    add("--fix", action="store_true", help="make the safe fixes")
    add(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix or --diff: those too that may change dtypes, errors or laziness",
    )
    add("--diff", action="store_true", help="show what --fix would change, and change nothing")
    output = made.add_argument_group("output")
    add = output.add_argument
    formats = ("full", "concise", "json", "github", "gitlab", "sarif", "junit")
    add("--output-format", choices=formats, default="full", help="how findings are written (full)")
    add("--statistics", action="store_true", help="count the findings of each rule instead of listing them")
    scope = made.add_argument_group("scope")
    add = scope.add_argument
    add("--baseline", metavar="FILE", help="let the findings be that this file holds")
    add("--diff-base", metavar="REF", help="report on lines only that changed since this git revision")
    add("--force-exclude", action="store_true", help="leave excluded files out even if they are named, as hooks do")
    add("--jobs", type=_count, default=0, metavar="N", help="processes (one for each core, if there are many files)")
    add("--no-cache", action="store_true", help="neither read nor write the cache in .emberlint_cache")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the program; the answer is its exit status."""
    from emberlint.config import ConfigError

    given = sys.argv[1:] if arguments is None else arguments
    commands = {"explain": _explain, "why": _why, "port": _port, "baseline": _baseline, "rules": _rules}
    # Nothing here makes circles; a collector would only walk trees and findings over and over.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with standard_output():
            if given and given[0] in commands:
                return commands[given[0]](given[1:])
            return _lint(given)
    except BrokenPipeError:
        return PIPE_BROKEN
    except ConfigError as error:
        sys.stderr.write(f"emberlint: {error}\n")
        return ERROR
    except OSError as error:
        said = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        sys.stderr.write(f"emberlint: {said}{_meant(given[0], commands) if given else ''}\n")
        return ERROR
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        sys.stderr.write(f"emberlint: internal error: {type(error).__name__}: {error}\n")
        if os.environ.get("EMBERLINT_DEBUG"):
            raise
        return ERROR
    finally:
        if arguments is None:
            gc.freeze()  # so that nothing is walked once more when the program ends
        if collecting:
            gc.enable()


def _meant(given: str, known: Iterable[str]) -> str:
    """The name that was meant, as the end of a message, if one is close."""
    from difflib import get_close_matches

    close = get_close_matches(given, list(known), 1)
    return f"; did you mean `{close[0]}`?" if close and close[0] != given else ""


def settings(options: argparse.Namespace) -> Config:
    """The configuration of a run: the file's, with the options over it."""
    from emberlint import config as configuration

    start = options.paths[0] if options.paths else "."
    folder = start if os.path.isdir(start) else os.path.dirname(start) or "."
    config = configuration.load(folder)
    changes: dict[str, object] = {}
    if getattr(options, "frontend_backend_only", False):
        changes["select"] = ("EMB1",)
    for name in ("select", "ignore", "targets"):
        value = getattr(options, name, None)
        if value is not None:
            changes[name] = tuple(value)
    if getattr(options, "target", None):
        changes["target"] = options.target
    if getattr(options, "baseline", None):
        changes["baseline"] = os.path.abspath(options.baseline)
    if changes:
        config = config._replace(**changes)  # type: ignore[arg-type]
        configuration.check(config, "command line")
    return config


def _lint(arguments: list[str]) -> int:
    from emberlint.lint import runner

    options = _intermixed(parser(), arguments)
    if options.unsafe_fixes and not (options.fix or options.diff):
        parser().error("--unsafe-fixes goes with --fix or --diff")
    if options.diff_base and (options.fix or options.diff):
        parser().error("--diff-base limits what is reported; --fix and --diff would change other lines too")
    if options.statistics and options.output_format not in ("full", "concise", "json"):
        parser().error("--statistics has the formats full, concise and json")
    options.paths = options.paths or ["."]
    config = settings(options)
    if options.force_exclude:
        options.paths = [path for path in options.paths if not _is_excluded(path, config)]
    if options.diff:
        return _diff(options, config)
    mended: dict[str, int] = {}
    is_complete = True
    if options.fix:
        mended, is_complete = _fix(options, config)
    run = runner.run(options.paths, config, jobs=options.jobs, cached=not options.no_cache)
    if options.fix and run.stale:
        from emberlint.report import baseline

        baseline.pruned(os.path.join(config.root, config.baseline), run.stale)
        mended["EMB004"] = len(run.stale)
        run = run._replace(findings=[finding for finding in run.findings if finding.code != "EMB004"])
    findings = run.findings
    if options.diff_base:
        from emberlint.report import changes

        first = options.paths[0] if options.paths else "."
        folder = first if os.path.isdir(first) else os.path.dirname(first) or "."
        findings = changes.only(findings, changes.changed(options.diff_base, folder))
    _print(findings, run, mended, options)
    if _warn(run.unread) or not is_complete:
        return ERROR
    return FOUND if findings else CLEAN


def _warn(unread: Iterable[Unread]) -> bool:
    """Say what was not checked; whether there is any."""
    lines = [one.warning() for one in unread]
    sys.stderr.write("".join(lines))
    return bool(lines)


def _is_excluded(path: str, config: Config) -> bool:
    from emberlint import config as configuration

    where = configuration.relative(path, config)
    return any(configuration.matches(where, pattern) for pattern in config.exclude)


def _fix(options: argparse.Namespace, config: Config) -> tuple[dict[str, int], bool]:
    """Write the fixed files; how many findings of each code were mended, and whether every file could be written."""
    from emberlint.source import files

    total: dict[str, int] = {}
    is_complete = True
    for path, before, after, mended in _fixed(options, config, []):
        if after == before:
            continue
        try:
            files.write(path, after)
        except OSError as error:
            sys.stderr.write(f"emberlint: warning: {path}: {error.strerror}\n")
            is_complete = False
            continue
        for code, count in mended.items():
            total[code] = total.get(code, 0) + count
    return total, is_complete


def _fixed(
    options: argparse.Namespace, config: Config, unread: list[Unread]
) -> list[tuple[str, bytes, bytes, dict[str, int]]]:
    """The files that have fixes, before and after, and how many findings of each code were mended.

    What cannot be read is added to ``unread``.
    """
    from emberlint.lint import fixes, linter, listing, runner
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
            unread.append(listing.Unread(path, str(error.strerror)))
            continue
        module, package = linter.module_of(path)
        fixed = fixes.fixed(before, path, config, unsafe=options.unsafe_fixes, module=module, package=package)
        done.append((path, before, fixed.data, fixed.mended))
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
    sys.stderr.write(f"{_files(changed)} would change.\n" if changed else "nothing would change.\n")
    if _warn(unread):
        return ERROR
    return FOUND if changed else CLEAN


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


def _print(findings: list[Finding], run: Run, mended: dict[str, int], options: argparse.Namespace) -> None:
    from emberlint.report import formats

    if options.statistics:
        sys.stdout.write(_statistics(findings, options.output_format))
    else:
        sources = formats.Sources(run.texts)
        sys.stdout.write(formats.rendered(findings, options.output_format, verbose=options.verbose, sources=sources))
    if options.output_format not in ("full", "concise"):
        return
    safeties = [f.fix.safety for f in findings if f.fix is not None]
    fixable, hidden = safeties.count("safe"), safeties.count("unsafe")
    if findings:
        text = f"{len(findings)} finding{'s' * (len(findings) != 1)} in {_files(len({f.path for f in findings}))}"
        if fixable:
            text += f"; {fixable} can be mended with --fix"
        if hidden:
            text += (
                f"; {hidden} more with --unsafe-fixes"
                if fixable
                else f"; {hidden} can be mended with --fix --unsafe-fixes"
            )
    else:
        text = f"no findings in {_files(len(run.files))}"
    if mended:
        text += f"; {sum(mended.values())} mended"
    if run.unread:
        text += f"; {len(run.unread)} path{'s were' if len(run.unread) != 1 else ' was'} not checked"
    sys.stdout.write(text + ".\n")
    if options.verbose:
        read = f"{_files(len(run.files))} read, {run.cached} known from the cache"
        sys.stdout.write(f"{read}; {run.suppressed} findings silenced, {run.known} in the baseline.\n")


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


def _explain(arguments: list[str]) -> int:
    from emberlint import rules
    from emberlint.codes import rule_modules

    made = _Parser(prog="emberlint explain", description="Print the page of a rule.")
    made.add_argument("code", metavar="CODE", nargs="+", help="EMB203, or a rule's name: truth-value")
    codes = made.parse_args(arguments).code
    named = any(code.upper() not in rule_modules() for code in codes)
    names = {rules.load(code).name: code for code in rule_modules()} if named else {}
    for given in codes:
        code = names.get(given, given.upper())
        if code not in rule_modules():
            hint = _meant(given, names) or "; `emberlint rules` lists them"
            made.error(f"no rule {given}{hint}")
        rule = rules.load(code)
        title, _, rest = rule.page.strip().partition("\n")
        notes = [f"fix: {rule.fix or 'none'}", "opt-in: run it with --select" if rule.optional else "on by default"]
        sys.stdout.write(f"# {rule.code} {rule.name}\n\n{title} ({'; '.join(notes)})\n{rest}\n")
    return CLEAN


def _rules(arguments: list[str]) -> int:
    from emberlint import rules
    from emberlint.codes import rule_modules

    made = _Parser(prog="emberlint rules", description="List every rule.")
    made.add_argument("--json", action="store_true", help="as a list of objects")
    options = made.parse_args(arguments)
    table = [rules.load(code) for code in rule_modules()]
    if options.json:
        import json

        keys = ("code", "name", "summary", "fix", "optional")
        sys.stdout.write(json.dumps([{key: getattr(rule, key) for key in keys} for rule in table], indent=2) + "\n")
        return CLEAN
    width = max(len(rule.name) for rule in table)
    for rule in table:
        note = f"fix: {rule.fix}" if rule.fix else ""
        note = f"{note}; opt-in" if rule.optional and note else "opt-in" if rule.optional else note
        sys.stdout.write(f"{rule.code}  {rule.name:<{width}}  {rule.summary}{f' ({note})' if note else ''}\n")
    return CLEAN


def _why(arguments: list[str]) -> int:
    from emberlint.commands import why
    from emberlint.source import files

    made = _Parser(prog="emberlint why", description="What is known of the values on a line, and how.")
    made.add_argument("place", metavar="FILE:LINE", help="such as model.py:12; a column after it is not looked at")
    place = made.parse_args(arguments).place
    path, _, line = place.rpartition(":")
    if not os.path.exists(path):
        # As findings have it, with a column.
        shorter, _, number = path.rpartition(":")
        path, line = (shorter, number) if shorter and number.isdecimal() and line.isdecimal() else (path, line)
    if not path or not line.isdecimal():
        made.error("give FILE:LINE, such as model.py:12")
    count = len(files.read(path).splitlines())
    if not 1 <= int(line) <= count:
        made.error(f"{path} has {count} lines, and no line {line}")
    sys.stdout.write(why.told(path, int(line)))
    return CLEAN


def _port(arguments: list[str]) -> int:
    from emberlint.commands import port

    return port.main(arguments)


def _baseline(arguments: list[str]) -> int:
    from emberlint.lint import runner
    from emberlint.report import baseline
    from emberlint.report.formats import Sources

    made = _Parser(prog="emberlint baseline", description="Keep the findings there are, so that only new ones count.")
    made.add_argument(
        "action", choices=("update", "prune", "stats"), help="write it anew; drop what is stale; count what is in it"
    )
    made.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (the current folder)")
    made.add_argument("--baseline", metavar="FILE", help="the file (the configured one, or emberlint-baseline.json)")
    made.add_argument("--select", type=_some_codes, metavar="CODES", help="run these rules only")
    made.add_argument("--ignore", type=_codes, metavar="CODES", help="leave these rules out")
    options = _intermixed(made, arguments)
    options.paths = options.paths or ["."]
    config = settings(options)
    path = os.path.join(config.root, config.baseline or "emberlint-baseline.json")
    if options.action == "update":
        if os.path.exists(path) and not os.path.isdir(path):
            baseline.read(path)  # a file that is no baseline may be anything, so it is not replaced
        run = runner.run(options.paths, config._replace(baseline=""))
        if _warn(run.unread):
            sys.stderr.write("emberlint: the baseline is not written, because its entries for these would be lost\n")
            return ERROR
        findings = [finding for finding in run.findings if finding.code != "EMB001"]
        baseline.save(path, baseline.entries_of(findings, Sources(), config.root))
        sys.stdout.write(f"{len(findings)} findings written to {os.path.relpath(path)}.\n")
        return CLEAN
    if options.action == "stats":
        from collections import Counter

        entries = baseline.read(path)
        counts = Counter(entry["code"] for entry in entries.values())
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            sys.stdout.write(f"{count:>6}  {code}\n")
        sys.stdout.write(f"{len(entries)} findings in {_files(len({entry['path'] for entry in entries.values()}))}.\n")
        return CLEAN
    run = runner.run(options.paths, config._replace(baseline=path))
    left = baseline.pruned(path, run.stale)
    sys.stdout.write(f"{len(run.stale)} stale entries removed, {left} left.\n")
    return ERROR if _warn(run.unread) else CLEAN
