"""Codes of the rules, from the names of their files: ``emb101_backend_import.py`` holds EMB101."""

from __future__ import annotations

import os
import re
from functools import cache

_FOLDER = os.path.join(os.path.dirname(__file__), "rules")
_FILE = re.compile(r"(emb\d{3})_\w+\.py")


@cache
def rule_modules() -> dict[str, str]:
    """Module of each rule under ``emberlint.rules``, by code."""
    found = {}
    for prefix, folder in (("", _FOLDER), ("opt_in.", os.path.join(_FOLDER, "opt_in"))):
        for name in os.listdir(folder):
            match = _FILE.fullmatch(name)
            if match:
                found[match[1].upper()] = prefix + name[:-3]
    return dict(sorted(found.items()))


@cache
def optional_codes() -> frozenset[str]:
    """Codes of the opt-in rules, which are in the folder ``opt_in``."""
    return frozenset(code for code, module in rule_modules().items() if module.startswith("opt_in."))


def chosen_codes(select: tuple[str, ...], ignore: tuple[str, ...]) -> list[str]:
    """Codes that a selection of codes and prefixes (``EMB2``) matches; opt-in rules only by their full code.

    >>> chosen_codes(("EMB310",), ())
    ['EMB310']
    """
    found = []
    for code in rule_modules():
        exact = code in select or "ALL" in select
        if not (exact or code.startswith(select)) or (ignore and code.startswith(ignore)):
            continue
        if exact or code not in optional_codes():
            found.append(code)
    return found
