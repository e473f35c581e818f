"""The cause of a failing test in words: a place, what happens there, and further facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from emberlint.trial.divergences import Divergence, Step
from emberlint.trial.projects import Project
from emberlint.trial.runs import Outcomes, Record


class Cause(NamedTuple):
    """The cause of a failure: a place, what happens there, and further facts.

    ``file`` is empty if no place is known. ``test`` is the place where the test fails, if that is another one.
    ``error`` is the class of an exception that is raised there.
    """

    file: str
    line: int
    text: str
    facts: tuple[str, ...] = ()
    test: str = ""
    error: str = ""

    def key(self) -> tuple[str, int, str]:
        """What causes that are one have in common."""
        return self.file, self.line, self.error if self.file else self.text


class Found(NamedTuple):
    """What the records of a test show: its divergence and the line of it, or how its results differ in type."""

    divergence: Divergence | None
    step: Step | None
    arguments: Divergence | None
    types: Divergence | None


def cause(test: str, outcomes: Outcomes, found: Found | None, project: Project, ported: Mapping[str, bytes]) -> Cause:
    record = outcomes.tests.get(test)
    if record is None:
        return _uncollected(test, outcomes, project)
    if record["outcome"] != "failed":
        return Cause("", 0, f"it is {record['outcome']} now")
    inside = deepest_frame(record, project, inside=True)
    known = found.divergence if found else None
    facts: list[str] = []
    if known is not None and found is not None:
        place = _place(known, found.step, ported)
        if inside is None and not known.is_rounding():
            return Cause(*place, (), _failed(record, project))
        if not known.raises():
            facts.append(f"first difference: {place[0]}:{place[1]}: {place[2]}")
    if inside is not None:
        file, line, _, text = inside
        message = f"`{text}` raises {error_text(record)}"
        return Cause(file, line, message, tuple(facts), _failed(record, project), record["error"])
    return _in_test(record, found, project, facts)


def _place(known: Divergence, step: Step | None, ported: Mapping[str, bytes]) -> tuple[str, int, str]:
    """File, line and text of a divergence."""
    after = known.after
    line = after["start"] + step.line if step else after["line"]
    source = _source(ported, after["file"], line)
    function = after["function"]
    digits = " in the last digits" if known.is_rounding() else ""
    if step and step.difference:
        part, before, now = step.difference
        text = (
            f"`{step.variable}{part}` differs{digits} in `{function}` after `{source}`: {now}, before the port {before}"
        )
    elif step:
        text = f"`{function}` continues with another line after `{source}`"
    else:
        part, before, now = known.difference
        what = f"the result{part}" if known.what == "result" else f"the argument `{known.what}{part}` after the call"
        text = f"{what} of `{function}` differs{digits} (`{source}`): {now}, before the port {before}"
    return after["file"], line, text


def _source(contents: Mapping[str, bytes], file: str, line: int) -> str:
    lines = contents.get(file, b"").decode(errors="replace").splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return text if len(text) <= 100 else text[:96] + " ..."


def _failed(record: Record, project: Project) -> str:
    """The place in the test where it failed."""
    frame = deepest_frame(record, project, inside=False)
    return f"{frame[0]}:{frame[1]}" if frame else ""


def _in_test(record: Record, found: Found | None, project: Project, facts: list[str]) -> Cause:
    """Cause of a failure that no function of the package explains by its values, or only by their last digits."""
    frame = deepest_frame(record, project, inside=False)
    file, line, _, text = frame or ("", 0, "", "")
    facts = list(facts)
    context = record["context"]
    origin = deepest_frame(context, project, inside=True) if context else None
    if origin is not None:
        facts.append(f"it checks an error that {origin[0]}:{origin[1]} raises: {error_text(context)}")
    if found is not None and found.arguments is not None:
        known = found.arguments
        part, before, now = known.difference
        name = f"{known.what}{part}"
        facts.append(f"`{known.after['function']}` gets another `{name}`: {now}, before the port {before}")
    if found is not None and found.types is not None:
        known = found.types
        part, before, now = known.difference
        place = f"{known.after['file']}:{known.after['start']}"
        facts.append(f"`{known.after['function']}` ({place}) returns {now}{part and f' in {part}'}, not {before}")
    if not facts:
        facts.append("no function of the package has another result or type than before")
    return Cause(file, line, f"the test, `{text}`: {error_text(record)}", tuple(facts))


def _uncollected(test: str, outcomes: Outcomes, project: Project) -> Cause:
    """Cause of a test that did not run."""
    for record in outcomes.collection:
        name = record["collection"]
        if test.startswith(name) or name == "":
            frame = deepest_frame(record, project, inside=True) or deepest_frame(record, project, inside=False)
            if frame is None:
                return Cause("", 0, f"the test did not run: {error_text(record)}")
            return Cause(
                frame[0], frame[1], f"`{frame[3]}` raises {error_text(record)}, so the tests cannot be imported"
            )
    return Cause("", 0, "the test did not run: pytest did not collect it, or stopped before")


def deepest_frame(record: Record, project: Project, *, inside: bool) -> tuple[str, int, str, str] | None:
    """Last frame of a failure that is inside of the package, or outside of it."""
    for file, line, name, text in reversed(record["frames"]):
        if (file in project.modules) == inside:
            return file, line, name, text
    return None


def error_text(record: Record) -> str:
    """Class and message of an error; the middle of a long message is left out."""
    message = " ".join(record["message"].split())
    message = message if len(message) <= 240 else f"{message[:160]} ... {message[-75:]}"
    return f"{record['error']}: {message}" if record["error"] else message
