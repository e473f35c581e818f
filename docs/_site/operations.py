"""The page of an operation."""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from _site import ROOT, parts
from _site.examples import Sessions
from _site.inventory import page_of
from ember_ml import backend as backends
from ember_ml import gradients, reference
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.dtypes import DTYPES, KINDS
from ember_ml.tools import LOCK, docstrings, measuring, mistakes
from ember_ml.tools.operations import table

_PROVIDERS = {"own": "its own function", "defined": "the definition", "missing": "missing"}


def page(operation: Operation, sessions: Mapping[str, Sessions]) -> str:
    """Page of an operation."""
    place = _place(operation)
    summary, text, arguments = parts.described(operation.call)
    others = reference.other_names(operation)
    body = [summary, text, f"Also named {_listed(f'`{name}`' for name in others)}." if others else ""]
    function = f":::{{py:function}} {place}.{operation.name}{parts.signature(operation.function)}\n\n"
    docname = page_of(operation)
    doc = operation.call.__doc__ or ""
    key = f"{operation.category}.{operation.name}"
    return "\n\n".join(
        part.strip("\n")
        for part in (
            f"# {operation.name}",
            function + "\n\n".join(filter(None, body)) + "\n:::",
            parts.options(operation.function, arguments),
            parts.example(docname, operation.call, parts.imported(doc, operation.name, place), sessions),
            _dtypes(operation),
            _engines(operation),
            _gradient(operation),
            parts.errors(key),
            parts.see_also(docname, [_link(other) for other in related(operation)]),
            parts.source(operation.function),
        )
        if part
    )


def _place(operation: Operation) -> str:
    return f"ember_ml.{mistakes.place(operation, operation.name)}"


def _link(operation: Operation) -> tuple[str, str, str]:
    return operation.name, page_of(operation), docstrings.summary(operation.call)


def _listed(items: Iterator[str]) -> str:
    *most, last = items
    return f"{', '.join(most)} and {last}" if most else last


@cache
def _matrix() -> dict[str, Any]:
    return measuring.read(LOCK)


def _measured(operation: Operation) -> dict[str, Any]:
    key = operation.name if REGISTRY.get(operation.name) is operation else f"{operation.category}.{operation.name}"
    found: dict[str, Any] = _matrix()["operations"].get(key, {}).get("engines", {})
    return found


def _dtypes(operation: Operation) -> str:
    """Section of the dtype rule: in words, and a row for each dtype."""
    if not operation.tensors:
        return "## Dtypes\n\nNo argument is a tensor, so no dtype rule applies."
    rule = operation.rule
    kinds = [kind for kind in operation.kinds if kind != "any"]
    accepted = f" Accepted are {' and '.join(kinds)} dtypes; others raise `TypeError`." if kinds else ""
    measured = _measured(operation)
    engines = [engine for engine in backends.OWN if measured.get(engine, {}).get("dtypes")]
    order = list(KINDS)
    rows = []
    for dtype in sorted(DTYPES.values(), key=lambda d: (order.index(d.kind), d.bits, d.name)):
        statuses = [measured[engine]["dtypes"].get(dtype.name, "") for engine in engines]
        if dtype.name not in operation.dtypes:
            rows.append([f"`{dtype.name}`", "`TypeError`", *statuses])
            continue
        result = "by its description" if rule.result is None else f"`{rule.result(dtype).name}`"
        rows.append([f"`{dtype.name}`", result, *statuses])
    columns = ["all tensors in", "result", *(parts.ENGINE_TITLES[engine] for engine in engines)]
    text = [
        "## Dtypes",
        f"The dtype rule is `{rule.name}`: {rule.sentence[0].lower()}{rule.sentence[1:]}{accepted} "
        "[Semantics](/semantics.md#promotion) has the promotion table.",
        table(columns, rows),
    ]
    if engines:
        text.append(
            "The columns of engines were [measured](/matrix.md): `same` is the value, dtype and shape of NumPy, "
            "`refused` an error on every engine, `unsupported` an `UnsupportedError` of this engine."
        )
    return "\n\n".join(text)


