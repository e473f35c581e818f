"""A training step of a GPT on an accelerator: ``ember_ml`` against the same model hand-written in each engine.

The model is GPT-2 small: 12 layers of 768 features with 12 heads, a vocabulary of 50,304 and a head that shares the
weight of the embedding, 124 million parameters. A step is forward, loss, gradient and AdamW on 16 sequences of 1,024
tokens. Rows: eager and compiled, each in float32, in mixed precision (float32 parameters, bfloat16 products) and with
bfloat16 parameters. Hand-written means on torch ``scaled_dot_product_attention``, ``cross_entropy``,
``torch.autocast``, fused ``torch.optim.AdamW``, and ``torch.compile`` of the loss, with TF32; on MLX ``mlx.nn``,
``mlx.optimizers`` and ``mx.compile`` of the whole step; on JAX ``jax.nn.dot_product_attention`` (cuDNN's in bfloat16,
XLA's in float32), ``optax.adamw``, and ``jax.jit`` of the whole step with donated parameters and state, with TF32. Rows
of JAX are compiled only: its programs compile their steps.

Each row runs in a process of its own, without a cache of compiled programs. Both sides start with the same weights and
must have the same losses over three steps before they are timed. Then they take turns. The time of a step is the median
over all turns, its memory the peak of a step above what was allocated before the side was built, its kernels those that
the profiler counts, and the warm-up the time of the first three steps. JAX cannot reset its peak, so there the memory
and the warm-up of each side are measured in a process of its own, the memory as the peak of that process from the first
weight on.

The targets: at most 1.05 times the hand-written step eager and 1.03 times compiled, 1.05 times the memory, 1.1 times
the kernels of an eager step, and 1.5 times the warm-up.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

from measuring import agree, setting, table, times, write

EAGER, COMPILED = "eager", "compiled"
FLOAT32, MIXED, BFLOAT16 = "float32", "mixed", "bfloat16"
MODES, PRECISIONS = (EAGER, COMPILED), (FLOAT32, MIXED, BFLOAT16)
NATIVE, EMBER = "native", "ember_ml"
TARGETS = {
    "step": {EAGER: 1.05, COMPILED: 1.03},
    "memory": {EAGER: 1.05, COMPILED: 1.05},
    "kernels": {EAGER: 1.1},
    "warm-up": {COMPILED: 1.5},
}
RATE, BETAS, DECAY = 3e-4, (0.9, 0.95), 0.1
STEPS = 3

# Relative difference of the losses of both sides.
TOLERANCE = {FLOAT32: 1e-4, MIXED: 1e-2, BFLOAT16: 1e-2}


class Size(NamedTuple):
    """Size of the model and of a batch."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    batch: int
    length: int


def _size(text: str) -> Size:
    return Size(*map(int, text.split(",")))


SMALL = Size(12, 768, 12, 50_304, 16, 1_024)


Step = Callable[[], Any]
Weights = dict[str, Any]


def make_weights(size: Size) -> Weights:
    """Initial weights as host arrays, with those of linear layers in the order (in, out)."""
    import numpy as np

    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, "float32") * np.float32(0.02)

    def norm(path: str) -> Weights:
        return {f"{path}.weight": np.ones(size.width, "float32"), f"{path}.bias": np.zeros(size.width, "float32")}

    def linear(path: str, inputs: int, outputs: int) -> Weights:
        return {f"{path}.weight": normal(inputs, outputs), f"{path}.bias": np.zeros(outputs, "float32")}

    width = size.width
    found = {"token.weight": normal(size.vocabulary, width), "position.weight": normal(size.length, width)}
    for i in range(size.layers):
        block = f"blocks.{i}"
        found |= norm(f"{block}.norm1") | norm(f"{block}.norm2")
        found |= linear(f"{block}.mix", width, 3 * width) | linear(f"{block}.out", width, width)
        found |= linear(f"{block}.up", width, 4 * width) | linear(f"{block}.down", 4 * width, width)
    return found | norm("norm")


