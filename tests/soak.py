"""Minutes or hours of random work, for what single tests do not find: races, leaks, hangs, crashes, torn files.

Run by hand: ``python tests/soak.py --minutes 10 --seed 1``. The checks run in four processes, one with many threads.
A case draws everything from its own seed, and each finding ends with the command that runs its case alone.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import json
import os
import queue
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from soak_checks import ENGINES, children, compiled, generators, interrupts, kills, operations, switching

from ember_ml import backend as backends

# So many findings of each check are written out; the others are counted.
SHOWN = 5

# For each process, its checks and their threads; without threads they run in the main one, which receives signals.
WORKERS: dict[str, tuple[tuple[Callable[[random.Random], None], ...], int]] = {
    "threads": ((operations, switching, operations, compiled, operations, generators), 4),
    "interrupts": ((interrupts,), 0),
    "kills": ((kills,), 0),
    "children": ((children,), 0),
}
CHECKS = {check.__name__: check for checks, _ in WORKERS.values() for check in checks}


class Usage(NamedTuple):
    """What a process holds: the most memory so far, in MiB, threads and file descriptors."""

    memory: int
    threads: int
    files: int

    @classmethod
    def now(cls) -> Usage:
        gc.collect()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Python has an object for each thread of an engine that ever called it.
        threads = [thread for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)]
        return cls(peak >> (20 if sys.platform == "darwin" else 10), len(threads), len(os.listdir("/dev/fd")))


class Run:
    """The cases of one process. What it finds, it writes in lines of JSON for the process that started it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        checks, self.threads = WORKERS[options.worker]
        self.checks = [check for check in checks if check.__name__ in options.only]
        self.numbers, self.lock = itertools.count(), threading.Lock()
        # For each thread, when its case began, and the command that repeats it.
        self.running: dict[int, tuple[float, str]] = {}

    def __call__(self) -> None:
        begin, seconds = time.monotonic(), self.options.minutes * 60
        threading.Thread(target=self.watch, daemon=True).start()
        used = []
        for part in (1, 2, 3):
            self.work(begin + seconds * part / 3)
            used.append(Usage.now())
        if used[2].memory - used[1].memory > self.options.growth:
            self.find(f"memory grew from {used[1].memory} to {used[2].memory} MiB", command(self.options))
        # A leak goes on; an engine that starts a thread when it is first needed does so once.
        if any(first < second < third for first, second, third in zip(*(u[1:] for u in used), strict=True)):
            self.find(f"threads or file descriptors leak: {', then '.join(map(str, used))}", command(self.options))

    def work(self, end: float) -> None:
        """Run cases until then, in all threads."""
        threads = [threading.Thread(target=self.loop, args=(end,)) for _ in range(self.threads)]
        for thread in threads:
            thread.start()
        if not threads:
            self.loop(end)
        for thread in threads:
            thread.join()

    def loop(self, end: float) -> None:
        while time.monotonic() < end:
            number = next(self.numbers)
            check = self.checks[number % len(self.checks)]
            repeat = f"python tests/soak.py --seed {self.options.seed} --only {check.__name__} --case {number}"
            self.running[threading.get_ident()] = time.monotonic(), repeat
            try:
                run_case(check, self.options.seed, number)
            except Exception:
                self.find(traceback.format_exc(), repeat, check.__name__)
            del self.running[threading.get_ident()]
            self.tell(cases=number + 1)

    def watch(self) -> None:
        """End the process, with the stacks of its threads, when a case hangs."""
        while True:
            # A thread that hangs with the interpreter's lock stops this one too, but not the timer.
            faulthandler.dump_traceback_later(self.options.patience + 30, exit=True)
            for since, repeat in list(self.running.values()):
                if time.monotonic() - since > self.options.patience:
                    faulthandler.dump_traceback()
                    self.find(f"no end after {self.options.patience:g} s; the stacks are above", repeat)
                    os._exit(1)
            time.sleep(1)

    def find(self, what: str, repeat: str, check: str = "") -> None:
        self.tell(finding=what, repeat=repeat, check=check)

    def tell(self, **what: Any) -> None:
        with self.lock:
            os.write(sys.stdout.fileno(), f"{json.dumps(what)}\n".encode())


