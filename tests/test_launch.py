"""``ember-ml launch``: output, failures, signals, restarts and hosts; and the other launchers that start ranks."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import ember_ml
from ember_ml.tools import UsageError
from ember_ml.tools.supervisor import read_hosts

LAUNCH = [sys.executable, "-m", "ember_ml", "launch"]

# What most tests start needs no engine, which would take seconds to import.
HEAD = "import os, sys, time, signal\nrank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n"

COLLECTIVE = r"""
import os
import sys
import ember_ml
from ember_ml import distributed, ops
ember_ml.set_backend(sys.argv[1])
found = distributed.all_sum(ops.ones(2) * (distributed.rank() + 1)).tolist()
line = f"RESULT {distributed.rank()} {distributed.size()} {distributed.local_rank()} {found}"
# In one piece, since torchrun lets ranks write between each other's pieces.
os.write(1, f"{line}\n".encode())
"""


def write(folder: Path, body: str) -> str:
    path = folder / "program.py"
    path.write_text(HEAD + body)
    return str(path)


def started(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **changes}
    return subprocess.run(
        [*LAUNCH, *arguments], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_what_a_rank_writes_last_is_shown(tmp_path: Path) -> None:
    """Also what it writes faster than the launcher reads, and the end of a line that a process of its own may go on."""
    body = "import subprocess\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(30)'])\n"
    body += (
        "print(child.pid, file=sys.stderr)\nsys.stdout.write('x' * 63 + '\\n' + ('y' * 63 + '\\n') * 4095 + 'end')\n"
    )
    begin = time.monotonic()
    done = started("-n", "1", write(tmp_path, body))
    assert done.returncode == 0
    assert time.monotonic() - begin < 25
    lines = done.stdout.splitlines()
    assert (len(lines), lines[0][:6], lines[-2][:6], lines[-1]) == (4097, "[0] xx", "[0] yy", "[0] end")
    os.kill(int(done.stderr.split()[-1]), signal.SIGKILL)


def test_lines_have_the_number_of_their_rank(tmp_path: Path) -> None:
    body = "print(rank, size, os.environ['LOCAL_RANK'], sys.argv[1:])\nprint('problem', file=sys.stderr)\n"
    body += "sys.stdout.write('no end of line')"
    done = started("-n", "3", write(tmp_path, body), "--epochs", "2", "-n")
    assert done.returncode == 0
    wanted = [f"[{rank}] {rank} 3 {rank} ['--epochs', '2', '-n']" for rank in range(3)]
    assert sorted(done.stdout.splitlines()) == sorted(wanted + [f"[{rank}] no end of line" for rank in range(3)])
    assert sorted(done.stderr.splitlines()) == [f"[{rank}] problem" for rank in range(3)]


def test_a_module_is_started(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "train.py").write_text("import sys\nprint(sys.argv[1:], __package__)")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    assert started("-m", "job.train", "now", PYTHONPATH=path).stdout == "[0] ['now'] job\n"


def test_the_backend_is_set(tmp_path: Path) -> None:
    path = write(tmp_path, "print(os.environ['EMBER_ML_BACKEND'])")
    assert started("--backend", "numpy", path).stdout == "[0] numpy\n"
    done = started("--backend", "abacus", path)
    assert done.returncode == 2
    assert "abacus" in done.stderr
    assert not done.stdout


def test_the_first_failure_is_shown_last_and_its_status_returned(tmp_path: Path) -> None:
    """Not those of ranks that failed since they lost another one, although they may end earlier."""
    body = """
if rank == 0:
    sys.stderr.write("ember_ml.errors.DistributedError: lost rank 1\\n")
    sys.exit(1)
if rank == 1:
    time.sleep(0.5)
    def step():
        raise ValueError("the data is bad")
    try:
        step()
    except ValueError:
        import traceback
        traceback.print_exc()
        sys.exit(7)