def make_tokens(size: Size) -> Any:
    import numpy as np

    return np.random.default_rng(1).integers(0, size.vocabulary, (size.batch, size.length + 1))


def ember_model(size: Size) -> Any:
    """The model in ember_ml, on the active engine."""
    from ember_ml import nn, ops

    class Block(nn.Module):
        def __init__(self) -> None:
            self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
            self.mix, self.out = nn.Linear(size.width, 3 * size.width), nn.Linear(size.width, size.width)
            self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            shape = batch, length, size.heads, width // size.heads
            query, key, value = (ops.reshape(y, shape) for y in ops.split(self.mix(self.norm1(x)), 3, axis=-1))
            attended = ops.dot_product_attention(query, key, value, is_causal=True)
            x = ops.add(x, self.out(ops.reshape(attended, (batch, length, width))))
            return ops.add(x, self.down(ops.gelu(self.up(self.norm2(x)), approximate=True)))

    class GPT(nn.Module):
        def __init__(self) -> None:
            self.token = nn.Embedding(size.vocabulary, size.width)
            self.position = nn.Embedding(size.length, size.width)
            self.blocks = nn.ModuleList([Block() for _ in range(size.layers)])
            self.norm = nn.LayerNorm(size.width)

        def forward(self, tokens: Any) -> Any:
            x = ops.add(self.token(tokens), self.position(ops.arange(tokens.shape[1])))
            for block in self.blocks:
                x = block(x)
            return ops.matmul(self.norm(x), ops.matrix_transpose(self.token.weight))

    return GPT()


def ember_step(engine: str, size: Size, mode: str, precision: str) -> Step:
    """A step of the model in ember_ml, on the default device of the active engine."""
    from ember_ml import nn, ops, optim, transform

    model = ember_model(size)
    model.load_state_dict(make_weights(size))
    if precision == BFLOAT16:
        model.astype("bfloat16")
    policy = nn.Precision("bf16-mixed") if precision == MIXED else None
    optimizer = optim.AdamW(RATE, *BETAS, weight_decay=DECAY).init(model)
    batch = ops.asarray(make_tokens(size))
    x, y = batch[:, :-1], batch[:, 1:]

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        logits = model(x) if policy is None else policy.apply(model, x)
        return ops.sparse_categorical_crossentropy(y, logits, from_logits=True)

    gradient = transform.value_and_grad(loss_of)

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = gradient(model, x, y)
        optimizer.update(model, grads)
        return loss

    run = transform.compile(step) if mode == COMPILED else step
    if engine != "mlx":
        return lambda: run(model, optimizer, x, y)

    def finished() -> Any:
        loss = run(model, optimizer, x, y)
        ops.eval(loss, model.tensors(), optimizer.tensors())
        return loss

    return finished


