"""Where the calls of a test, before and after a port, diverge."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from emberlint.trial.differences import TOLERANCES, Difference, difference, type_difference

Record = dict[str, Any]

# Calls after the first one that has no partner in which the sequences are aligned again.
_WINDOW = 200


class Divergence(NamedTuple):
    """A call that has another result after the port: its records, what differs, and the tolerance of the comparison."""

    before: Record
    after: Record
    what: str
    difference: Difference
    tolerance: float

    def is_rounding(self) -> bool:
        """Whether the values differ only in their last digits."""
        return self.tolerance == TOLERANCES[-1]

    def raises(self) -> bool:
        """Whether it is the call that raises an exception after the port; its traceback has the line."""
        return bool(self.before["result"]["kind"] != "error" and self.after["result"]["kind"] == "error")

    def call(self, place: int) -> tuple[str, str, int]:
        """File, name and number of the call, before (0) or after (1) the port."""
        record = (self.before, self.after)[place]
        return record["file"], record["function"], record["index"]


class Step(NamedTuple):
    """The line of a function after which a variable differs: ``variable`` is empty if another branch is taken."""

    line: int
    variable: str
    difference: Difference | None


def divergence(before: list[Record], after: list[Record]) -> Divergence | None:
    """First call whose arguments agree and whose result differs, or its arguments after the call.

    Differences that tests notice come before those of the last digits.
    """
    pairs = list(aligned(before, after))
    for tolerance in TOLERANCES:
        for left, right in pairs:
            if _of_arguments(left, right, tolerance):
                continue
            if found := difference(left["result"], right["result"], tolerance):
                return Divergence(left, right, "result", found, tolerance)
            for name in left["changed"].keys() | right["changed"].keys():
                one, other = (record["changed"].get(name, record["given"][name]) for record in (left, right))
                if found := difference(one, other, tolerance):
                    return Divergence(left, right, name, found, tolerance)
    return None


def other_arguments(before: list[Record], after: list[Record]) -> Divergence | None:
    """First call from outside of the package with other arguments."""
    for left, right in aligned(before, after):
        if right["outer"] and (found := _of_arguments(left, right, TOLERANCES[0])):
            return Divergence(left, right, *found, TOLERANCES[0])
    return None


def other_types(before: list[Record], after: list[Record]) -> Divergence | None:
    """Last call from outside of the package whose result has another dtype or, if there is none, another type."""
    last = None
    for left, right in aligned(before, after):
        found = type_difference(left["result"], right["result"]) if right["outer"] else None
        if found:
            last = Divergence(left, right, "type", found, 0.0)
    return last


def stable(records: list[Record], again: list[Record]) -> list[Record]:
    """Calls without those of functions whose result differs in a second run: an ``id``, a time, a random number."""
    unstable = {
        (one["file"], one["function"])
        for one, other in aligned(records, again)
        if difference(one["result"], other["result"], 0.0) and not _of_arguments(one, other, 0.0)
    }
    return [one for one in records if (one["file"], one["function"]) not in unstable]


def _of_arguments(left: Record, right: Record, tolerance: float) -> tuple[str, Difference] | None:
    for name in left["given"]:
        if name in right["given"] and (found := difference(left["given"][name], right["given"][name], tolerance)):
            return name, found
    return None


def aligned(before: list[Record], after: list[Record]) -> Iterator[tuple[Record, Record]]:
    """Pairs of calls of one function: those before the first difference of the sequences, and some after it."""
    names = [[(record["file"], record["function"]) for record in records] for records in (before, after)]
    same = 0
    for one, other in zip(*names, strict=False):
        if one != other:
            break
        same += 1
    yield from zip(before[:same], after[:same], strict=True)
    left, right = (part[same : same + _WINDOW] for part in names)
    for start, other_start, size in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        for i in range(size):
            yield before[same + start + i], after[same + other_start + i]


def step(before: list[Any], after: list[Any], tolerance: float) -> Step | None:
    """First line of a function, relative to its start, after which a variable differs or another line follows."""
    for i, ((line, left), (other_line, right)) in enumerate(zip(before, after, strict=False)):
        for name in left.keys() & right.keys():
            if found := difference(left[name], right[name], tolerance):
                return Step(after[i - 1][0], name, found) if i else None
        if line != other_line and i:
            return Step(after[i - 1][0], "", None)
    return None
