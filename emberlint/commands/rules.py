"""``emberlint rules``: list all rules."""

from __future__ import annotations

import json
import sys

from emberlint import rules
from emberlint.codes import rule_modules
from emberlint.commands.options import Parser
from emberlint.commands.status import CLEAN


def main(arguments: list[str]) -> int:
    """Print every rule and return the exit status."""
    made = Parser(prog="emberlint rules", description="List every rule.")
    made.add_argument("--json", action="store_true", help="print a JSON list of objects")
    options = made.parse_args(arguments)
    table = [rules.load(code) for code in rule_modules()]
    if options.json:
        keys = ("code", "name", "summary", "fix", "optional")
        sys.stdout.write(json.dumps([{key: getattr(rule, key) for key in keys} for rule in table], indent=2) + "\n")
        return CLEAN
    width = max(len(rule.name) for rule in table)
    for rule in table:
        note = f"fix: {rule.fix}" if rule.fix else ""
        note = f"{note}; opt-in" if rule.optional and note else "opt-in" if rule.optional else note
        sys.stdout.write(f"{rule.code}  {rule.name:<{width}}  {rule.summary}{f' ({note})' if note else ''}\n")
    return CLEAN
