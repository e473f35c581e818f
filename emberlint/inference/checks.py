"""The checks of rules, by what they subscribe to: node classes, the events below, and the names they can fire on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from emberlint.inference.file import File

# What calls are given, as bits; what checks of calls are about.
ALL = 0
KEYWORDS = 1
TENSORS = 2

# What all the checks of a file are about.
ANYTHING = "anything"
HOST_VALUES = "host values"
IMPORTS = "imports"

Check = Callable[[Any, "File"], None]
Named = Callable[[str], bool]


class Truth:
    """The event of an expression whose truth value is asked for: ``if``, ``while``, ``assert``, ``and``, ``not`` ..."""


class Annotation:
    """The event of an expression that annotates a parameter, a result or a variable."""


class Iteration:
    """The event of an expression that is iterated over: ``for``, comprehensions, unpacking."""


class Subscription(NamedTuple):
    """A check, the class of what it is shown, and what it is about.

    ``named`` says which names it can fire on; ``None`` is all of them. ``given`` says which calls: all of them, those
    with a keyword, or those with a tensor among their arguments. ``host`` says that it fires on NumPy arrays and Python
    numbers alone.
    """

    event: type
    check: Check
    named: Named | None = None
    given: int = ALL
    host: bool = False


class ByName(dict[str, tuple[Check, ...]]):
    """The checks that are about a name, found when the name is first met; ``prefix`` comes before each of them.

    ``given`` is what the calls have that the names are called in.
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

    ``on`` has them by node class or event. For calls, attributes and names they are found by name as well: ``calls``
    by the full name of an imported function (``numpy.sum``) or that of a built-in one, ``methods`` by the method's,
    each first by what the call is given: nothing of interest, ``KEYWORDS``, ``TENSORS`` or both;
    ``attributes`` and ``names`` by the full name of what they refer to, ``properties`` by the attribute's. ``subject``
    is the least that all of them are about: imports, host values, or anything.
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
