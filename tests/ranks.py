"""Ranks of a program on this host, for tests: processes that one process forks, so that its imports are made once."""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - variables that engines read when they are imported

HERE = Path(__file__).parent

# What is imported before the fork: the slow parts of an engine and of its transport.
TORCH = ["torch", "torch._dynamo", "torch.distributed.tensor"]
MODULES = {"torch": TORCH, "numpy": [*TORCH, "scipy"], "mlx": ["mlx.core"], "jax": ["jax"]}


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
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
        }
        command = [sys.executable, __file__, folder, *arguments]
        # A group of its own, so that a timeout ends all ranks.
        process = subprocess.Popen(command, env=variables, process_group=0)
        try:
            process.wait(timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()
        place = Path(folder)
        codes = json.loads((place / "codes").read_text())
        return [
            (code, (place / f"out{rank}").read_text(), (place / f"error{rank}").read_text())
            for rank, code in enumerate(codes)
        ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _fork(folder: Path, arguments: list[str]) -> None:
    """Run the program on each rank, and write the exit codes."""
    for name in MODULES[os.environ["EMBER_ML_BACKEND"]]:
        importlib.import_module(name)
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
    _fork(Path(sys.argv[1]), sys.argv[2:])
