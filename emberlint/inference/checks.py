"""Checks of rules, indexed by what they subscribe to: node classes, the events below, and names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from emberlint.inference.file import File

# Bits of the arguments of a call; a check of calls subscribes to a combination of them.
ALL = 0
KEYWORDS = 1
TENSORS = 2

# Values of ``Checks.subject``.
ANYTHING = "anything"
HOST_VALUES = "host values"
IMPORTS = "imports"

Check = Callable[[Any, "File"], None]
Named = Callable[[str], bool]


class Truth:
    """Event: the truth value of an expression is tested (``if``, ``while``, ``assert``, ``and``, ``not`` ...)."""


class Annotation:
    """Event: an expression annotates a parameter, a result or a variable."""


class Iteration:
    """Event: an expression is iterated over (``for``, comprehensions, unpacking)."""


class Subscription(NamedTuple):
    """A check, and the node class or event that it subscribes to.

    ``named`` accepts the names that it applies to; ``None`` accepts all. ``given`` restricts it to calls with a keyword
    or with a tensor argument. ``host`` means that it reports only NumPy arrays and Python numbers.
    """

    event: type
    check: Check
    named: Named | None = None
    given: int = ALL
    host: bool = False


class ByName(dict[str, tuple[Check, ...]]):
    """Checks by name, computed on first use of a name.

    ``prefix`` is put before each name; ``given`` are the argument bits of the calls.
    """

    def __init__(self, subscriptions: Iterable[Subscription], prefix: str = "", given: int = ALL) -> None:
        self.subscriptions = [one for one in subscriptions if one.given & given == one.given]
        self.prefix = prefix

    def __missing__(self, name: str) -> tuple[Check, ...]:
        full = self.prefix + name
        found = tuple(one.check for one in self.subscriptions if one.named is None or one.named(full))
        self[name] = found
        return found


class Checks:
    """The checks of some rules.

    ``on`` has them by node class or event. Checks of calls, attributes and names are also indexed by name: ``calls`` by
    the full name of an imported function (``numpy.sum``) or the name of a built-in one, ``methods`` by the name of the
    method, both first by the argument bits of the call; ``attributes`` and ``names`` by the full name of the object,
    ``properties`` by the name of the attribute. ``subject`` is the narrowest of imports, host values and anything that
    covers all checks.
    """

    __slots__ = ("attributes", "calls", "methods", "names", "on", "properties", "subject")

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self.on: dict[type, list[Check]] = {}
        subscriptions = tuple(subscriptions)
        others = [one for one in subscriptions if one.event is not ast.Import and one.event is not ast.ImportFrom]
        self.subject = ANYTHING
        if subscriptions and all(one.host for one in others):
            self.subject = HOST_VALUES if others else IMPORTS
        by_event: dict[type, list[Subscription]] = {ast.Call: [], ast.Attribute: [], ast.Name: []}
        for subscription in subscriptions:
            self.on.setdefault(subscription.event, []).append(subscription.check)
            if subscription.event in by_event:
                by_event[subscription.event].append(subscription)
        every = (ALL, KEYWORDS, TENSORS, KEYWORDS | TENSORS)
        self.calls = [ByName(by_event[ast.Call], "", given) for given in every]
        self.methods = [ByName(by_event[ast.Call], ".", given) for given in every]
        self.attributes = ByName(by_event[ast.Attribute])
        self.properties = ByName(by_event[ast.Attribute], ".")
        self.names = ByName(by_event[ast.Name])


NONE = Checks()