def _engines(operation: Operation) -> str:
    """Section of who computes, and of what was measured to differ."""
    measured = _measured(operation)
    rows = []
    for name in backends.OWN:
        engine = backends.load(name)
        found = measured.get(name)
        status = f"{found['status']} in {found['cases']} calls" if found else "not measured yet"
        status = "the reference" if name == "numpy" else status
        rows.append([parts.ENGINE_TITLES[name], _provided(operation, engine), status])
    lines = ["## Engines", table(["engine", "computed by", "measured"], rows)]
    if operation.definition is not None:
        lines.append("The definition is the body of the function in `ember_ml/ops/`, composed of other operations.")
    if operation.returns_numpy:
        lines.append("The result is a NumPy array on every engine.")
    if not operation.lazy:
        lines.append("The shape of the result depends on the data, so compilers cannot trace it.")
    different = [(name, one) for name, found in measured.items() for one in found["differences"]]
    if different:
        rows = [
            [parts.ENGINE_TITLES[name], _code(one["input"]), _code(one["reference"]), _code(one["engine"])]
            for name, one in different
        ]
        lines += ["Calls whose result differs, of those that were measured:"]
        lines += [table(["engine", "call", "NumPy", "this engine"], rows)]
    return "\n\n".join(lines)


def _code(text: object) -> str:
    return f"`{str(text).replace('`', chr(39))}`" if str(text) else ""


def _provided(operation: Operation, engine: Backend) -> str:
    """Who computes an operation on an engine, with the name of the function if it has one."""
    provider = engine.provider(operation)
    if provider != "own":
        return _PROVIDERS[provider]
    function = engine.implementation(operation)
    module = getattr(function, "__module__", None) or ""
    if module.startswith("ember_ml."):
        try:
            path, line = parts.place(function)
        except (OSError, TypeError, ValueError, AssertionError):
            return _PROVIDERS[provider]
        return f"{{source}}`{path}:{line}`"
    name = getattr(function, "__name__", "")
    root = {"jax._src.numpy": "jax.numpy", "jax._src.lax": "jax.lax"}
    for private, public in root.items():
        if module.startswith(private):
            module = public
    if not name or not name.isidentifier() or module.startswith(("_", "jax._src")) or not module:
        module = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core", "jax": "jax.numpy"}[engine.name]
        name = name if hasattr(importlib.import_module(module), name or "-") else ""
    return f"`{module}.{name}`" if name else _PROVIDERS[provider]


def _gradient(operation: Operation) -> str:
    """Section of the gradient: whether there is one, and where it comes from."""
    if not operation.differentiable:
        text = "No gradient is defined: the result does not depend on the values, or is constant almost everywhere."
        return f"## Gradient\n\n{text}"
    if not operation.tensors:
        return ""
    rule = gradients.rule_of(operation)
    if rule is None:
        if operation.definition is None:
            return "## Gradient\n\nEach engine differentiates its own function."
        return "## Gradient\n\nIt follows from the operations that the definition is composed of."
    path = f"ember_ml/gradients/{operation.category}.py"
    text = (
        f"The rule is in {{source}}`{path}:{_line_of(path, operation.name)}`. It is written in operations, so that it "
        "can be differentiated again. It serves NumPy, and engines that do not differentiate their own function."
    )
    by_place = getattr(rule, "by_place", {})
    without = [p.name for i, p in enumerate(operation.parameters) if by_place.get(i, by_place) is None and p.role]
    if without:
        text += f" No gradient flows to {_listed(f'`{name}`' for name in without)}."
    corners = "[Semantics](/semantics.md#gradients-at-corners) says what it is at corners."
    return f"## Gradient\n\n{text} {corners}"


def _line_of(path: str, name: str) -> int:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return next((i for i, line in enumerate(lines, 1) if f'"{name}"' in line), 1)


