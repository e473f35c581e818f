"""Collectives of two and three ranks on this host, and their failures; ``distributed_cases.py`` is what ranks run."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ember_ml
from ember_ml import distributed, ops
from ember_ml.backend import Backend
from ember_ml.distributed.launch import Launch, read

SCRIPT = Path(__file__).parent / "distributed_cases.py"

# Starting processes takes most of the time, so one launch runs all cases, and ends in one of the failures.
ENDINGS = {2: "kill", 3: "hang"}

CASES = [
    node.name.removeprefix("case_")
    for node in ast.parse(SCRIPT.read_bytes()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
]


class Outcome(NamedTuple):
    """What a launch printed, and its exit status."""

    status: int
    problems: dict[str, dict[int, str]]
    errors: str


@cache
def launch(backend: str, size: int) -> Outcome:
    command = [sys.executable, "-m", "ember_ml", "launch", "-n", str(size), "--backend", backend, str(SCRIPT)]
    done = subprocess.run(
        [*command, ENDINGS[size]], env={**os.environ}, capture_output=True, text=True, timeout=240, check=False
    )
    problems: dict[str, dict[int, str]] = {}
    for line in done.stdout.splitlines():
        text = line.partition("] ")[2]
        if text.startswith('{"rank"'):
            found = json.loads(text)
            problems.setdefault(found["case"], {})[found["rank"]] = found["problem"]
    return Outcome(done.returncode, problems, done.stderr)


@pytest.mark.parametrize("size", ENDINGS)
@pytest.mark.parametrize("case", CASES)
def test_ranks(case: str, size: int, backend: Backend) -> None:
    outcome = launch(backend.name, size)
    found = outcome.problems.get(case, {})
    assert not any(found.values()), "\n".join(found.values())
    assert sorted(found) == list(range(size)), outcome.errors


def test_a_killed_rank_ends_the_launch(backend: Backend) -> None:
    outcome = launch(backend.name, 2)
    assert outcome.status == 128 + 9, outcome.errors
    assert "all ranks must make call" in outcome.errors
    assert "at step 11; rank 0 of 2 got" in outcome.errors
    assert "ember-ml: rank 1 of 2 failed first, ended by SIGKILL" in outcome.errors


def test_a_rank_that_does_not_come_is_a_timeout(backend: Backend) -> None:
    outcome = launch(backend.name, 3)
    assert outcome.status == 1, outcome.errors
    assert "all_sum(float32[3]) at step 11; rank 0 of 3 got" in outcome.errors
    progress = [line for line in outcome.errors.splitlines() if line.rstrip().endswith("barrier() at step 11")]
    assert any("rank 2: after call" in line for line in progress), outcome.errors


def test_one_rank_needs_no_launch(backend: Backend) -> None:
    distributed.init(timeout=distributed.calls.TIMEOUT)
    assert (distributed.rank(), distributed.size(), distributed.local_rank()) == (0, 1, 0)
    distributed.barrier()
    tree = {"a": ops.ones(2), "b": None}
    for collective in (
        distributed.all_sum,
        distributed.all_mean,
        distributed.all_max,
        distributed.all_gather,
        distributed.broadcast,
        distributed.scatter,
        distributed.reduce_scatter,
        distributed.average_gradients,
    ):
        found = collective(tree)
        assert found["b"] is None
        assert found["a"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="root must be a rank from 0 to 0, got 1"):
        distributed.broadcast(ops.ones(2), root=1)
    with pytest.raises(ValueError, match="divisible"):
        distributed.scatter(1.0)


def test_average_gradients_takes_tensors_of_one_engine() -> None:
    with ember_ml.use_backend("torch"):
        tree: list[Any] = [ops.ones(1)]
    with ember_ml.use_backend("mlx"):
        tree += [ops.ones(1)]
    with pytest.raises(TypeError, match="average_gradients: tensors must be of one engine, got torch and mlx"):
        distributed.average_gradients(tree)


TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "a"}
SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_NODELIST": "gpu[07-08]",
    "SLURM_STEP_TASKS_PER_NODE": "4,2",
    "SLURM_JOB_ID": "31",
}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
NODES = ("gpu07",) * 4 + ("gpu08",) * 2


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Launch()),
        ({**TORCHRUN, "MASTER_PORT": "30"}, Launch(5, 8, 1, 4, "a", 30, (), "torchrun")),
        ({**TORCHRUN, "EMBER_ML_HOSTS": "a,b"}, Launch(5, 8, 1, 4, "a", 29500, ("a", "b"), "torchrun")),
        ({**SLURM, "MASTER_PORT": "30"}, Launch(5, 6, 1, 2, "gpu07", 30, NODES, "Slurm")),
        ({**OPEN_MPI, "MASTER_PORT": "30"}, Launch(1, 2, 1, 1, "", 30, (), "mpirun")),
        (
            {**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_PORT": "30"},
            Launch(1, 2, 1, 2, port=30, launcher="mpirun"),
        ),
        ({"PMI_RANK": "1", "PMI_SIZE": "2", "MASTER_PORT": "30"}, Launch(1, 2, 1, 2, port=30, launcher="mpirun")),
        # The batch script of Slurm is no rank, although it has these.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "6", "SLURM_LOCALID": "0"}, Launch()),
    ],
)
def test_environments(variables: dict[str, str], expected: Launch) -> None:
    assert read(variables) == expected


def test_environment_of_mlx(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps([["mac1:5000"], ["mac1:5001"], ["mac2:5000"], ["mac2:5001"]]))
    found = read({"MLX_RANK": "3", "MLX_HOSTFILE": str(hosts), "MASTER_PORT": "30"})
    assert found == Launch(3, 4, 1, 2, "mac1", 30, ("mac1", "mac1", "mac2", "mac2"), "mlx.launch")


def test_ranks_of_one_job_derive_one_port() -> None:
    assert len({read({**SLURM, "SLURM_PROCID": str(rank)}).port for rank in range(6)}) == 1
    assert read(SLURM).port != read({**SLURM, "SLURM_JOB_ID": "32"}).port


def test_hosts_that_are_not_known_are_an_error() -> None:
    with pytest.raises(ember_ml.DistributedError, match="MASTER_ADDR must be set"):
        read(OPEN_MPI).meeting_point()
    with pytest.raises(ember_ml.DistributedError, match="the host of every rank must be known"):
        read(TORCHRUN).hosts_of_ranks()
