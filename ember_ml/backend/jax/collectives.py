"""Collective operations on JAX: compiled functions of arrays that are spread over the processes.

Each collective is a program of its own, so it cannot be part of a function that ``jax.jit`` compiles for one process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ember_ml.backend.jax.core import is_traced
from ember_ml.backend.jax.gradients import with_rule
from ember_ml.backend.protocol import Collectives
from ember_ml.dispatch import REGISTRY
from ember_ml.distributed import calls
from ember_ml.distributed.launch import LAUNCH
from ember_ml.dtypes import describe
from ember_ml.errors import UnsupportedError
from ember_ml.shapes.collectives import check_root, part_length

SIZE = LAUNCH.size

# JAX 0.10: gloo waits for a rank that does not come for longer than any timeout that can be set.
TIMES_OUT = False

BUCKET_BYTES = calls.BUCKET_BYTES

_TRANSPORT = cast(Collectives, sys.modules[__name__])


def start(timeout: float) -> None:
    """Do nothing: the processes are connected when the engine is loaded, before it computes."""


def exchange(header: bytes) -> list[bytes]:
    """Headers of all ranks."""
    found = np.asarray(_gather(jax.device_put(np.frombuffer(header, np.uint8), jax.local_devices(backend="cpu")[0])))
    return [part.tobytes() for part in found.reshape(SIZE, -1)]


def average(buckets: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Means over all ranks of the arrays of each bucket."""
    found = [_split(_mean(_join(list(tensors))), tuple(x.shape for x in tensors)) for tensors in buckets]
    return jax.block_until_ready(found)


_join = jax.jit(lambda tensors: jnp.concatenate([x.ravel() for x in tensors]))


def _parts(flat: Array, shapes: tuple[tuple[int, ...], ...]) -> list[Array]:
    ends = list(accumulate(int(np.prod(shape)) for shape in shapes))
    return [part.reshape(shape) for part, shape in zip(jnp.split(flat, ends[:-1]), shapes, strict=True)]


_split = jax.jit(_parts, static_argnums=1)


def all_sum(x: Array, /) -> Array:
    return x if SIZE == 1 else _run("all_sum", x)


def all_mean(x: Array, /) -> Array:
    return x if SIZE == 1 else _run("all_mean", x)


def all_max(x: Array, /) -> Array:
    return x if SIZE == 1 else _run("all_max", x)


def all_gather(x: Array, /) -> Array:
    return jnp.atleast_1d(x) if SIZE == 1 else _run("all_gather", x)


def broadcast(x: Array, /, root: int = 0) -> Array:
    check_root(root, SIZE)
    return x if SIZE == 1 else _run("broadcast", x, root)


def scatter(x: Array, /, root: int = 0) -> Array:
    check_root(root, SIZE)
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _run("scatter", x, root)


def reduce_scatter(x: Array, /) -> Array:
    part_length(x.shape, SIZE)
    return x if SIZE == 1 else _run("reduce_scatter", x)


@cache
def _mesh(device: jax.Device) -> Mesh:
    """One device of each process, at the place that ``device`` has in its own."""
    place = jax.local_devices(backend=device.platform).index(device)
    others = [jax.local_devices(rank, device.platform)[place] for rank in range(SIZE)]
    return Mesh(others, ("ranks",))


def _program(function: Callable[..., Array], divided: bool = False) -> Callable[..., Array]:
    """Function of the arrays of all ranks, stacked, as a function of the array of this rank.

    Args:
        function: from the stacked arrays and static arguments to the result.
        divided: whether each rank receives its part of the first axis of the result, or all of it.
    """

    @cache
    def on(mesh: Mesh) -> Callable[..., Array]:
        out = NamedSharding(mesh, PartitionSpec("ranks") if divided else PartitionSpec())
        return jax.jit(function, static_argnums=(1, 2), out_shardings=out)

    def run(x: Array, *args: int) -> Array:
        (device,) = x.devices()
        mesh = _mesh(device)
        local = x if x.ndim else x[None]
        shape = (SIZE * local.shape[0], *local.shape[1:])
        if not x.size:
            # JAX 0.10: the parts of an empty array that a program divides have the shape of the whole.
            whole = function(jnp.zeros(shape, x.dtype), x.shape, *args)
            return whole[: whole.shape[0] // SIZE] if divided else whole
        spread = NamedSharding(mesh, PartitionSpec("ranks"))
        stacked = jax.make_array_from_single_device_arrays(shape, spread, [local])
        return on(mesh)(stacked, x.shape, *args).addressable_data(0)

    return run


def _apart(x: Array, shape: tuple[int, ...]) -> Array:
    """The arrays of the ranks along an axis of their own."""
    return x.reshape(SIZE, *shape)


def _sum(x: Array, shape: tuple[int, ...], root: int = 0) -> Array:
    return _apart(x, shape).sum(0, dtype=x.dtype)


def _of_root(x: Array, shape: tuple[int, ...], root: int = 0) -> Array:
    return _apart(x, shape)[root]


_gather = _program(lambda x, shape, root=0: x)
_mean = _program(lambda x, shape, root=0: _sum(x, shape) / SIZE)

_PROGRAMS = {
    "all_sum": _program(_sum),
    "all_mean": _mean,
    "all_max": _program(lambda x, shape, root=0: _apart(x, shape).max(0)),
    "all_gather": _gather,
    "broadcast": _program(_of_root),
    "scatter": _program(_of_root, divided=True),
    "reduce_scatter": _program(_sum, divided=True),
}


def _evaluate(x: Array) -> Array:
    return x.block_until_ready()


def _run(name: str, x: Array, *args: int) -> Array:
    """A collective, checked and waited for, with the gradient rule of the operation."""
    return _RUNS[name](x, *args)


def _collective(name: str) -> Callable[..., Array]:
    def run(x: Array, *args: int) -> Array:
        if is_traced(x):
            raise UnsupportedError(
                "collectives of several ranks must be called outside of compiled functions on the jax backend, "
                f"got {describe(x)} inside of one; compile what comes before and after"
            )
        text = f"{name}({', '.join([describe(x), *(f'root={root}' for root in args)])})"
        return calls.run(_TRANSPORT, text, lambda: _evaluate(_PROGRAMS[name](x, *args)))

    return with_rule(run, f"collectives.{name}" if f"collectives.{name}" in REGISTRY else name)


_RUNS = {name: _collective(name) for name in _PROGRAMS}