def run_case(check: Callable[[random.Random], None], seed: int, number: int) -> None:
    check(random.Random(f"{seed} {check.__name__} {number}"))


def command(options: argparse.Namespace) -> str:
    """The command that repeats a run."""
    numbers = (f"--{name}={getattr(options, name):g}" for name in ("minutes", "seed", "patience", "growth"))
    return " ".join(["python tests/soak.py", *numbers, f"--only={','.join(options.only)}"])


def supervise(options: argparse.Namespace) -> int:
    """Start the processes, write how far they are and what they find; 1 if they found anything, else 0."""
    names = [name for name, (checks, _) in WORKERS.items() if any(c.__name__ in options.only for c in checks)]
    lines: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
    processes: list[subprocess.Popen[str]] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        for name in names:
            words = [sys.executable, __file__, *command(options).split()[2:], "--worker", name]
            processes.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True))
            threading.Thread(target=follow, args=(name, processes[-1], lines), daemon=True).start()
        return report(options, dict.fromkeys(names, 0), lines)
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def follow(name: str, process: subprocess.Popen[str], lines: queue.Queue[tuple[str, dict[str, Any]]]) -> None:
    """Hand on what a process writes, and at last how it ended."""
    for line in process.stdout or ():
        lines.put((name, json.loads(line)))
    lines.put((name, {"code": process.wait()}))


def report(options: argparse.Namespace, cases: dict[str, int], lines: queue.Queue[tuple[str, dict[str, Any]]]) -> int:
    begin = shown = time.monotonic()
    found, running, is_terminal = Counter[str](), len(cases), sys.stdout.isatty()
    while running:
        name, line = lines.get()
        cases[name] = line.get("cases", cases[name])
        if "code" in line:
            running -= 1
            if line["code"]:
                line = {"finding": f"{name} ended with {line['code']}", "repeat": command(options), "check": ""}
        if "finding" in line:
            found[line["check"]] += 1
            if found[line["check"]] <= SHOWN:
                print(f"\nFINDING: {line['finding'].strip()}\nreproduce: {line['repeat']}", flush=True)
        if time.monotonic() - shown > (1 if is_terminal else 20) or not running:
            shown = time.monotonic()
            done = ", ".join(f"{n} {name}" for name, n in cases.items())
            text = f"{(shown - begin) / 60:.1f} of {options.minutes:g} minutes: {done}; {found.total()} findings"
            print(f"\r{text}" if is_terminal else text, end="" if is_terminal and running else "\n", flush=True)
    return min(1, found.total())


def main() -> int:
    listed = "\n".join(f"  {name:11} {check.__doc__}" for name, check in CHECKS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"checks:\n{listed}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("--minutes", type=float, default=10, help="how long to run (default: 10)")
    option("--seed", type=int, default=0, help="what the cases are drawn from (default: 0)")
    option("--only", default=",".join(CHECKS), help="the checks to run, separated by commas (default: all)")
    option("--case", type=int, help="run only this case, of the check that --only names")
    option("--patience", type=float, default=300, help="seconds after which a case hangs (default: 300)")
    option("--growth", type=float, default=200, help="MiB by which the memory of a process may grow in the last third "
           "of its time (default: 200)")  # fmt: skip
    option("--worker", choices=WORKERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.only = options.only.split(",")
    if unknown := set(options.only).difference(CHECKS):
        parser.error(f"unknown checks: {', '.join(sorted(unknown))}; known: {', '.join(CHECKS)}")
    if options.worker is None and options.case is None:
        return supervise(options)
    faulthandler.enable()
    warnings.simplefilter("ignore")
    for engine in ENGINES:
        backends.load(engine)
    if options.case is None:
        Run(options)()
    else:
        run_case(CHECKS[options.only[0]], options.seed, options.case)
    return 0


if __name__ == "__main__":
    sys.exit(main())
