"""Variables that engines read when they are imported, which must be before that; processes of tests inherit them."""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path


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
# Several processes share a GPU, of whose memory the first would take three quarters.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Programs are shared between processes and with later runs.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
