"""``emberlint explain``: print the page of a rule."""

from __future__ import annotations

import sys

from emberlint import rules
from emberlint.codes import rule_modules
from emberlint.commands.options import Parser, suggestion
from emberlint.commands.status import CLEAN


def main(arguments: list[str]) -> int:
    """Print the pages of rules and return the exit status."""
    made = Parser(prog="emberlint explain", description="Print the page of a rule.")
    made.add_argument("code", metavar="CODE", nargs="+", help="code or name of a rule, such as EMB203 or truth-value")
    codes = made.parse_args(arguments).code
    named = any(code.upper() not in rule_modules() for code in codes)
    names = {rules.load(code).name: code for code in rule_modules()} if named else {}
    for given in codes:
        code = names.get(given, given.upper())
        if code not in rule_modules():
            hint = suggestion(given, names) or "; run `emberlint rules` for a list"
            made.error(f"CODE must be a rule, got {given}{hint}")
        rule = rules.load(code)
        title, _, rest = rule.page.strip().partition("\n")
        notes = [f"fix: {rule.fix or 'none'}", f"opt-in: --select {code}" if rule.optional else "on by default"]
        sys.stdout.write(f"# {rule.code} {rule.name}\n\n{title} ({'; '.join(notes)})\n{rest}\n")
    return CLEAN
