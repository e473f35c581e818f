"""Signals that come at a line of one's choice."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any


class Lines:
    """Raise a signal where a line of some files is reached for the ``nth`` time; count the lines that were reached."""

    def __init__(self, *files: str, at: Any = None, nth: int = 1, number: int = signal.SIGINT) -> None:
        self.files, self.at, self.nth, self.number = files, at, nth, number
        self.seen: dict[tuple[str, int], int] = {}

    def __enter__(self) -> Lines:
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def _call(self, frame: FrameType, event: str, arg: object) -> Any:
        return self._line if frame.f_code.co_filename.endswith(self.files) else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            place = frame.f_code.co_filename, frame.f_lineno
            self.seen[place] = self.seen.get(place, 0) + 1
            if place == self.at and self.seen[place] == self.nth:
                # A real one: whatever handler is in place is run here, between two lines.
                signal.raise_signal(self.number)
        return self._line
