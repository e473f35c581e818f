"""From a file to its findings: parse, one pass under the selected rules, suppressions."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from emberlint import config as configuration
from emberlint import rules
from emberlint.codes import chosen_codes
from emberlint.config import ENGINES, Config
from emberlint.findings import Finding
from emberlint.inference import traversal
from emberlint.inference.checks import Checks, Subscription
from emberlint.inference.state import State
from emberlint.lint import suppression
from emberlint.source.text import Source

_DEPTH = 20_000


class Result(NamedTuple):
    """What linting one file gave: its findings, how many were suppressed, and the facts that project rules read."""

    findings: list[Finding]
    suppressed: int = 0
    facts: dict[str, Any] | None = None


def checks_for(codes: tuple[str, ...], where: str, frontend: bool = True) -> Checks:
    """The checks of the selected rules that are about a file, by its path; a frontend, or a file that has engines."""
    return _checks(codes, _others(codes, where), frontend)


def about(codes: tuple[str, ...], where: str) -> list[str]:
    """Those of some rules that are about a file, by its path."""
    others = _others(codes, where)
    return [code for code in codes if code not in others]


def _others(codes: tuple[str, ...], where: str) -> tuple[str, ...]:
    return tuple([code for code, files in _particular(codes) if not files(where)])


@cache
def _particular(codes: tuple[str, ...]) -> list[tuple[str, Callable[[str], bool]]]:
    return [(rule.code, rule.files) for rule in map(rules.load, codes) if rule.files is not None]


@cache
def _checks(codes: tuple[str, ...], others: tuple[str, ...], frontend: bool) -> Checks:
    return Checks(subscriptions((code for code in codes if code not in others), frontend))


def subscriptions(codes: Iterable[str], frontend: bool = True) -> Iterator[Subscription]:
    """What the selected rules subscribe to."""
    for rule in map(rules.load, codes):
        if frontend or rule.everywhere:
            yield from rule.checks


@cache
def selected(config: Config) -> tuple[str, ...]:
    """The codes that run under a configuration."""
    return tuple(chosen_codes(config.select, config.ignore))


@cache
def _triggers(namespace: str) -> tuple[bytes, ...]:
    names = (namespace.rpartition(".")[2], "backend", *ENGINES, "Tensor", "ndarray", "ember_ml", "ml_dtypes")
    return tuple(name.encode() for name in names)


def _is_of_interest(data: bytes, config: Config) -> bool:
    """Whether a text mentions anything that a rule could be about."""
    return any(name in data for name in _triggers(config.namespace))


def parse(source: Source) -> ast.Module:
    """The tree of a source; whatever Python says against it is a ``SyntaxError``."""
    data: Any = source.data if source.encoding == "utf-8" else source.data.decode()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree: ast.Module = ast.parse(data, source.path)
            return tree
    except (ValueError, RecursionError, MemoryError, OverflowError, UnicodeError) as error:
        raise SyntaxError(str(error) or "too deeply nested") from error


def lint(data: bytes, path: str, config: Config, *, module: str = "", package: str = "") -> Result:
    """The findings in a file's bytes, suppressions applied."""
    codes = selected(config)
    try:
        source = Source(data, path)
        tree = parse(source)
    except (SyntaxError, LookupError, UnicodeError) as error:
        return Result([unparsed(error, path)] if "EMB001" in codes else [])
    from emberlint.inference import project

    where = configuration.relative(path, config)
    layer = configuration.layer(where, config)
    file = State(
        source,
        tree,
        config,
        checks_for(codes, where, layer is None),
        module=module,
        package=package,
        where=where,
        engines=layer,
    )
    findings: list[Finding] = []
    if _is_of_interest(source.data, config):
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEPTH)
        try:
            findings = traversal.run(file)
        except RecursionError:
            findings = [unparsed(SyntaxError("too deeply nested"), path)]
        finally:
            sys.setrecursionlimit(limit)
    comments = suppression.comments(source)
    findings, suppressed = suppression.applied(findings, comments, source, codes, config, where)
    facts = project.facts(file)
    if suppression.names_project_rules(comments):
        facts["suppressions"] = True
    return Result(findings, suppressed, facts)


def unparsed(error: Exception, path: str) -> Finding:
    """The finding in a file that Python does not take."""
    line = getattr(error, "lineno", None) or 1
    column = max((getattr(error, "offset", None) or 1) - 1, 0)
    message = getattr(error, "msg", None) or str(error)
    return Finding("EMB001", f"does not parse: {message}", path, line, column, line, column + 1)


def module_of(path: str) -> tuple[str, str]:
    """The dotted names of a file's module and of the package that relative imports in it start from."""
    folder, name = os.path.split(path)
    package = _package_at(os.getcwd(), folder)
    stem = name[:-3] if name.endswith(".py") else name
    if stem == "__init__":
        return package, package
    return (f"{package}.{stem}" if package else stem), package


@cache
def _package_at(start: str, folder: str) -> str:
    """The package of a folder, as seen from another."""
    return _package(os.path.normpath(os.path.join(start, folder)))


@cache
def _package(folder: str) -> str:
    if not os.path.isfile(os.path.join(folder, "__init__.py")):
        return ""
    parent, name = os.path.split(folder)
    above = _package(parent)
    return f"{above}.{name}" if above else name