def torch_step(size: Size, mode: str, precision: str, device: str) -> Step:
    """A step of the model in torch."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
            self.mix, self.out = nn.Linear(size.width, 3 * size.width), nn.Linear(size.width, size.width)
            self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            shape = batch, length, size.heads, width // size.heads
            query, key, value = (y.view(shape).transpose(1, 2) for y in self.mix(self.norm1(x)).split(width, dim=2))
            attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).contiguous().view(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(size.vocabulary, size.width)
            self.position = nn.Embedding(size.length, size.width)
            self.blocks = nn.ModuleList([Block() for _ in range(size.layers)])
            self.norm = nn.LayerNorm(size.width)

        def forward(self, tokens: Any) -> Any:
            x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x)
            return functional.linear(self.norm(x), self.token.weight)

    model, weights = GPT(), make_weights(size)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            weight = torch.from_numpy(weights[path])
            is_linear = weight.ndim == 2 and not path.startswith(("token", "position"))
            parameter.copy_(weight.T if is_linear else weight)
    model.to(device, torch.bfloat16 if precision == BFLOAT16 else torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, BETAS, weight_decay=DECAY, fused=True)
    batch = torch.from_numpy(make_tokens(size)).to(device)
    x, y = batch[:, :-1], batch[:, 1:]

    def loss_of(x: Any, y: Any) -> Any:
        with torch.autocast(device, torch.bfloat16, enabled=precision == MIXED):
            logits = model(x)
            return functional.cross_entropy(logits.flatten(0, 1), y.flatten())

    run = torch.compile(loss_of) if mode == COMPILED else loss_of

    def step() -> Any:
        loss = run(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def mlx_step(size: Size, mode: str, precision: str, device: str) -> Step:
    """A step of the model in MLX."""
    import mlx.core as mx
    import mlx.optimizers
    from mlx import nn
    from mlx.utils import tree_unflatten

    compute = mx.float32 if precision == FLOAT32 else mx.bfloat16

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
            self.mix, self.out = nn.Linear(size.width, 3 * size.width), nn.Linear(size.width, size.width)
            self.up, self.down = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)

        def __call__(self, x: Any) -> Any:
            batch, length, width = x.shape
            shape = batch, length, size.heads, width // size.heads
            query, key, value = (
                y.reshape(shape).transpose(0, 2, 1, 3) for y in mx.split(self.mix(self.norm1(x)), 3, axis=-1)
            )
            scale = (width // size.heads) ** -0.5
            attended = mx.fast.scaled_dot_product_attention(query, key, value, scale=scale, mask="causal")
            x = x + self.out(attended.transpose(0, 2, 1, 3).reshape(batch, length, width))
            return x + self.down(nn.gelu_approx(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(size.vocabulary, size.width)
            self.position = nn.Embedding(size.length, size.width)
            self.blocks = [Block() for _ in range(size.layers)]
            self.norm = nn.LayerNorm(size.width)

        def __call__(self, tokens: Any) -> Any:
            x = self.token(tokens) + self.position(mx.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.token.as_linear(self.norm(x))

    model = GPT()
    pairs = []
    for path, weight in make_weights(size).items():
        is_linear = weight.ndim == 2 and not path.startswith(("token", "position"))
        pairs.append((path, mx.array(weight.T if is_linear else weight)))
    model.update(tree_unflatten(pairs))
    if precision == BFLOAT16:
        model.set_dtype(mx.bfloat16)
    optimizer = mlx.optimizers.AdamW(RATE, list(BETAS), weight_decay=DECAY, bias_correction=True)
    optimizer.init(model.trainable_parameters())
    batch = mx.array(make_tokens(size))
    x, y = batch[:, :-1], batch[:, 1:]

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        if precision == MIXED:
            parameters = mlx.utils.tree_map(lambda p: p.astype(compute), parameters)
        model.update(parameters)
        return nn.losses.cross_entropy(model(x).astype(mx.float32), y, reduction="mean")

    gradient = mx.value_and_grad(loss_of)
    state = [model.state, optimizer.state]

    def step(x: Any, y: Any) -> Any:
        parameters = model.trainable_parameters()
        loss, grads = gradient(parameters, x, y)
        model.update(optimizer.apply_gradients(grads, parameters))
        return loss

    run = mx.compile(step, inputs=state, outputs=state) if mode == COMPILED else step

    def finished() -> Any:
        loss = run(x, y)
        mx.eval(loss, state)
        return loss

    return finished


def jax_step(size: Size, mode: str, precision: str, device: str) -> Step:
    """A compiled step of the model in JAX."""
    import jax
    import jax.numpy as jnp
    import optax
    from jax import lax, nn

    compute = jnp.float32 if precision == FLOAT32 else jnp.bfloat16
    attention = "cudnn" if device == "cuda" and precision != FLOAT32 else "xla"

    def linear(parameters: Weights, path: str, x: Any) -> Any:
        return x @ parameters[f"{path}.weight"] + parameters[f"{path}.bias"]

    def norm(parameters: Weights, path: str, x: Any) -> Any:
        # Statistics in float32, as in Flax.
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide, axis=-1, keepdims=True)
        variance = jnp.mean(jnp.square(wide - mean), axis=-1, keepdims=True)
        scaled = (wide - mean) * lax.rsqrt(variance + 1e-5) * parameters[f"{path}.weight"]
        return (scaled + parameters[f"{path}.bias"]).astype(x.dtype)

    def block(parameters: Weights, path: str, x: Any) -> Any:
        batch, length, width = x.shape
        shape = batch, length, size.heads, width // size.heads
        mixed = linear(parameters, f"{path}.mix", norm(parameters, f"{path}.norm1", x))
        query, key, value = (y.reshape(shape) for y in jnp.split(mixed, 3, axis=-1))
        attended = nn.dot_product_attention(query, key, value, is_causal=True, implementation=attention)
        x = x + linear(parameters, f"{path}.out", attended.reshape(batch, length, width))
        z = nn.gelu(linear(parameters, f"{path}.up", norm(parameters, f"{path}.norm2", x)), approximate=True)
        return x + linear(parameters, f"{path}.down", z)

    def loss_of(parameters: Weights, x: Any, y: Any) -> Any:
        parameters = {path: weight.astype(compute) for path, weight in parameters.items()}
        z = parameters["token.weight"][x] + parameters["position.weight"]
        for i in range(size.layers):
            z = block(parameters, f"blocks.{i}", z)
        logits = norm(parameters, "norm", z) @ parameters["token.weight"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), y).mean()

    place = jax.devices(device)[0]
    stored = jnp.bfloat16 if precision == BFLOAT16 else jnp.float32
    parameters = {path: jax.device_put(weight.astype(stored), place) for path, weight in make_weights(size).items()}
    optimizer = optax.adamw(RATE, *BETAS, weight_decay=DECAY)
    state = optimizer.init(parameters)
    batch = jax.device_put(make_tokens(size).astype("int32"), place)
    x, y = batch[:, :-1], batch[:, 1:]

    def step(parameters: Weights, state: Any, x: Any, y: Any) -> Any:
        loss, grads = jax.value_and_grad(loss_of)(parameters, x, y)
        updates, state = optimizer.update(grads, state, parameters)
        return loss, optax.apply_updates(parameters, updates), state

    run = jax.jit(step, donate_argnums=(0, 1))

    def updated() -> Any:
        nonlocal parameters, state
        loss, parameters, state = run(parameters, state, x, y)
        return loss

    return updated


class Torch:
    """Measurements on torch."""

    def __init__(self, device: str) -> None:
        import torch

        # float32 products in TF32 on both sides, as is usual in training.
        torch.set_float32_matmul_precision("high")
        self.torch, self.device = torch, device
        self.is_cuda = device == "cuda"

    def wait(self, loss: Any = None) -> None:
        if self.is_cuda:
            self.torch.cuda.synchronize()

    def allocated(self) -> int | None:
        """Allocated bytes; the peak is counted from here on."""
        if not self.is_cuda:
            return None
        self.torch.cuda.reset_peak_memory_stats()
        return int(self.torch.cuda.memory_allocated())

    def peak(self) -> int:
        return int(self.torch.cuda.max_memory_allocated())

    def kernels(self, step: Step) -> int | None:
        """Number of kernels that a step launches."""
        if not self.is_cuda:
            return None
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as found:
            step()
            self.wait()
        return sum(event.count for event in found.key_averages() if event.device_type.name == "CUDA")


class MLX:
    """Measurements on MLX."""

    def __init__(self, device: str) -> None:
        import mlx.core as mx

        self.mx = mx

    def wait(self, loss: Any = None) -> None:
        self.mx.synchronize()

    def allocated(self) -> int | None:
        self.mx.reset_peak_memory()
        return int(self.mx.get_active_memory())

    def peak(self) -> int:
        return int(self.mx.get_peak_memory())

    def kernels(self, step: Step) -> int | None:
        return None


class JAX:
    """Measurements on JAX."""

    def __init__(self, device: str) -> None:
        import jax

        # float32 products in TF32 on both sides, as on torch.
        jax.config.update("jax_default_matmul_precision", "tensorfloat32")
        self.jax, self.device = jax, jax.devices(device)[0]

    def wait(self, loss: Any = None) -> None:
        """Wait for ``loss``, which a device has when it has computed all of a compiled step."""
        self.jax.block_until_ready(loss)

    def allocated(self) -> int | None:
        """Allocated bytes. The peak is that of the process, since JAX cannot reset it."""
        stats = self.device.memory_stats()
        return None if stats is None else int(stats["bytes_in_use"])

    def peak(self) -> int:
        return int(self.device.memory_stats()["peak_bytes_in_use"])

    def kernels(self, step: Step) -> int | None:
        return None


METERS: dict[str, Callable[[str], Any]] = {"torch": Torch, "mlx": MLX, "jax": JAX}
STEPS_BY_ENGINE: dict[str, Callable[..., Step]] = {"torch": torch_step, "mlx": mlx_step, "jax": jax_step}

ACCELERATORS = {"torch": "cuda", "mlx": "gpu", "jax": "cuda"}


def measure(
    engine: str, mode: str, precision: str, device: str, size: Size, turns: int, sides: Sequence[str] = (NATIVE, EMBER)
) -> dict[str, Any]:
    """Figures of the sides of a row; the time of a step only of both together."""
    import ember_ml

    ember_ml.set_backend(engine)
    ember_ml.ops.set_default_device(device)
    meter = METERS[engine](device)
    makers: dict[str, Callable[[], Step]] = {
        NATIVE: lambda: STEPS_BY_ENGINE[engine](size, mode, precision, device),
        EMBER: lambda: ember_step(engine, size, mode, precision),
    }
    steps: dict[str, Step] = {}
    found: dict[str, Any] = {}
    for side in sides:
        gc.collect()
        # The peak of JAX is that of the process, and says nothing about one of two sides.
        before = None if engine == "jax" and len(sides) > 1 else meter.allocated()
        steps[side] = step = makers[side]()
        start = time.perf_counter()
        losses = [float(step()) for _ in range(STEPS)]
        meter.wait()
        warm_up = time.perf_counter() - start
        meter.allocated()
        meter.wait(step())
        memory = None if before is None else meter.peak() - before
        found[side] = {"losses": losses, "warm-up": warm_up, "memory": memory, "kernels": meter.kernels(step)}
    if len(steps) == 1:
        return found
    if not agree(found[EMBER]["losses"], found[NATIVE]["losses"], TOLERANCE[precision]):
        raise SystemExit(f"the losses differ: {found[NATIVE]['losses']} and {found[EMBER]['losses']}")
    taken: dict[str, list[float]] = {side: [] for side in steps}
    for _ in range(turns):
        for side, step in steps.items():
            meter.wait()
            start = time.perf_counter()
            for _ in range(STEPS):
                loss = step()
            meter.wait(loss)
            taken[side].append((time.perf_counter() - start) / STEPS)
    for side, some in taken.items():
        found[side]["step"] = statistics.median(some)
    return found


def run_row(engine: str, mode: str, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of a row, measured in a process of its own; ``{"skipped": reason}`` if it fails.

    On JAX, the memory and the warm-up are those of a second and a third process, which run one side each.
    """
    found = run_process(engine, mode, precision, options, (NATIVE, EMBER))
    if engine != "jax" or "skipped" in found:
        return found
    for side in (NATIVE, EMBER):
        alone = run_process(engine, mode, precision, options, (side,))
        if "skipped" in alone:
            return alone
        found[side] |= {figure: alone[side][figure] for figure in ("memory", "warm-up")}
    return found


