"""The processes of ``ember-ml launch``: one for each rank, on this host or others, which end together."""

from __future__ import annotations

import os
import random
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ember_ml.backend import VARIABLE
from ember_ml.distributed.calls import FOLDER_VARIABLE
from ember_ml.errors import DistributedError
from ember_ml.tools import UsageError

# Says how often the launch was started again.
RESTARTS_VARIABLE = "EMBER_ML_RESTARTS"

# Seconds for the other ranks to report errors of their own after the first one failed, and to end once they are told.
_PATIENCE, _GRACE = 3.0, 5.0

# Ports are taken from below those that systems give to outgoing connections.
_PORTS = range(20000, 32000)

# Lines of the errors of a rank that are kept.
_KEPT = 200

# What a rank writes that fails since another one did: our own error, and what JAX 0.10 says before it ends a process.
_SIGNS_OF_VICTIMS = (DistributedError.__name__, "JAX distributed service detected fatal errors")

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class Plan(NamedTuple):
    """What to start: a command for each rank, on the host of that rank."""

    command: Sequence[str]
    hosts: Sequence[str]
    backend: str | None = None
    max_restarts: int = 0


def read_hosts(path: str, count: int | None) -> list[str]:
    """Host of each rank, from a file with a line ``name slots=4`` for each host; one slot by default."""
    hosts: list[str] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        found = re.fullmatch(r"(\S+)(?:\s+slots=(\d+))?", text)
        if text and not found:
            raise UsageError(f"{path}: line {number} must be a host, or a host and slots=N, got {text!r}")
        if found:
            hosts += [found[1]] * int(found[2] or 1)
    if not hosts:
        raise UsageError(f"{path} must name at least one host, got none")
    if count is not None and count > len(hosts):
        raise UsageError(f"-n must be at most the {len(hosts)} slots of {path}, got {count}")
    found_names = dict.fromkeys(hosts[:count])
    if len(found_names) > 1 and any(name in _LOCAL_NAMES for name in found_names):
        raise UsageError(f"{path} must name this host as the others reach it, got localhost")
    return hosts[:count]


class _Stop(BaseException):
    """A signal told the launcher to end."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Rank:
    """The process of one rank, the lines that it has not ended, and its last errors."""

    def __init__(self, number: int, process: subprocess.Popen[bytes]) -> None:
        self.number = number
        self.process = process
        self.rests: dict[int, bytes] = {}
        self.errors: deque[str] = deque(maxlen=_KEPT)

    @property
    def status(self) -> int | None:
        """Exit status as a shell reports it; ``None`` while the process runs."""
        code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code

    def is_victim(self) -> bool:
        """Whether it failed because it could not reach another rank."""
        return any(sign in line for line in self.errors for sign in _SIGNS_OF_VICTIMS)

    def tell(self, number: int) -> None:
        """Send a signal to the process and those that it has started."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                self.process.poll()

    def last_error(self) -> str:
        """The last traceback, or the last lines if there is none."""
        lines = list(self.errors)
        starts = [i for i, line in enumerate(lines) if "Traceback (most recent call last)" in line]
        return "\n".join(lines[starts[-1] if starts else -20 :])


