"""Blocks of code that signals do not interrupt.

Python runs the handler of a signal between any two instructions of the main thread, and that of Ctrl-C raises
``KeyboardInterrupt`` there. What has to happen as a whole goes into a block ``with uninterrupted():``.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

# The signals that programs handle to stop; one that has no handler in Python ends the process at once, as it should.
_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
    if hasattr(signal, name)
]


class _Deferral:
    """Handlers that were replaced, and the signals that have come since."""

    def __init__(self) -> None:
        self.handlers: dict[int, Handler] = {}
        self.replaced: list[int] = []
        self.pending: list[tuple[int, FrameType | None]] = []

    def begin(self) -> None:
        """Let signals wait."""
        try:
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self.handlers[number] = handler
                    self.replaced.append(number)
                    signal.signal(number, self.note)
        except BaseException:
            self.end()
            raise

    def note(self, number: int, frame: FrameType | None) -> None:
        """Be the handler of a signal that waits."""
        self.pending.append((number, frame))

    def end(self) -> None:
        """Put the handlers back and run those of the signals that have come."""
        try:
            while self.replaced:
                signal.signal(self.replaced[-1], self.handlers[self.replaced[-1]])
                self.replaced.pop()
            while self.pending:
                number, frame = self.pending.pop(0)
                self.handlers[number](number, frame)
        finally:
            # A handler that raises must not keep the others from being put back or run.
            if self.replaced or self.pending:
                self.end()


# The deferral that is in force. Only the main thread sets it.
_current: _Deferral | None = None


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


class uninterrupted:  # noqa: N801 - reads as a word where it is used
    """A ``with`` block that signals wait for: their handlers run after it.

    It is for short blocks that do not fail half way. Other threads run no handlers, and need none of this.

    >>> import signal
    >>> done = []
    >>> try:
    ...     with uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("all of it")
    ... except KeyboardInterrupt:
    ...     done
    ['all of it']
    """

    def __enter__(self) -> None:
        global _current
        self._own: _Deferral | None = None
        if _current is None and _is_main():
            self._own = _Deferral()
            self._own.begin()
            _current = self._own

    def __exit__(self, *_: object) -> None:
        global _current
        if self._own is not None:
            _current = None
            self._own.end()


class interruptible:  # noqa: N801
    """A ``with`` block inside an ``uninterrupted`` one that signals interrupt again, one that has come first of all."""

    def __enter__(self) -> None:
        global _current
        self._outer = _current if _is_main() else None
        if self._outer is not None:
            _current = None
            try:
                self._outer.end()
            except BaseException:
                self.__exit__()
                raise

    def __exit__(self, *_: object) -> None:
        global _current
        if self._outer is not None:
            self._outer.begin()
            _current = self._outer