def run_process(
    engine: str, mode: str, precision: str, options: argparse.Namespace, sides: Sequence[str]
) -> dict[str, Any]:
    """Figures of the sides of a row, measured in a new process; ``{"skipped": reason}`` if it fails."""
    size = ",".join(map(str, options.size))
    row = [sys.executable, __file__, "--row", engine, mode, precision, "--size", size, "--sides", *sides]
    row += ["--device", options.device or ACCELERATORS[engine], "--turns", str(options.turns)]
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "TORCHINDUCTOR_CACHE_DIR": folder,
            "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            # Allocated as needed, since JAX takes three quarters of the memory of the GPU otherwise.
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        done = subprocess.run(row, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        # The notes of an error follow the line that names it.
        lines = [line for line in done.stderr.splitlines() if line and not line[0].isspace()]
        named = [line for line in lines if "Error" in line.partition(":")[0]] or lines
        return {"skipped": named[-1] if named else f"exit status {done.returncode}", "error": done.stderr[-4000:]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


UNITS = {
    "step": (1e3, "{:.1f}"),
    "memory": (2.0**-30, "{:.2f}"),
    "kernels": (1, "{:.0f}"),
    "warm-up": (1, "{:.1f}"),
}


def cells_of(row: dict[str, Any]) -> list[str]:
    """Cells of a row of the table: its name, then both sides and their ratio for each figure."""
    cells = [f"{row['engine']} {row['mode']} {row['precision']}"]
    if "skipped" in row:
        return [*cells, "not measured"]
    for figure, (factor, form) in UNITS.items():
        native, ours = row[NATIVE][figure], row[EMBER][figure]
        if native is None:
            cells += ["-", ""]
            continue
        ratio, target = ours / native, TARGETS[figure].get(row["mode"])
        text = times(ratio) if target is None or ratio <= target else f"[red]{times(ratio)}[/]"
        cells += [f"{form.format(native * factor)} / {form.format(ours * factor)}", text]
    return cells


def shown(found: list[dict[str, Any]]) -> Any:
    """Table of all rows."""
    made = table("A training step, native / ember_ml and their ratio")
    for column in ("", "ms", "", "GiB", "", "kernels", "", "warm-up s", ""):
        made.add_column(column, justify="left" if not column else "right")
    for row in found:
        made.add_row(*cells_of(row))
    return made


def main(given: list[str] | None = None) -> None:
    engines = [name for name in STEPS_BY_ENGINE if find_spec(name) is not None]
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    add("--engines", nargs="+", choices=engines, default=engines, metavar="NAME", help=", ".join(engines))
    add("--modes", nargs="+", choices=MODES, default=MODES, metavar="MODE", help=", ".join(MODES))
    add("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS, metavar="NAME", help=", ".join(PRECISIONS))
    add("--device", help="the device, by default the GPU of the engine; cpu runs a small --size for a test")
    add("--turns", type=int, default=7, help="turns of three steps per side, by default 7")
    add("--json", metavar="PATH", help="write the figures to PATH, or to standard output for -")
    shape = "LAYERS,WIDTH,HEADS,VOCABULARY,BATCH,LENGTH"
    add("--size", type=_size, default=SMALL, metavar=shape, help="size of the model, by default GPT-2 small")
    add("--row", nargs=3, metavar=("ENGINE", "MODE", "PRECISION"), help=argparse.SUPPRESS)
    add("--sides", nargs="+", choices=(NATIVE, EMBER), default=(NATIVE, EMBER), help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.row:
        engine, mode, precision = options.row
        figures = measure(engine, mode, precision, options.device, options.size, options.turns, options.sides)
        print(json.dumps(figures))
        return
    from rich.console import Console

    progress = Console(stderr=True)
    results = progress if options.json == "-" else Console()
    found = []
    for engine, mode, precision in product(options.engines, options.modes, options.precisions):
        if (engine, mode) == ("jax", EAGER):
            continue
        progress.print(f"{engine}, {mode}, {precision} ...", highlight=False)
        row = run_row(engine, mode, precision, options)
        found.append({"engine": engine, "mode": mode, "precision": precision, **row})
        # A run that is stopped has shown what it measured.
        progress.print("  ".join(cells_of(found[-1])[1:]), highlight=False)
    results.print(shown(found))
    for row in found:
        if "skipped" in row:
            results.print(f"{row['engine']} {row['mode']} {row['precision']}: {row['skipped']}", highlight=False)
    missing = [name for name in STEPS_BY_ENGINE if name not in engines]
    if missing:
        results.print(f"Not measured, because not installed: {', '.join(missing)}.")
    write({**setting("optax"), "size": options.size._asdict(), "rows": found}, options.json)


if __name__ == "__main__":
    main()
