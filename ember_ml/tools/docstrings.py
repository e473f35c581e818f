"""Parts of docstrings, for the pages that are generated from them."""

from __future__ import annotations

import inspect
import re
from typing import Any

_OPTION = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def summary(thing: Any) -> str:
    """First line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def parsed(thing: Any) -> tuple[str, list[tuple[str, str]]]:
    """Text and arguments of a docstring of its own, without its examples."""
    # An inherited method has the docstring of its class, an inherited class docstring is none.
    doc = inspect.cleandoc(thing.__doc__ or "")
    body = doc.partition("\n>>>")[0]
    text, _, options = body.partition("Args:\n")
    return text.strip(), [(name, re.sub(r"\s+", " ", said).strip()) for name, said in _OPTION.findall(options)]


def described(thing: Any) -> tuple[str, list[tuple[str, str]]]:
    """Text and arguments of a docstring; the arguments are those of a base class if it has none of its own."""
    text, arguments = parsed(thing)
    if inspect.isclass(thing):
        for base in inspect.getmro(thing)[1:-1] if not arguments else ():
            arguments = arguments or parsed(base)[1]
        known = {parameter.lstrip("*") for parameter in inspect.signature(thing).parameters}
        arguments = [(name, said) for name, said in arguments if set(name.split(", ")) & known]
    return text, arguments
