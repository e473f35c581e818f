"""Collective calls: that all ranks make the same one, that it ends in time, and how far each rank has come."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

from ember_ml.backend.protocol import Collectives
from ember_ml.distributed.launch import LAUNCH
from ember_ml.errors import DistributedError

T = TypeVar("T")

# Where each rank of this host writes how far it has come; ``ember-ml launch`` sets it.
FOLDER_VARIABLE = "EMBER_ML_PROGRESS"

# Seconds that a collective may take by default.
TIMEOUT = 300.0

# Bytes of the tensors that are joined for one reduction, unless a transport has another number.
BUCKET_BYTES = 32_000_000

# Bytes of a header, which says what a rank calls, and of a rank's file.
_LENGTH = 192

# Seconds that a transport has to raise its own error after the timeout, before the process is ended.
_GRACE = 10.0


class _State:
    """What this rank does at the moment."""

    def __init__(self) -> None:
        self.timeout = TIMEOUT
        self.is_checked = True
        self.started: list[Collectives] = []
        self.lock = threading.RLock()
        self.count = 0
        self.step: int | None = None
        self.text = ""
        self.deadline = float("inf")
        self.file: int | None = None


_state = _State()


def configure(timeout: float | None, checked: bool | None) -> None:
    """Set the options of later collectives; ``None`` keeps an option."""
    if timeout is not None:
        if not timeout > 0:
            raise ValueError(f"init: timeout must be > 0 seconds, got {timeout}")
        if _state.started and timeout != _state.timeout:
            raise DistributedError(
                f"init: timeout must be set before the first collective, got {timeout} after {_state.timeout}"
            )
        _state.timeout = timeout
    if checked is not None:
        _state.is_checked = checked


def set_step(step: int | None) -> None:
    """Say which step of training this rank is at, for the errors of collectives."""
    _state.step = step


def start(transport: Collectives) -> None:
    """Connect the ranks over a transport, if they are not connected yet."""
    with _state.lock:
        if transport not in _state.started:
            connect(transport.start, transport.TIMES_OUT)
            _state.started.append(transport)


def connect(start: Callable[[float], None], times_out: bool) -> None:
    """Call ``start``, which connects the ranks, with the timeout; it may raise an error of its own after that."""
    if _state.file is None:
        _open_file()
        threading.Thread(target=_watch, name="ember_ml.distributed", daemon=True).start()
    _attempt("init", times_out, lambda: start(_state.timeout))


def run(transport: Collectives, text: str, function: Callable[[], T], is_compared: bool = True) -> T:
    """Result of ``function``, which makes the collective call that ``text`` describes, the same on every rank.

    Args:
        is_compared: whether the ranks compare what they call first, unless that is turned off.
    """
    if transport not in _state.started:
        start(transport)

    def checked() -> T:
        if is_compared and _state.is_checked:
            _compare(transport.exchange(_header(text)))
        return function()

    return _attempt(text, transport.TIMES_OUT, checked)


def _attempt(text: str, times_out: bool, function: Callable[[], T]) -> T:
    """Result of ``function``; its errors become one that says how far each rank has come."""
    _state.count += 1
    _state.text = text
    _record("in")
    _state.deadline = time.monotonic() + _state.timeout + _GRACE * times_out
    try:
        return function()
    except DistributedError:
        raise
    except (RuntimeError, OSError, ValueError) as error:  # JAX raises all of them for a lost connection
        raise DistributedError(_report(f"{type(error).__name__}: {_first_line(error)}")) from error
    finally:
        _state.deadline = float("inf")
        _record("after")


def _header(text: str) -> bytes:
    return text.encode()[:_LENGTH].ljust(_LENGTH, b"\0")


def _compare(headers: list[bytes]) -> None:
    """Raise an error that names the ranks that make another call than rank 0, on all ranks alike."""
    if headers.count(headers[0]) == len(headers):
        return
    ranks: dict[str, list[int]] = {}
    for rank, header in enumerate(headers):
        ranks.setdefault(header.rstrip(b"\0").decode(errors="replace"), []).append(rank)
    calls = "; ".join(f"{text} on rank {', '.join(map(str, who))}" for text, who in ranks.items())
    raise DistributedError(f"all ranks must make the same call{_at_step(_state.step)}, got {calls}")


def _report(problem: str) -> str:
    """What failed on this rank, and how far each rank has come."""
    ranks = "\n".join(f"  rank {rank}: {_progress(rank)}" for rank in range(LAUNCH.size))
    call = f"call {_state.count}, {_state.text}{_at_step(_state.step)}"
    return f"all ranks must make {call}; rank {LAUNCH.rank} of {LAUNCH.size} got {problem}\n{ranks}"


def _at_step(step: int | None) -> str:
    return "" if step is None else f" at step {step}"


def _first_line(error: BaseException) -> str:
    """First line of a message, without the place in the engine's own source that gloo puts first."""
    return re.sub(r"\[\S+:\d+\] ", "", (str(error).strip().splitlines() or [""])[0])


def _folder() -> Path:
    """Folder of the files of the ranks on this host: that of the launcher, or one that all derive from the launch."""
    given = os.environ.get(FOLDER_VARIABLE)
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(given or f"{tempfile.gettempdir()}/ember_ml-{user}-{LAUNCH.address}-{LAUNCH.port}")


def _open_file() -> None:
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _state.file = os.open(folder / str(LAUNCH.rank), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)


def _record(place: str) -> None:
    """Write what this rank does to its file."""
    if _state.file is not None:
        text = f"{os.getpid()} {place} call {_state.count}, {_state.text}{_at_step(_state.step)}"
        os.pwrite(_state.file, _header(text), 0)


def _progress(rank: int) -> str:
    """How far a rank has come, in words."""
    path = _folder() / str(rank)
    try:
        process, _, text = path.read_bytes().rstrip(b"\0").decode(errors="replace").partition(" ")
    except FileNotFoundError:
        return "not started" if LAUNCH.local_size == LAUNCH.size else "not known, on another host"
    return text if _is_alive(int(process or 0)) else f"ended {text}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _watch() -> None:
    """End the process when a collective takes too long, since no thread can interrupt another inside of an engine."""
    while time.monotonic() < _state.deadline:
        time.sleep(min(1.0, _state.timeout / 10))
    _end()


def _end() -> NoReturn:
    sys.stdout.flush()
    report = _report(f"no result within {_state.timeout:g} s")
    print(f"{DistributedError.__module__}.{DistributedError.__name__}: {report}", file=sys.stderr, flush=True)
    os._exit(1)
