"""Deferral of signals in critical sections.

Python runs signal handlers between any two instructions of the main thread, and the handler of Ctrl-C raises
``KeyboardInterrupt`` there. Code that must run as a whole belongs in a block ``with uninterrupted():``.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

# ``signal`` itself converts handlers to members of an enumeration and back, which takes most of the time of a block.
_handler, _set_handler = _signal.getsignal, _signal.signal

# Signals that programs handle in order to stop. Without a Python handler they end the process at once, as they should.
_SIGNALS = [
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGBREAK")
    if hasattr(signal, name)
]


class _Deferral:
    """Replaced handlers, and the signals received since."""

    def __init__(self) -> None:
        self.handlers: dict[int, Handler] = {}
        self.replaced: list[int] = []
        self.pending: list[tuple[int, FrameType | None]] = []

    def begin(self) -> None:
        """Start deferring signals."""
        try:
            for number in _SIGNALS:
                handler = _handler(number)
                if callable(handler):
                    self.handlers[number] = handler
                    self.replaced.append(number)
                    _set_handler(number, self.note)
        except BaseException:
            self.end()
            raise

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handler that records a deferred signal."""
        self.pending.append((number, frame))

    def end(self) -> None:
        """Restore the handlers and run those of the signals received."""
        try:
            while self.replaced:
                _set_handler(self.replaced[-1], self.handlers[self.replaced[-1]])
                self.replaced.pop()
            while self.pending:
                number, frame = self.pending.pop(0)
                self.handlers[number](number, frame)
        finally:
            # If a handler raises, the others must still be restored and run.
            if self.replaced or self.pending:
                self.end()


# The active deferral. Only the main thread sets it.
_current: _Deferral | None = None


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


class uninterrupted:  # noqa: N801 - reads as a word where it is used
    """Context manager that defers signals: their handlers run after the block.

    Use it for short blocks that do not fail midway. In threads other than the main thread it does nothing, since
    Python runs no handlers there.

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
    """Context manager that allows signals inside an ``uninterrupted`` block. Deferred signals are handled first."""

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
