"""Lint one file: parse it, run the selected rules in one pass, apply suppressions."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NamedTuple

from emberlint import config as configuration
from emberlint.config import ENGINES, Config
from emberlint.findings import Finding
from emberlint.inference import traversal
from emberlint.inference.state import State
from emberlint.lint import suppression
from emberlint.lint.selection import checks_for, selected
from emberlint.rewrite.constants import array_constants, is_of_ember_tensors, without_constants
from emberlint.source.text import Source
from emberlint.source.tree import PARSE_ERRORS, parse

_DEPTH = 20_000


class Result(NamedTuple):
    """Result of linting one file: findings, number of suppressed ones, and the facts that project rules read."""

    findings: list[Finding]
    suppressed: int = 0
    facts: dict[str, Any] | None = None


@cache
def _triggers(namespace: str) -> tuple[bytes, ...]:
    names = (namespace.rpartition(".")[2], "backend", *ENGINES, "Tensor", "ndarray", "ember_ml", "ml_dtypes")
    return tuple(name.encode() for name in names)


def _is_of_interest(data: bytes, config: Config) -> bool:
    """Whether a text mentions a name that a rule could apply to."""
    return any(name in data for name in _triggers(config.namespace))


def lint(data: bytes, path: str, config: Config, *, module: str = "", package: str = "") -> Result:
    """Findings in a file's bytes, after suppressions."""
    codes = selected(config)
    try:
        state = prepare(data, path, config, module=module, package=package)
    except PARSE_ERRORS as error:
        return Result([parse_finding(error, path)] if "EMB001" in codes else [])
    from emberlint.inference import project

    source = state.source
    findings = visit(state) if _is_of_interest(source.data, config) else []
    if findings and is_of_ember_tensors(state):
        findings = without_constants(findings, state, array_constants(state, frozenset({"*"})))
    comments = suppression.comments(source)
    findings, suppressed = suppression.applied(findings, comments, source, codes, config, state.where)
    facts = project.facts(state)
    if suppression.names_project_rules(comments):
        facts["suppressions"] = True
    return Result(findings, suppressed, facts)


def prepare(
    data: bytes, path: str, config: Config, *, module: str = "", package: str = "", thorough: bool = False
) -> State:
    """State of a file before the pass, with the selected checks; raises ``PARSE_ERRORS`` if it does not parse."""
    source = Source(data, path)
    tree = parse(source)
    where = configuration.relative(path, config)
    layer = configuration.layer(where, config)
    checks = checks_for(selected(config), where, layer is None)
    return State(
        source, tree, config, checks, module=module, package=package, where=where, engines=layer, thorough=thorough
    )


def visit(state: State) -> list[Finding]:
    """Run the pass over a file and return its findings; a single EMB001 if the file is nested too deeply."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEPTH)
    try:
        return traversal.run(state)
    except RecursionError:
        return [parse_finding(SyntaxError("too deeply nested"), state.source.path)]
    finally:
        sys.setrecursionlimit(limit)


def parse_finding(error: Exception, path: str) -> Finding:
    """Finding for a file that does not parse."""
    line = getattr(error, "lineno", None) or 1
    column = max((getattr(error, "offset", None) or 1) - 1, 0)
    message = getattr(error, "msg", None) or str(error)
    return Finding("EMB001", f"does not parse: {message}", path, line, column, line, column + 1)
