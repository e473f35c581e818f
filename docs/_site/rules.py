"""The pages of the rules of emberlint."""

from __future__ import annotations

import inspect
from pathlib import Path

from _site import ROOT
from ember_ml.tools.operations import table
from emberlint import rules
from emberlint.codes import rule_modules

_GROUPS = {
    "EMB0": "Files and suppressions",
    "EMB1": "Engines in the frontend",
    "EMB2": "Forced evaluation",
    "EMB3": "Code that differs by engine",
    "EMB4": "Measured differences",
    "EMB5": "Conformance of a package",
}


def pages() -> dict[str, str]:
    """Page of every rule, and their index, by document."""
    found = {f"rules/{code}": page(code) for code in rule_modules()}
    found["rules"] = _index()
    return found


def page(code: str) -> str:
    """Page of a rule: its docstring, with its properties."""
    rule = rules.load(code)
    title, _, rest = rule.page.strip().partition("\n")
    notes = [["fix", rule.fix or "none"], ["on by default", "no, select it by its code" if rule.optional else "yes"]]
    module = inspect.getmodule(rules.load)
    assert module is not None
    path = Path(str(module.__file__)).parent.joinpath(*rule_modules()[code].split(".")).with_suffix(".py")
    near = [other for other in rule_modules() if other[:4] == code[:4] and other != code]
    links = ", ".join(f"[{other}](/rules/{other}.md)" for other in near)
    return "\n".join(
        [
            f"# {rule.code}: {rule.name}\n",
            f"{title}\n",
            table(["", ""], notes),
            rest.strip(),
            "\n## See also\n",
            f"{_GROUPS[code[:4]]}: {links}. [emberlint](/emberlint.md) says how to run, select and suppress rules.\n",
            f"## Source\n\n{{source}}`{path.resolve().relative_to(ROOT)}:1`\n",
        ]
    )


def _index() -> str:
    parts = [
        f"# Rules of emberlint\n\n{len(rule_modules())} rules. `emberlint explain EMB203` prints the page of one; "
        "[emberlint](/emberlint.md) says how to run, select and suppress them.\n"
    ]
    for prefix, title in _GROUPS.items():
        found = [rules.load(code) for code in rule_modules() if code.startswith(prefix)]
        rows = [
            [
                f"[{r.code}](/rules/{r.code}.md)",
                f"`{r.name}`",
                r.summary,
                r.fix or "none",
                "no" if r.optional else "yes",
            ]
            for r in found
        ]
        parts += [f"## {prefix}: {title}\n", table(["rule", "name", "what it finds", "fix", "on by default"], rows)]
    parts += ["```{toctree}", ":hidden:", "", *(f"rules/{code}" for code in rule_modules()), "```", ""]
    return "\n".join(parts)
