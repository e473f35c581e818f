"""Variables that engines read when they are imported, which must be before that; processes of tests inherit them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

CACHE = Path(__file__).parent.parent / ".pytest_cache"

# The header that MLX's kernels include, and the flags with which MLX 0.32 compiles them.
PREAMBLE = "mlx/backend/cpu/compiled_preamble.h"
KERNEL_FLAGS = ["-std=c++17", "-O3", "-Wall", "-fPIC"]


def _xla_flags() -> str:
    """Flags that make JAX compile quickly: the tests compile thousands of small programs and run each a few times."""
    flags = [
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_parallel_codegen_split_count=1",
    ]
    # XLA ends the process for a flag that it does not have; 0.11 has no other way to generate code.
    if find_spec("jax") is not None and version("jax").startswith("0.10."):
        flags.append("--xla_cpu_use_fusion_emitters=false")
    return " ".join(flags)


# One thread per process, since the suite runs as many processes as there are cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", _xla_flags())
# The Python lines that operations come from, which only those who read a program need.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
# Several processes share a GPU, of whose memory the first would take three quarters.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Programs are shared between processes and with later runs.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def _compile_kernels_quickly() -> None:
    """Put a ``g++`` into the path that has compiled MLX's header once, since it takes most of the time of a kernel.

    MLX compiles a kernel of C++ for each group of operations that it fuses. GCC ignores a compiled header that does not
    fit, because of other flags or another version.
    """
    compiler, core = shutil.which("g++"), find_spec("mlx.core") if find_spec("mlx") is not None else None
    # On a Mac, MLX compiles for its GPU, and g++ is another compiler.
    if sys.platform != "linux" or compiler is None or core is None or core.origin is None:
        return
    include = Path(core.origin).parent / "include"
    folder = CACHE / f"mlx-{version('mlx')}"
    # A process that a test or a worker starts has the path already.
    if Path(compiler).parent == folder or not (include / PREAMBLE).exists():
        return
    header = folder / "include" / f"{PREAMBLE}.gch"
    if not header.exists():
        header.parent.mkdir(parents=True, exist_ok=True)
        part = header.with_suffix(f".{os.getpid()}")
        command = [compiler, *KERNEL_FLAGS, "-w", "-I", str(include), "-x", "c++-header", str(include / PREAMBLE)]
        if subprocess.run([*command, "-o", str(part)], check=False).returncode:
            return
        part.replace(header)
    wrapper = folder / "g++"
    part = folder / f"g++.{os.getpid()}"
    part.write_text(f'#!/bin/sh\nexec {shlex.quote(compiler)} -I {shlex.quote(str(folder / "include"))} "$@"\n')
    part.chmod(0o755)
    part.replace(wrapper)
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])


_compile_kernels_quickly()
