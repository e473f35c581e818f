"""From a file to its findings: parse, one pass under the selected rules, suppressions."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from functools import cache
from typing import Any, NamedTuple

from emberlint import config as configuration
from emberlint import kinds, rules, suppress
from emberlint.config import Config
from emberlint.findings import Finding
from emberlint.flow import Check, File
from emberlint.source import Source

_DEPTH = 20_000


class Result(NamedTuple):
    """What linting one file gave: its findings, how many were suppressed, and the facts that project rules read."""

    findings: list[Finding]
    suppressed: int = 0
    facts: dict[str, Any] | None = None


@cache
def table(codes: tuple[str, ...], frontend: bool = True) -> dict[type, list[Check]]:
    """The checks of the selected rules, by what they subscribe to, for a frontend or for a file that has engines."""
    found: dict[type, list[Check]] = {}
    for code in codes:
        rule = rules.load(code)
        if not frontend and not rule.everywhere:
            continue
        for event, check in rule.checks:
            found.setdefault(event, []).append(check)
    return found


@cache
def selected(config: Config) -> tuple[str, ...]:
    """The codes that run under a configuration."""
    return tuple(rules.chosen(config.select, config.ignore))


@cache
def _trigger(namespace: str) -> re.Pattern[bytes]:
    names = [
        *kinds.ENGINES,
        "ember_ml",
        "ml_dtypes",
        "Tensor",
        "ndarray",
        "backend",
        re.escape(namespace.rpartition(".")[2]),
    ]
    return re.compile(b"|".join(name.encode() for name in names))


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
        return Result([_unparsed(error, path)] if "EMB001" in codes else [])
    from emberlint import project

    where = configuration.relative(path, config)
    layer = configuration.layer(where, config)
    file = File(
        source, tree, config, table(codes, layer is None), module=module, package=package, where=where, engines=layer
    )
    findings: list[Finding] = []
    if _trigger(config.namespace).search(source.data):
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEPTH)
        try:
            findings = file.run()
        except RecursionError:
            findings = [_unparsed(SyntaxError("too deeply nested"), path)]
        finally:
            sys.setrecursionlimit(limit)
    findings, suppressed = suppress.applied(findings, source, codes, config, where)
    facts = project.facts(file)
    if suppress.names_project_rules(source):
        facts["suppressions"] = True
    return Result(findings, suppressed, facts)


def _unparsed(error: Exception, path: str) -> Finding:
    line = getattr(error, "lineno", None) or 1
    column = max((getattr(error, "offset", None) or 1) - 1, 0)
    message = getattr(error, "msg", None) or str(error)
    return Finding("EMB001", f"does not parse: {message}", path, line, column, line, column + 1)


def module_of(path: str) -> tuple[str, str]:
    """The dotted names of a file's module and of the package that relative imports in it start from."""
    folder, name = os.path.split(os.path.abspath(path))
    package = _package(folder)
    stem = name[:-3] if name.endswith(".py") else name
    if stem == "__init__":
        return package, package
    return (f"{package}.{stem}" if package else stem), package


@cache
def _package(folder: str) -> str:
    if not os.path.isfile(os.path.join(folder, "__init__.py")):
        return ""
    parent, name = os.path.split(folder)
    above = _package(parent)
    return f"{above}.{name}" if above else name
