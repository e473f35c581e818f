"""Ranks of a program on this host, for tests: processes that a server forks, so that its imports are made once.

The server of an engine is a process that reads a request per line, and forks the ranks of each.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - variables that engines read when they are imported

HERE = Path(__file__).parent

# What is imported before the fork: the slow parts of an engine and of its transport, and what rank_program.py imports,
# except for ember_ml, which reads the variables of the launch when it is imported.
TORCH = ["torch", "torch._dynamo", "torch.distributed.tensor", "scipy"]
MODULES = {"torch": TORCH, "numpy": TORCH, "mlx": ["mlx.core"], "jax": ["jax"]}
COMMON = ["numpy", "pytest"]


def launch(engine: str, size: int, jobs: list[dict[str, Any]], timeout: float = 120) -> list[Any]:
    """Results of jobs of ``rank_program.py`` on that many ranks."""
    outputs = run_ranks(engine, size, [str(HERE / "rank_program.py"), json.dumps(jobs)], timeout)
    for code, out, error in outputs:
        assert code == 0, f"{out}\n{error}"
    line = next(line for line in outputs[0][1].splitlines() if line.startswith("RESULT"))
    found = json.loads(line.removeprefix("RESULT"))
    assert found["size"] == size
    # Rank 0 alone prints, except for gloo.
    assert all(line.startswith("[Gloo]") for _, out, _ in outputs[1:] for line in out.splitlines())
    return list(found["results"])


def run_ranks(engine: str, size: int, arguments: list[str], timeout: float = 120) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each rank of a Python program."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {
            **os.environ,
            "WORLD_SIZE": str(size),
            "MASTER_PORT": str(_free_port()),
            "EMBER_ML_BACKEND": engine,
            "EMBER_ML_DEVICE": "cpu",
            "OMP_NUM_THREADS": "1",
        }
        _server(*MODULES[engine]).run({"folder": folder, "arguments": arguments, "variables": variables}, timeout)
        place = Path(folder)
        codes = json.loads((place / "codes").read_text())
        return [
            (code, (place / f"out{rank}").read_text(), (place / f"error{rank}").read_text())
            for rank, code in enumerate(codes)
        ]


class _Server:
    """Process that has imported some modules, and forks the ranks of each request."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
        self.process = subprocess.Popen(
            [sys.executable, __file__, *modules],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # A signal for the tests is none for the server.
            process_group=0,
        )
        atexit.register(self.close)

    def run(self, request: dict[str, Any], timeout: float) -> None:
        """Wait for the ranks of a request, or end them after ``timeout`` seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        group = int(self.process.stdout.readline())
        # The server then writes a line when the ranks have ended.
        is_done = bool(select.select([self.process.stdout], [], [], timeout)[0])
        if not is_done:
            os.killpg(group, signal.SIGKILL)
        self.process.stdout.readline()
        if not is_done:
            raise TimeoutError(f"ranks must end in {timeout} s: {request['arguments']}")

    def close(self) -> None:
        """End the server."""
        self.process.communicate()


_server = cache(lambda *modules: _Server(modules))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _serve(modules: list[str]) -> None:
    """Fork the ranks of each request."""
    for name in [*modules, *COMMON]:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            # A group of its own, so that a timeout ends all ranks.
            os.setpgid(0, 0)
            os.environ.clear()
            os.environ.update(request["variables"])
            _fork(Path(request["folder"]), request["arguments"])
            os._exit(0)
        print(process, flush=True)
        os.waitpid(process, 0)
        print("done", flush=True)


def _fork(folder: Path, arguments: list[str]) -> None:
    """Run the program on each rank, and write the exit codes."""
    processes = []
    for rank in range(int(os.environ["WORLD_SIZE"])):
        process = os.fork()
        if process == 0:
            _run_rank(rank, folder, arguments)
        processes.append(process)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    (folder / "codes").write_text(json.dumps(statuses))


def _run_rank(rank: int, folder: Path, arguments: list[str]) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name, number in (("out", 1), ("error", 2)):
        descriptor = os.open(folder / f"{name}{rank}", os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, number)
    code = 0
    sys.argv = arguments
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1:])