def run(plan: Plan) -> int:
    """Start the ranks, again after a failure if the plan says so, and return the status of the first that failed."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup ignores the end of a terminal.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    for restarts in range(plan.max_restarts + 1):
        folder = tempfile.mkdtemp(prefix="ember_ml-")
        try:
            settings = _environments(plan, restarts, folder)
            status = _supervise([_Rank(i, _start(plan, i, variables)) for i, variables in settings])
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if status == 0 or restarts == plan.max_restarts:
            break
        _say(f"starting all ranks again, restart {restarts + 1} of {plan.max_restarts}")
    return status


def _stop(number: int, _: Any) -> None:
    raise _Stop(number)


def _environments(plan: Plan, restarts: int, folder: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Number of each rank and the variables that tell it about the launch: those of torchrun, and our own."""
    hosts, names = plan.hosts, dict.fromkeys(plan.hosts)
    port = _free_port(len(hosts) + 2)
    for i, host in enumerate(hosts):
        here = hosts.count(host)
        variables = {
            "RANK": str(i),
            "WORLD_SIZE": str(len(hosts)),
            "LOCAL_RANK": str(hosts[:i].count(host)),
            "LOCAL_WORLD_SIZE": str(here),
            "MASTER_ADDR": hosts[0] if len(names) > 1 else "127.0.0.1",
            "MASTER_PORT": str(port),
            "PYTHONUNBUFFERED": "1",
            RESTARTS_VARIABLE: str(restarts),
        }
        if len(names) > 1:
            variables["EMBER_ML_HOSTS"] = ",".join(hosts)
        else:
            variables[FOLDER_VARIABLE] = folder
        if plan.backend is not None:
            variables[VARIABLE] = plan.backend
        if "OMP_NUM_THREADS" not in os.environ:
            # The ranks of a host share its cores.
            variables["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // here))
        yield i, variables


def _free_port(count: int) -> int:
    """First of ``count`` consecutive ports that are free on this host."""
    while True:
        first = random.choice(_PORTS)
        if all(map(_is_free, range(first, first + count))):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True


def _start(plan: Plan, rank: int, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    host, command, environment = plan.hosts[rank], list(plan.command), {**os.environ, **variables}
    if host not in (*_LOCAL_NAMES, socket.gethostname(), socket.getfqdn()):
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        remote = f"cd {shlex.quote(os.getcwd())} && exec env {settings} {shlex.join(command)}"
        # With a terminal, the remote process ends with the connection.
        command, environment = ["ssh", "-tt", "-o", "BatchMode=yes", host, remote], dict(os.environ)
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _supervise(ranks: list[_Rank]) -> int:
    """Status of the launch after all ranks have ended; the others are told to end after one has failed."""
    with selectors.DefaultSelector() as selector:
        for rank in ranks:
            for pipe, out in ((rank.process.stdout, sys.stdout), (rank.process.stderr, sys.stderr)):
                assert pipe is not None
                selector.register(pipe, selectors.EVENT_READ, (rank, out))
        try:
            failed = _wait(selector, ranks)
        except (KeyboardInterrupt, _Stop) as stop:
            number = stop.number if isinstance(stop, _Stop) else signal.SIGINT
            _end(selector, ranks, number)
            return 128 + number
        except BaseException:
            _end(selector, ranks, signal.SIGTERM)
            raise
        if not failed:
            _drain(selector)
            return 0
        _end(selector, ranks, signal.SIGTERM)
        first = next((rank for rank in failed if not rank.is_victim()), failed[0])
        _say(f"rank {first.number} of {len(ranks)} failed first, {_reason(first)}\n{first.last_error()}".rstrip())
        return first.status or 1


def _reason(rank: _Rank) -> str:
    code = rank.process.returncode
    return f"with exit status {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"


def _wait(selector: selectors.BaseSelector, ranks: list[_Rank]) -> list[_Rank]:
    """Ranks that failed, in order: those until all have ended, or until the patience with the others is at an end."""
    failed: list[_Rank] = []
    deadline = float("inf")
    while time.monotonic() < deadline:
        _forward(selector)
        statuses = [rank.status for rank in ranks]
        failed += [rank for rank, status in zip(ranks, statuses, strict=True) if status and rank not in failed]
        if failed and deadline == float("inf"):
            deadline = time.monotonic() + _PATIENCE
        if None not in statuses:
            break
    return failed


def _end(selector: selectors.BaseSelector, ranks: list[_Rank], number: int) -> None:
    """Tell all ranks to end, first with the signal ``number``, and kill those that do not; at once after Ctrl-C."""
    try:
        for step in dict.fromkeys((number, signal.SIGTERM)):
            for rank in ranks:
                rank.tell(step)
            deadline = time.monotonic() + _GRACE
            while time.monotonic() < deadline and any(rank.status is None for rank in ranks):
                _forward(selector)
    except (KeyboardInterrupt, _Stop):
        _say("killing all ranks")
    finally:
        for rank in ranks:
            rank.tell(signal.SIGKILL)
        for rank in ranks:
            rank.process.wait()
        _drain(selector)


def _forward(selector: selectors.BaseSelector, wait: float = 0.05) -> bool:
    """Print what the ranks have written, each line after the number of its rank; false if there was nothing."""
    if not selector.get_map():
        time.sleep(wait)
        return False
    events = selector.select(wait)
    for key, _ in events:
        rank, out = key.data
        data = os.read(key.fd, 1 << 16)
        *lines, rest = (rank.rests.pop(key.fd, b"") + data).split(b"\n")
        if not data:
            selector.unregister(key.fileobj)
            lines += [rest] if rest else []
        elif rest:
            rank.rests[key.fd] = rest
        _print(rank, out, lines)
    return bool(events)


def _drain(selector: selectors.BaseSelector) -> None:
    """Print what is left after the ranks have ended; processes that they have started may hold the pipes open."""
    deadline = time.monotonic() + _GRACE
    while selector.get_map() and time.monotonic() < deadline and _forward(selector, 0.1):
        pass
    for key in list(selector.get_map().values()):
        rank, out = key.data
        rest = rank.rests.pop(key.fd, None)
        _print(rank, out, [rest] if rest else [])


def _print(rank: _Rank, out: TextIO, lines: Sequence[bytes]) -> None:
    for line in lines:
        text = line.decode(errors="replace").rstrip("\r")
        print(f"[{rank.number}] {text}", file=out)
        if out is sys.stderr:
            rank.errors.append(text)
    out.flush()


def _say(text: str) -> None:
    print(f"ember-ml: {text}", file=sys.stderr, flush=True)
