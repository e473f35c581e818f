"""A run of the linter: files are linted in processes or read from the cache, then the project rules run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import repeat
from typing import NamedTuple

from emberlint import config as configuration
from emberlint.config import Config
from emberlint.findings import Finding
from emberlint.lint import linter, listing
from emberlint.lint.cache import Cache, digest, stamp
from emberlint.lint.linter import Result
from emberlint.lint.listing import Unread
from emberlint.lint.selection import checks_for, selected
from emberlint.source import files
from emberlint.source.modules import module_of

_PARALLEL = 48  # number of files that justifies another process


class Run(NamedTuple):
    """Result of a run: findings, files, number of suppressed findings, and number of files found in the cache.

    ``known`` counts the findings that the baseline holds, ``stale`` names its entries that no finding matches.
    ``texts`` are the bytes of the files that were read, ``unread`` the paths that could not be.
    """

    findings: list[Finding]
    files: list[str]
    suppressed: int
    cached: int
    known: int = 0
    stale: tuple[str, ...] = ()
    texts: Mapping[str, bytes] = {}
    unread: tuple[Unread, ...] = ()


def run(paths: Iterable[str], config: Config, *, jobs: int = 0, cached: bool = True) -> Run:
    """Lint the files under some paths."""
    unread: list[Unread] = []
    listed = list(dict.fromkeys(listing.files(paths, config, unread)))
    cache = Cache(config, cached)
    results: dict[str, Result] = {}
    todo: list[tuple[str, bytes, str]] = []
    stamps: dict[str, list[int] | None] = {}
    for path in listed:
        known = cache.untouched(path)
        if known is not None:
            results[path] = known
            continue
        stamps[path] = stamp(path)
        try:
            data = files.read(path)
        except OSError as error:
            unread.append(Unread(path, str(error.strerror)))
            continue
        content = digest(data)
        known = cache.get(path, content)
        if known is not None:
            results[path] = known
        else:
            todo.append((path, data, content))
    for path, content, result in _linted(todo, config, jobs):
        results[path] = result
        cache.put(path, content, result, stamps[path])
    cache.write()
    listed = [path for path in listed if path in results]
    texts = {path: data for path, data, _ in todo}
    findings = [finding for path in listed for finding in results[path].findings]
    suppressed = sum(result.suppressed for result in results.values())
    more, silent = _project(listed, results, config, texts)
    findings += more
    missed = tuple(dict.fromkeys(unread))
    done = Run(findings, listed, suppressed + silent, len(listed) - len(todo), texts=texts, unread=missed)
    return _without_known(done, config) if config.baseline else done


def _without_known(done: Run, config: Config) -> Run:
    """Run without the findings of the baseline, and with a finding for each stale entry."""
    from emberlint.report import baseline

    path = os.path.join(config.root, config.baseline)
    entries = baseline.read(path)
    codes = set(selected(config))
    new, stale = baseline.split(done.findings, entries, config, done.files, codes)
    known = len(done.findings) - len(new)
    if "EMB004" in codes:
        new += baseline.stale_findings(os.path.relpath(path), entries, stale)
    return done._replace(findings=new, known=known, stale=tuple(stale))


def _linted(todo: list[tuple[str, bytes, str]], config: Config, jobs: int) -> Iterator[tuple[str, str, Result]]:
    jobs = jobs or os.cpu_count() or 1
    jobs = min(jobs, -(-len(todo) // _PARALLEL))
    if jobs <= 1:
        yield from _batch((todo, config))
        return
    import multiprocessing

    checks_for(selected(config), "")
    size = max(8, len(todo) // (jobs * 8))
    batches = [(todo[i : i + size], config) for i in range(0, len(todo), size)]
    with multiprocessing.Pool(jobs) as pool:
        for batch in pool.imap_unordered(_batch, batches):
            yield from batch


def _batch(work: tuple[list[tuple[str, bytes, str]], Config]) -> list[tuple[str, str, Result]]:
    import gc

    todo, config = work
    if len(todo) >= _PARALLEL:
        _reserve()
    # Most objects are trees, which reference counting frees; the garbage collector would only traverse them.
    enabled = gc.isenabled()
    gc.disable()
    try:
        done = []
        for path, data, content in todo:
            module, package = module_of(path)
            done.append((path, content, linter.lint(data, path, config, module=module, package=package)))
        return done
    finally:
        if enabled:
            gc.enable()


@cache
def _reserve() -> tuple[object, ...]:
    """Objects that keep memory allocated to the process until it exits: a few of many, of which the rest are freed.

    Otherwise the memory of a tree is returned to the system with the tree and requested again, page by page, for the
    next one, which takes 5 % of the time. Small objects are in arenas of 1 MiB, larger ones below the end of the heap.
    """
    small = list(map(bytes, repeat(479, 16 << 11)))
    large = list(map(bytes, repeat(1 << 16, 16 << 4)))
    return (*small[::1024], large[-1])


def _project(
    listed: list[str], results: dict[str, Result], config: Config, texts: Mapping[str, bytes]
) -> tuple[list[Finding], int]:
    """Findings of the project rules, and the number of suppressed ones."""
    from emberlint.lint import suppression

    codes = [code for code in selected(config) if code in suppression.PROJECT]
    if not codes:
        return [], 0
    from emberlint import rules
    from emberlint.inference.project import Project
    from emberlint.source.sources import Sources

    checks = [check for check in (rules.load(code).project_check for code in codes) if check is not None]
    if not checks:
        return [], 0
    project = Project(config)
    for path in listed:
        facts = results[path].facts
        if facts is not None:
            project.add(path, module_of(path)[0], facts)
    for check in checks:
        check(project)
    left: list[Finding] = []
    silent = 0
    by_path: dict[str, list[Finding]] = {path: [] for path in listed if (results[path].facts or {}).get("suppressions")}
    for finding in project.findings:
        by_path.setdefault(finding.path, []).append(finding)
    sources = Sources(texts)
    for path, found in by_path.items():
        text = sources[path]
        where = configuration.relative(path, config)
        comments = suppression.comments(text)
        kept, quiet = suppression.applied(found, comments, text, selected(config), config, where, project=True)
        silent += quiet
        left += kept
    left.sort(key=lambda finding: (finding.path, finding.line, finding.column, finding.code))
    return left, silent
