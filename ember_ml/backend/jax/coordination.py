"""The connection of JAX with the other ranks of a launch, which must exist before JAX computes anything."""

from __future__ import annotations

import atexit
import os
import sys
from types import TracebackType

import jax

from ember_ml.distributed import calls
from ember_ml.distributed.launch import LAUNCH

# Seconds without a sign of life after which JAX takes a process for lost, at least: busy processes are late.
_HEARTBEAT = 60


def connect(timeout: float) -> None:
    """Connect this process with the others, unless the program has done it."""
    if jax.distributed.is_initialized():
        return
    # The ports before this one are those of torch and of MLX.
    port = LAUNCH.port + 1 + LAUNCH.size
    jax.distributed.initialize(
        LAUNCH._replace(port=port).meeting_point(),
        LAUNCH.size,
        LAUNCH.rank,
        LAUNCH.local_rank if LAUNCH.local_size > 1 else None,
        initialization_timeout=max(1, round(timeout)),
        heartbeat_timeout_seconds=max(_HEARTBEAT, round(timeout)),
        shutdown_timeout_seconds=max(1, round(timeout)),
    )
    _leave_after_errors()


def _leave_after_errors() -> None:
    """Let a process that ends with an error not wait for the others, which JAX does at exit."""
    show, failed = sys.excepthook, []

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        failed.append(error)
        show(kind, error, trace)

    def leave() -> None:
        if failed:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    sys.excepthook = hook
    atexit.register(leave)


if LAUNCH.size > 1:
    calls.connect(connect, times_out=True)
