"""A rule, as its module defines it and as the registry finds it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from emberlint.codes import optional_codes, rule_modules
from emberlint.inference.checks import ALL, Check, Named, Subscription

if TYPE_CHECKING:
    from emberlint.inference.project import Project


class Rule:
    """A rule: its code, a name of words and hyphens, its subject in a few words, and the best fix it has.

    ``fix`` is ``safe``, ``unsafe``, ``sometimes`` (safe or not, as the case is) or empty. Rules about purity and
    portability (EMB1 to EMB4) see frontends only, but for those that say ``everywhere``; the others see every file.
    ``files`` says which files a rule is about, by their paths relative to the root.
    """

    def __init__(
        self,
        code: str,
        name: str,
        summary: str,
        *,
        fix: str = "",
        everywhere: bool = False,
        files: Callable[[str], bool] | None = None,
    ) -> None:
        self.code = code
        self.name = name
        self.summary = summary
        self.fix = fix
        self.everywhere = everywhere or not code.startswith(("EMB1", "EMB2", "EMB3", "EMB4"))
        self.files = files
        self.checks: list[Subscription] = []
        self.project_check: Callable[[Project], None] | None = None
        self.facts: Callable[[Any], Any] | None = None
        self.page = ""

    def on(
        self, *events: type, named: Named | None = None, given: int = ALL, host: bool = False
    ) -> Callable[[Check], Check]:
        """A decorator that makes a function a check of the rule, for nodes and events of these classes.

        Of calls, attributes and names, it is shown those that ``named`` accepts, and calls only if they have what
        ``given`` says. Where all checks say ``host``, only functions that can have to do with host values are visited.
        """

        def subscribe(check: Check) -> Check:
            self.checks += [Subscription(event, check, named, given, host) for event in events]
            return check

        return subscribe

    def project(self, check: Callable[[Project], None]) -> Callable[[Project], None]:
        """A decorator that makes a function the rule's check of a whole project."""
        self.project_check = check
        return check

    @property
    def optional(self) -> bool:
        """Whether it runs only when it is selected by its whole code."""
        return self.code in optional_codes()


@cache
def load(code: str) -> Rule:
    """The rule with a code."""
    module = importlib.import_module(f"emberlint.rules.{rule_modules()[code]}")
    rule: Rule = module.RULE
    if rule.code != code:
        raise RuntimeError(f"{module.__file__} holds {rule.code}")
    rule.page = module.__doc__ or ""
    return rule
