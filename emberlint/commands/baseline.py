"""``emberlint baseline``: write, prune or count the accepted findings."""

from __future__ import annotations

import os
import sys
from collections import Counter

from emberlint.commands.options import Parser, code_list, parse_intermixed, settings, some_codes
from emberlint.commands.status import CLEAN, ERROR, count_files, warn
from emberlint.lint import runner
from emberlint.report import baseline
from emberlint.source.sources import Sources


def main(arguments: list[str]) -> int:
    """Run the command and return the exit status."""
    made = Parser(
        prog="emberlint baseline", description="Accept the current findings, so that only new ones are reported."
    )
    made.add_argument(
        "action",
        choices=("update", "prune", "stats"),
        help="write the baseline; remove stale entries; count its entries",
    )
    made.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: the current folder)")
    made.add_argument(
        "--baseline", metavar="FILE", help="baseline file (default: the configured one, or emberlint-baseline.json)"
    )
    made.add_argument("--select", type=some_codes, metavar="CODES", help="run these rules only")
    made.add_argument("--ignore", type=code_list, metavar="CODES", help="do not run these rules")
    options = parse_intermixed(made, arguments)
    options.paths = options.paths or ["."]
    config = settings(options)
    path = os.path.join(config.root, config.baseline or "emberlint-baseline.json")
    if options.action == "update":
        if os.path.exists(path) and not os.path.isdir(path):
            baseline.read(path)  # raises if the file is not a baseline, so that it is not overwritten
        run = runner.run(options.paths, config._replace(baseline=""))
        if warn(run.unread):
            sys.stderr.write(
                "emberlint: the baseline was not written, because its entries for these paths would be lost\n"
            )
            return ERROR
        findings = [finding for finding in run.findings if finding.code != "EMB001"]
        baseline.save(path, baseline.entries_of(findings, Sources(), config.root))
        sys.stdout.write(f"{len(findings)} findings written to {os.path.relpath(path)}.\n")
        return CLEAN
    if options.action == "stats":
        entries = baseline.read(path)
        counts = Counter(entry["code"] for entry in entries.values())
        for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            sys.stdout.write(f"{count:>6}  {code}\n")
        sys.stdout.write(
            f"{len(entries)} findings in {count_files(len({entry['path'] for entry in entries.values()}))}.\n"
        )
        return CLEAN
    run = runner.run(options.paths, config._replace(baseline=path))
    left = baseline.prune(path, run.stale)
    sys.stdout.write(f"{len(run.stale)} stale entries removed, {left} left.\n")
    return ERROR if warn(run.unread) else CLEAN
