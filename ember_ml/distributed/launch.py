"""The launch that this process is a rank of, as the variables of torchrun, MLX, MPI or Slurm describe it."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ember_ml.errors import DistributedError

# Ports of launches without one of their own: below the ports that systems give to outgoing connections.
_FIRST_PORT, _PORTS = 20000, 12000

_LOCAL = "127.0.0.1"


class Launch(NamedTuple):
    """A rank among ``size``, where the ranks meet, and which of them are on this host.

    ``address`` and ``port`` are those of rank 0; ``address`` is empty if nothing says it. ``hosts`` has the host of
    each rank, if all are known.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    address: str = _LOCAL
    port: int = 0
    hosts: tuple[str, ...] = ()
    launcher: str = ""

    def meeting_point(self) -> str:
        """Host and port of rank 0; an error that says what to set if the launcher does not give them."""
        if not self.address:
            raise DistributedError(
                f"MASTER_ADDR must be set to the host of rank 0 for ranks of {self.launcher} on several hosts, got none"
            )
        return f"{self.address}:{self.port}"

    def hosts_of_ranks(self) -> tuple[str, ...]:
        """Host of each rank; an error if that is not known."""
        if self.hosts:
            return self.hosts
        if self.local_size == self.size:
            return (self.address or _LOCAL,) * self.size
        raise DistributedError(
            f"the host of every rank must be known, got only that of rank 0 from {self.launcher}; "
            "start the program with ember-ml launch --hosts or mlx.launch"
        )


def read(variables: Mapping[str, str]) -> Launch:
    """Launch that environment variables describe; one rank alone if they describe none.

    >>> read({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_PORT": "29500"})[:3]
    (1, 4, 1)
    """
    for reader in (_of_torchrun, _of_mlx, _of_open_mpi, _of_slurm, _of_mpich):
        found = reader(variables)
        if found is not None:
            return found
    return Launch()


def _of_torchrun(variables: Mapping[str, str]) -> Launch | None:
    """Launch of torchrun, or of ``ember-ml launch``, which sets the same variables."""
    if not {"RANK", "WORLD_SIZE"} <= variables.keys():
        return None
    size = int(variables["WORLD_SIZE"])
    return Launch(
        int(variables["RANK"]),
        size,
        int(variables.get("LOCAL_RANK", variables["RANK"])),
        int(variables.get("LOCAL_WORLD_SIZE", size)),
        variables.get("MASTER_ADDR", _LOCAL),
        int(variables.get("MASTER_PORT", 29500)),
        tuple(filter(None, variables.get("EMBER_ML_HOSTS", "").split(","))),
        "torchrun",
    )


def _of_mlx(variables: Mapping[str, str]) -> Launch | None:
    """Launch of ``mlx.launch``: its file of hosts has the addresses of each rank."""
    if "MLX_RANK" not in variables:
        return None
    rank, hosts = int(variables["MLX_RANK"]), _mlx_hosts(variables)
    size = len(hosts) or int(variables.get("MLX_WORLD_SIZE", 1))
    here = [other for other, host in enumerate(hosts) if host == hosts[rank]] or [rank]
    address = hosts[0] if hosts else variables.get("MASTER_ADDR", "")
    return Launch(rank, size, here.index(rank), len(here), address, _port(variables, str(hosts)), hosts, "mlx.launch")


def _mlx_hosts(variables: Mapping[str, str]) -> tuple[str, ...]:
    path = variables.get("MLX_HOSTFILE")
    if path is None:
        return ()
    return tuple(addresses[0].rpartition(":")[0] for addresses in json.loads(Path(path).read_text(encoding="utf-8")))


def _of_open_mpi(variables: Mapping[str, str]) -> Launch | None:
    if "OMPI_COMM_WORLD_SIZE" not in variables:
        return None
    size, local_size = int(variables["OMPI_COMM_WORLD_SIZE"]), int(variables.get("OMPI_COMM_WORLD_LOCAL_SIZE", 1))
    return Launch(
        int(variables["OMPI_COMM_WORLD_RANK"]),
        size,
        int(variables.get("OMPI_COMM_WORLD_LOCAL_RANK", 0)),
        local_size,
        variables.get("MASTER_ADDR", _LOCAL if size == local_size else ""),
        _port(variables, variables.get("PMIX_NAMESPACE") or variables.get("OMPI_MCA_ess_base_jobid", "")),
        launcher="mpirun",
    )


def _of_mpich(variables: Mapping[str, str]) -> Launch | None:
    if not {"PMI_RANK", "PMI_SIZE"} <= variables.keys():
        return None
    rank, size = int(variables["PMI_RANK"]), int(variables["PMI_SIZE"])
    local_rank, local_size = int(variables.get("MPI_LOCALRANKID", rank)), int(variables.get("MPI_LOCALNRANKS", size))
    address = variables.get("MASTER_ADDR", _LOCAL if size == local_size else "")
    return Launch(rank, size, local_rank, local_size, address, _port(variables, ""), launcher="mpirun")


def _of_slurm(variables: Mapping[str, str]) -> Launch | None:
    """Task of ``srun``. The variables of a step are absent in the batch script, which is no rank."""
    if not {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"} <= variables.keys():
        return None
    nodes = _nodes(variables["SLURM_STEP_NODELIST"])
    tasks = _tasks(variables.get("SLURM_STEP_TASKS_PER_NODE", ""))
    # Ranks fill one node after the other, which is what srun does unless --distribution says something else.
    is_block = variables.get("SLURM_DISTRIBUTION", "block").startswith("block") and len(tasks) == len(nodes)
    hosts = tuple(node for node, count in zip(nodes, tasks, strict=False) for _ in range(count)) if is_block else ()
    size, node = int(variables["SLURM_STEP_NUM_TASKS"]), int(variables.get("SLURM_NODEID", 0))
    return Launch(
        int(variables["SLURM_PROCID"]),
        size,
        int(variables.get("SLURM_LOCALID", 0)),
        tasks[node] if node < len(tasks) else size,
        variables.get("MASTER_ADDR", nodes[0]),
        _port(variables, variables.get("SLURM_JOB_ID", "") + "." + variables.get("SLURM_STEP_ID", "")),
        hosts,
        "Slurm",
    )


def _nodes(text: str) -> list[str]:
    """Names of a node list of Slurm.

    >>> _nodes("gpu[01-03,7],login")
    ['gpu01', 'gpu02', 'gpu03', 'gpu7', 'login']
    """
    found = []
    for prefix, ranges, suffix in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?([^,\[\]]*)", text):
        for part in ranges.split(",") if ranges else [""]:
            first, _, last = part.partition("-")
            numbers = [f"{i:0{len(first)}d}" for i in range(int(first), int(last) + 1)] if last else [first]
            found += [prefix + number + suffix for number in numbers]
    return found


def _tasks(text: str) -> list[int]:
    """Number of tasks of each node, which Slurm abbreviates.

    >>> _tasks("4(x2),1")
    [4, 4, 1]
    """
    return [int(count) for count, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text) for _ in range(int(times or 1))]


def _port(variables: Mapping[str, str], name: str) -> int:
    """Port of rank 0: the one that is set, or one that all ranks derive from the name of their launch."""
    return int(variables.get("MASTER_PORT") or _FIRST_PORT + zlib.crc32(name.encode()) % _PORTS)


# What this process was started with; a launch does not change.
LAUNCH = read(os.environ)
