"""The pages of layers, optimizers, metrics and the other classes and functions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from _site import parts
from _site.examples import Sessions
from _site.inventory import Entry, Group
from ember_ml import nn
from ember_ml.tools import docstrings
from ember_ml.tools.layers import without_self
from ember_ml.tools.operations import table

_MAX_RELATED = 8


def pages(group: Group, sessions: Mapping[str, Sessions]) -> dict[str, str]:
    """Pages of a group, and their index, by document."""
    found = {}
    for section in group.sections.values():
        for entry in section:
            found[entry.docname] = page(entry, section, sessions)
    found[index_name(group)] = _index(group)
    return found


def index_name(group: Group) -> str:
    """Document of the index of a group."""
    return group.folder if group.folder == "layers" else f"{group.folder}/index"


def page(entry: Entry, section: list[Entry], sessions: Mapping[str, Sessions]) -> str:
    """Page of a class or a function, whose neighbors are the rest of its section."""
    thing = entry.thing
    summary, text, arguments = parts.described(thing)
    kind = "class" if inspect.isclass(thing) else "function"
    other = f"Also named {', '.join(f'`{name}`' for name in entry.other_names)}." if entry.other_names else ""
    head = f":::{{py:{kind}}} {entry.name}{_signature(thing)}\n\n"
    imports = f">>> from {entry.name.rpartition('.')[0]} import {entry.title}\n"
    if "import" in (thing.__doc__ or "").partition(">>>")[2].partition("\n")[0]:
        imports = ""
    names = [e for e in section if e is not entry]
    near = sorted(names, key=lambda e: abs(section.index(e) - section.index(entry)))[:_MAX_RELATED]
    return "\n\n".join(
        part.strip("\n")
        for part in (
            f"# {entry.title}",
            head + "\n\n".join(filter(None, [summary, text, other])) + "\n:::",
            parts.options(thing, arguments),
            _call(thing),
            _methods(thing),
            parts.example(entry.docname, thing, imports, sessions),
            parts.errors(entry.title),
            parts.see_also(entry.docname, [(e.title, e.docname, docstrings.summary(e.thing)) for e in near]),
            parts.source(thing),
        )
        if part
    )


def _signature(thing: Any) -> str:
    return "()" if thing is nn.Module else parts.signature(thing)


def _call(thing: Any) -> str:
    """Section of what a layer is called with."""
    if not (inspect.isclass(thing) and issubclass(thing, nn.Module)) or thing.forward is nn.Module.forward:
        return ""
    text, arguments = docstrings.parsed(thing.forward)
    lines = ["## Call", f"```python\nlayer{parts.signature(thing.forward, method=True)}\n```", parts.markdown(text)]
    lines += ["\n".join(f"- `{name}`: {said}" for name, said in arguments)]
    return "\n\n".join(filter(None, lines))


def _methods(thing: Any) -> str:
    """Section of the public methods and properties, and the options of each method that has some."""
    found = _public_methods(thing)
    if not found:
        return ""
    rows = []
    for name, value in found.items():
        shown = name if isinstance(value, property) else f"{name}{without_self(value)}"
        rows.append([f"`{shown}`", docstrings.summary(value)])
    details = [_method(name, value) for name, value in found.items() if docstrings.parsed(value)[1]]
    return "\n\n".join(["## Methods", table(["method", "what it does"], rows), *details])


def _public_methods(thing: Any) -> dict[str, Any]:
    """Documented methods and properties, those of base classes in this library included.

    Those that every layer has are on the page of ``Module``, and ``forward`` is the section on calls.
    """
    if not inspect.isclass(thing):
        return {}
    of_layers = set(dir(nn.Module)) if issubclass(thing, nn.Module) and thing is not nn.Module else set()
    found = {}
    for base in reversed(inspect.getmro(thing)):
        for name, value in vars(base).items() if base.__module__.startswith("ember_ml.") else ():
            is_shown = isinstance(value, property) or inspect.isfunction(value)
            if is_shown and not name.startswith("_") and name not in of_layers and docstrings.summary(value):
                found[name] = value
    return found


def _method(name: str, method: Any) -> str:
    """Section of a method with options."""
    text, arguments = docstrings.parsed(method)
    head = f"### {name}\n\n```python\n{name}{parts.signature(method, method=True)}\n```"
    return "\n\n".join([head, parts.markdown(text), parts.option_list(method, arguments)])


def _index(group: Group) -> str:
    lines = [f"# {group.title}\n", f"{group.text}\n"]
    for title, entries in group.sections.items():
        rows = [[f"[`{e.title}`](/{e.docname}.md)", docstrings.summary(e.thing)] for e in entries]
        lines += [f"## {title}\n"] if len(group.sections) > 1 else []
        lines += [table(["name", "what it is"], rows)]
    docs = [e.docname for e in group.entries]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *(f"/{name}" for name in docs), "```", ""])