@cache
def _mentions() -> dict[str, set[str]]:
    """Operations that the docstring or the body of each operation names, by document."""
    found = {}
    for operation in REGISTRY.values():
        words = set(re.findall(r"``(\w+)", inspect.getdoc(operation.call) or ""))
        if operation.definition is not None:
            words |= set(operation.definition.__code__.co_names)
        parameters = set(inspect.signature(operation.function).parameters)
        found[page_of(operation)] = {word for word in words - parameters if word in REGISTRY and word != operation.name}
    return found


@cache
def _order() -> dict[str, int]:
    return {page_of(operation): i for i, operation in enumerate(REGISTRY.values())}


def related(operation: Operation, count: int = 8) -> list[Operation]:
    """Operations that readers may look for next: mentioned on this page, of a similar name, or next in the source."""
    here, mentions, order = page_of(operation), _mentions(), _order()
    scores: list[tuple[float, int, Operation]] = []
    for other in REGISTRY.values():
        if other is operation:
            continue
        there = page_of(other)
        score = 4.0 * (other.name in mentions[here])
        same = operation.category == other.category
        # Basic operations are in the body of many.
        score += 2.0 * (operation.name in mentions[there] and same)
        score += 3.0 * (same and _likeness(operation.name, other.name))
        score += 2.0 * bool(_words(operation) & _words(other))
        score += 1.0 * (same and abs(order[here] - order[there]) <= 2)
        score += 0.5 * (same and operation.rule is other.rule)
        if score >= 1.0:
            scores.append((-score, order[there], other))
    return [other for _, _, other in sorted(scores, key=lambda item: item[:2])[:count]]


def _shared(name: str, other: str) -> int:
    """Number of letters that two names begin with."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))


def _likeness(name: str, other: str) -> float:
    """Part of the longer name that both have at their beginning or end, if that is at least four letters."""
    shared = max(_shared(name, other), _shared(name[::-1], other[::-1]))
    return shared / max(len(name), len(other)) if shared >= 4 else 0.0


_COMMON = {"random", "from", "like", "to", "is", "index", "compute", "get", "set", "all", "by", "of"}


def _words(operation: Operation) -> set[str]:
    return {word for word in operation.name.split("_") if len(word) > 2} - _COMMON


def category_page(category: str, names: Sequence[str]) -> str:
    """Index page of a category."""
    shown = reference.category_parts(category, lambda operation: f"[`{operation.name}`](/{page_of(operation)}.md)")
    tree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    return "\n".join([f"# {category}\n", *shown, tree, ""])


def index_page(categories: Sequence[str]) -> str:
    """Index page of all operations."""
    rows = []
    for category in categories:
        module = importlib.import_module(f"ember_ml.ops.{category}")
        count = sum(operation.category == category for operation in REGISTRY.values())
        rows.append([f"[{category}](/operations/{category}/index.md)", str(count), docstrings.summary(module)])
    text = (
        f"# Operations\n\n{len(REGISTRY)} operations, each with a page: its signature, its dtypes, an example with the "
        "result on each engine, its implementation on each, what was measured, its gradient and its errors. Every one "
        "is `ember_ml.ops.<name>`.\n"
    )
    tree = "\n".join(["```{toctree}", ":hidden:", "", *(f"operations/{name}/index" for name in categories), "```"])
    return "\n".join(
        [
            text,
            table(["category", "operations", "what it has"], rows),
            "## Implementations by engine\n",
            "`own functions` are those of the engine, `definitions` are composed of other operations.\n",
            reference.providers(),
            "## All operations\n",
            *(_row_of_links(category) for category in categories),
            tree,
            "",
        ]
    )


def _row_of_links(category: str) -> str:
    links = [f"[`{o.name}`](/{page_of(o)}.md)" for o in REGISTRY.values() if o.category == category]
    return f"**{category}**: {' '.join(links)}\n"
