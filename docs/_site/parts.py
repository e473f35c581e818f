"""Parts that several kinds of generated pages have, as MyST Markdown."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from _site import ROOT
from _site.examples import Sessions
from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.tools import docstrings, mistakes

ENGINE_TITLES = {"numpy": "NumPy", "torch": "PyTorch", "mlx": "MLX", "jax": "JAX"}


class _Text:
    """Annotation that is shown as it is written in the source."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature(function: Callable[..., Any], *, method: bool = False) -> str:
    """Signature with annotations as in the source; without ``self`` for a method."""
    found = inspect.signature(function)
    parameters = [p.replace(annotation=_written(p.annotation)) for p in found.parameters.values()]
    if method:
        parameters = parameters[1:]
    result = _written(found.return_annotation)
    if inspect.isclass(function):
        result = inspect.Signature.empty
    text = str(inspect.Signature(parameters, return_annotation=result))
    # Default values without a literal, such as an instance of a class.
    return re.sub(r"=\s*<([\w.]+)[^>]*>", r"=\1", text)


def _written(annotation: Any) -> Any:
    if annotation is inspect.Signature.empty:
        return annotation
    return _Text(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def markdown(text: str) -> str:
    """Text of a docstring as Markdown: indented literal blocks become fences."""
    return re.sub(
        r"::\n\n((?:    .*\n?|\n)+)", lambda match: f":\n\n```text\n{inspect.cleandoc(match[1])}\n```\n\n", text
    )


def options(thing: Any, arguments: Sequence[tuple[str, str]]) -> str:
    """Section of the options."""
    return f"## Options\n\n{option_list(thing, arguments)}" if arguments else ""


def option_list(thing: Any, arguments: Sequence[tuple[str, str]]) -> str:
    """Options of a function or class, with their types and defaults."""
    parameters = inspect.signature(thing).parameters
    lines = []
    for names, text in arguments:
        found = [parameters[name] for name in names.split(", ") if name in parameters]
        shown = ", ".join(f"`{name}`" for name in names.split(", "))
        notes = []
        if found and found[0].annotation is not inspect.Parameter.empty:
            notes.append(f"`{_written(found[0].annotation)}`")
        defaults = [repr(p.default) for p in found if p.default is not inspect.Parameter.empty]
        if defaults and not any(default.startswith("<") for default in defaults):
            notes.append(f"default {' and '.join(f'`{default}`' for default in dict.fromkeys(defaults))}")
        lines.append(f"{shown}{' (' + ', '.join(notes) + ')' if notes else ''}\n: {text}\n")
    return "\n".join(lines)


def example(docname: str, thing: Any, imports: str, sessions: Mapping[str, Sessions]) -> str:
    """Section of the example: as in the docstring, and its results on each engine."""
    shown = inspect.cleandoc(thing.__doc__ or "")
    if ">>>" not in shown:
        return ""
    text = ">>>" + shown.partition(">>>")[2]
    # What follows the examples of some docstrings is prose.
    text = re.split(r"\n\n(?!>>>)", text)[0]
    parts = ["## Example\n", f"```pycon\n{imports}{text}\n```\n"]
    parts += ["The same lines on each engine, with its own tensors:\n", "::::{tab-set}\n:sync-group: engine\n"]
    for engine, found in sessions.items():
        lines = "".join(_prompted(source) + output for source, output in found[docname])
        parts += [f":::{{tab-item}} {ENGINE_TITLES.get(engine, engine)}\n:sync: {engine}\n"]
        parts += [f"```pycon\n{lines}```\n:::\n"]
    return "\n".join([*parts, "::::\n"])


def _prompted(source: str) -> str:
    first, *rest = source.rstrip("\n").split("\n")
    return f">>> {first}\n" + "".join(f"... {line}\n" for line in rest)


def imported(source: str, name: str, place: str) -> str:
    """Line of a session that imports the operations that an example uses."""
    tree = [ast.parse(line) for line in _sources(source)]
    used = {node.id for part in tree for node in ast.walk(part) if isinstance(node, ast.Name)}
    shared = sorted(used & {key for key, value in vars(ops).items() if hasattr(value, "__operation__")} - {name})
    lines = []
    if "ember_ml" in used:
        lines.append("import ember_ml")
    if "ops" in used:
        lines.append("from ember_ml import ops")
    if place == "ember_ml.ops":
        shared = sorted({*shared, *({name} & used)})
    elif name in used:
        lines.append(f"from {place} import {name}")
    if shared:
        lines.append(f"from ember_ml.ops import {', '.join(shared)}")
    return "".join(f">>> {line}\n" for line in lines)


def _sources(docstring: str) -> list[str]:
    return [example.source for example in doctest.DocTestParser().get_examples(docstring)]


@cache
def _samples() -> dict[str, list[mistakes.Sample]]:
    found: dict[str, list[mistakes.Sample]] = {}
    for sample in mistakes.samples():
        found.setdefault(f"{sample.section}.{sample.subject}", []).append(sample)
        found.setdefault(sample.subject, []).append(sample)
    return found


def errors(*keys: str) -> str:
    """Section of samples of wrong use, from the page of messages: by subject, or by section and subject."""
    found = next((_samples()[key] for key in keys if key in _samples()), [])
    if not found:
        return ""
    with use_backend("numpy"):
        rows = [mistakes.row(sample) for sample in found]
    if any("`*" in row for row in rows):
        rows.append("\nA message marked \\* names or quotes the engine.")
    return "\n".join(["## Errors\n", "| call | error |\n| --- | --- |", *rows, ""])


def see_also(docname: str, links: Iterable[tuple[str, str, str]]) -> str:
    """Section of links to other documents: of each its title, its document and one line."""
    lines = [f"- [`{title}`](/{target}.md): {said}" for title, target, said in links if target != docname]
    return "\n".join(["## See also\n", *lines, ""]) if lines else ""


def source(thing: Any) -> str:
    """Link to the line of the source that defines something."""
    path, line = place(thing)
    return f"## Source\n\n{{source}}`{path}:{line}`\n"


def place(thing: Any) -> tuple[str, int]:
    """File and line of a definition; the file is relative to the repository."""
    thing = inspect.unwrap(thing)
    if inspect.isclass(thing) and not _is_written(thing):
        # Activations are made from functions of this module.
        module = inspect.getmodule(thing)
        assert module is not None
        return str(Path(str(module.__file__)).resolve().relative_to(ROOT)), 1
    path = inspect.getsourcefile(thing)
    assert path is not None, thing
    return str(Path(path).resolve().relative_to(ROOT)), inspect.getsourcelines(thing)[1]


def _is_written(thing: Any) -> bool:
    try:
        inspect.getsource(thing)
    except OSError:
        return False
    return True


def described(thing: Any) -> tuple[str, str, list[tuple[str, str]]]:
    """Summary, further text and arguments of a docstring."""
    text, arguments = docstrings.described(thing)
    first, _, rest = text.partition("\n")
    return first, markdown(rest.strip()), arguments
