"""``Rule``, and the registry that loads rules by their code."""

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
    """A rule: its code, a hyphenated name, a short summary, and the kind of fix it has.

    ``fix`` is ``safe``, ``unsafe``, ``sometimes`` (safe or unsafe, depending on the code) or empty. Rules about purity
    and portability (EMB1 to EMB4) see only frontends unless they set ``everywhere``; the other rules see every file.
    ``files`` says which files a rule applies to, by their paths relative to the root.
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
        """Decorator that makes a function a check of the rule, for nodes and events of these classes.

        The check sees calls, attributes and names that ``named`` accepts, and only calls that match ``given``. If all
        checks set ``host``, only functions that may involve host values are visited.
        """

        def subscribe(check: Check) -> Check:
            self.checks += [Subscription(event, check, named, given, host) for event in events]
            return check

        return subscribe

    def project(self, check: Callable[[Project], None]) -> Callable[[Project], None]:
        """Decorator that makes a function the rule's check of a whole project."""
        self.project_check = check
        return check

    @property
    def optional(self) -> bool:
        """Whether the rule runs only when it is selected by its full code."""
        return self.code in optional_codes()


@cache
def load(code: str) -> Rule:
    """Rule with this code."""
    module = importlib.import_module(f"emberlint.rules.{rule_modules()[code]}")
    rule: Rule = module.RULE
    if rule.code != code:
        raise RuntimeError(f"{module.__file__} holds {rule.code}")
    rule.page = module.__doc__ or ""
    return rule