time.sleep(60)
"""
    begun = time.monotonic()
    done = started("-n", "3", write(tmp_path, body))
    assert done.returncode == 7
    assert time.monotonic() - begun < 20
    *_, head, last = done.stderr.partition("ember-ml: rank 1 of 3 failed first, with exit status 7\n")
    assert head
    assert last.startswith("Traceback (most recent call last)")
    assert last.endswith("ValueError: the data is bad\n")


def test_a_rank_that_ignores_signals_is_killed(tmp_path: Path) -> None:
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready")
if rank == 1:
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""
    begun = time.monotonic()
    done = started("-n", "2", write(tmp_path, body))
    assert done.returncode == 128 + signal.SIGKILL
    assert "ember-ml: rank 1 of 2 failed first, ended by SIGKILL" in done.stderr
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_ranks(tmp_path: Path, number: signal.Signals) -> None:
    body = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("pids", os.getpid(), child.pid)
time.sleep(60)
"""
    path = write(tmp_path, body)
    launcher = subprocess.Popen([*LAUNCH, "-n", "2", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    pids = [int(pid) for _ in range(2) for pid in launcher.stdout.readline().split()[2:]]
    assert len(pids) == 4
    launcher.send_signal(number)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 128 + number
    deadline = time.monotonic() + 10
    while any(map(is_running, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie, which nobody in a container may wait for."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_restarts(tmp_path: Path) -> None:
    body = """
state = f"{sys.argv[1]}/{rank}"
step = int(open(state).read()) if os.path.exists(state) else 0
print("from", step, "restart", os.environ["EMBER_ML_RESTARTS"], "port", os.environ["MASTER_PORT"])
for step in range(step, 6):
    open(state, "w").write(str(step + 1))
    if rank == 1 and step in (1, 3):
        sys.exit(5)
"""
    path = write(tmp_path, body)
    folder = tmp_path / "state"
    folder.mkdir()
    done = started("-n", "2", "--max-restarts", "2", path, str(folder))
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\[1\] from (\d) restart (\d)", done.stdout) == [("0", "0"), ("2", "1"), ("4", "2")]
    assert "ember-ml: starting all ranks again, restart 2 of 2" in done.stderr
    shutil.rmtree(folder)
    folder.mkdir()
    assert started("-n", "2", "--max-restarts", "1", path, str(folder)).returncode == 5


def test_hosts_are_reached_by_ssh(tmp_path: Path) -> None:
    """A program in the place of ssh runs the command here, and shows which host it was for."""
    shell = tmp_path / "ssh"
    shell.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do [ "$1" = -o ] && shift; shift; done\n'
                     'host="$1"; shift; echo "on $host"; exec sh -c "$*"\n')  # fmt: skip
    shell.chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text("# the cluster\nnode1.test slots=2\n\nnode2.test # one\n")
    body = "print(rank, os.environ['LOCAL_RANK'], os.environ['LOCAL_WORLD_SIZE'], os.environ['MASTER_ADDR'],"
    body += "os.environ['EMBER_ML_HOSTS'], sys.argv[1:])"
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = started("--hosts", str(hosts), write(tmp_path, body), "a b", PATH=path)
    assert done.returncode == 0, done.stderr
    every = "node1.test,node1.test,node2.test"
    assert sorted(done.stdout.splitlines()) == [
        f"[0] 0 0 2 node1.test {every} ['a b']",
        "[0] on node1.test",
        f"[1] 1 1 2 node1.test {every} ['a b']",
        "[1] on node1.test",
        f"[2] 2 0 1 node1.test {every} ['a b']",
        "[2] on node2.test",
    ]


def test_files_of_hosts(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("a slots=2\nb\n")
    assert read_hosts(str(path), None) == ["a", "a", "b"]
    assert read_hosts(str(path), 2) == ["a", "a"]
    with pytest.raises(UsageError, match="-n must be at most the 3 slots"):
        read_hosts(str(path), 4)
    for text, message in (
        ("a slots=x", r"line 1 must be a host, or a host and slots=N, got 'a slots=x'"),
        ("# none", "must name at least one host"),
        ("localhost\nb", "must name this host as the others reach it"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=message):
            read_hosts(str(path), None)


@pytest.mark.parametrize("arguments", [[], ["-n", "0", "x.py"], ["--max-restarts", "-1", "x.py"]])
def test_misuse(arguments: list[str]) -> None:
    done = started(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("ember-ml launch: error:")


def test_a_program_that_does_not_exist() -> None:
    done = started("-n", "2", "no_such_program.py")
    assert done.returncode == 2
    assert "no_such_program.py" in done.stderr.splitlines()[-1]


def test_a_killed_rank_costs_the_steps_since_the_last_checkpoint() -> None:
    """One launch of the soak, on the engine that starts most quickly."""
    engine = "mlx" if "mlx" in ember_ml.get_available_backends() else "numpy"
    soak = Path(__file__).with_name("distributed_soak.py")
    command = [sys.executable, str(soak), "--count", "1", "--seed", "3", "--backend", engine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.endswith("1 launches, 1 restarts, 0 findings\n"), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("program", "options", "backend"),
    [
        ("torchrun", ["--standalone", "--nproc-per-node", "2"], "torch"),
        ("mlx.launch", ["-n", "2", "--", sys.executable], "mlx"),
    ],
)
def test_other_launchers(tmp_path: Path, program: str, options: list[str], backend: str) -> None:
    command = shutil.which(program, path=str(Path(sys.executable).parent))
    if command is None:
        pytest.skip(f"{program} is not installed")
    path = tmp_path / "program.py"
    path.write_text(COLLECTIVE)
    done = subprocess.run(
        [command, *options, str(path), backend], capture_output=True, text=True, timeout=100, check=False
    )
    assert sorted(re.findall("RESULT .*]", done.stdout)) == [f"RESULT {i} 2 {i} [3.0, 3.0]" for i in range(2)], done


@pytest.mark.parametrize("backend", ["numpy", "mlx"])
def test_ranks_of_slurm_and_mpi(tmp_path: Path, backend: str) -> None:
    """Processes with the variables of ``srun`` and of ``mpirun``, which this machine need not have."""
    if backend == "numpy" and find_spec("mpi4py"):
        pytest.skip("mpi4py is installed, and looks for an mpirun that did not start these processes")
    path = tmp_path / "program.py"
    path.write_text(COLLECTIVE)
    ranks = []
    for i in range(2):
        slurm = {
            "SLURM_PROCID": str(i),
            "SLURM_LOCALID": str(i),
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_JOB_ID": str(os.getpid()),
        }
        slurm |= {"SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_TASKS_PER_NODE": "2"}
        mpi = {"OMPI_COMM_WORLD_RANK": str(i), "OMPI_COMM_WORLD_LOCAL_RANK": str(i), "PMIX_NAMESPACE": str(os.getpid())}
        mpi |= {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        variables = {**os.environ, **(slurm if backend == "mlx" else mpi)}
        ranks.append(
            subprocess.Popen(
                [sys.executable, str(path), backend],
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for i, rank in enumerate(ranks):
        out, errors = rank.communicate(timeout=60)
        assert out == f"RESULT {i} 2 {i} [3.0, 3.0]\n", errors


def test_mpi4py_of_another_mpi_is_an_error(tmp_path: Path) -> None:
    """Each process is then alone in its own world of MPI."""
    package = tmp_path / "mpi4py"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "MPI.py").write_text("class COMM_WORLD:\n    Get_size = staticmethod(lambda: 1)\n")
    (tmp_path / "program.py").write_text(COLLECTIVE)
    mpi = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    done = subprocess.run(
        [sys.executable, "program.py", "numpy"],
        cwd=tmp_path,
        env={**os.environ, **mpi},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "mpi4py must use the MPI of the mpirun that started the 2 ranks, got one" in done.stderr
