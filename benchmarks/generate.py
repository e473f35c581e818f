"""Tokens per second of decoding, and the cost of loading, compared with ``transformers``, mlx-lm and safetensors.

    python benchmarks/generate.py                              # a Llama with random weights, all engines
    python benchmarks/generate.py --engines torch --device cuda --dtype bfloat16 --compile
    python benchmarks/generate.py --load 2.0                   # a checkpoint of 2 GB in shards, also

All contenders have the same weights, in one folder, and continue the same prompt greedily; they take turns. The time of
a token is that between the first and the last one, so prompts and compilers are not in it. Loading is measured in new
processes, from files that the system has in memory, until every weight has been read once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SIZES = {
    "tiny": {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": 1000},
    "small": {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8, "vocab_size": 16000},
    "base": {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 16, "vocab_size": 32000},
    "large": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "vocab_size": 128256},
}


def config_of(sizes: dict[str, int]) -> dict[str, Any]:
    """Entries of ``config.json`` for a Llama with heads of 64 features, four of which share keys and values."""
    heads = max(4, sizes["hidden_size"] // 64)
    return {
        **sizes,
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 4,
        "max_position_embeddings": 4096,
        "rope_theta": 10000.0,
        "eos_token_id": None,
        "bos_token_id": None,
    }


def write_model(
    folder: Path, sizes: dict[str, int], dtype: str, shard_size: int = 50 * 10**9, is_random: bool = True
) -> int:
    """Write a model with random weights, or with ones, and return its number of bytes."""
    import ember_ml
    from ember_ml import models, ops
    from ember_ml.models.llama import Llama, LlamaConfig
    from ember_ml.nn.initializers import skip_initialization

    config = LlamaConfig.from_dict(config_of(sizes))
    with ember_ml.use_backend("numpy"):
        with skip_initialization():
            model = Llama(config, dtype=dtype)
        ops.set_seed(0)
        drawn = {
            path: ops.ones(x.shape, dtype=dtype)
            if len(x.shape) == 1 or not is_random
            else ops.random_normal(x.shape, 0.0, 0.02, dtype=dtype)
            for path, x in model.tensors().items()
        }
        model.assign(drawn)
        models.save(model, folder, max_shard_size=shard_size)
        return sum(x.nbytes for x in drawn.values())


def intervals(tokens: Iterator[Any]) -> float:
    """Tokens per second, from the first token to the last."""
    next(tokens)
    start, count = time.perf_counter(), 0
    for _ in tokens:
        count += 1
    return count / (time.perf_counter() - start)


def ember(folder: Path, engine: str, options: argparse.Namespace, compile: bool) -> Callable[[], float]:
    import ember_ml
    from ember_ml import models

    with ember_ml.use_backend(engine):
        model = models.load(folder, device=options.device if engine == "torch" else None)
    prompt = list(range(1, options.prompt + 1))
    return lambda: intervals(model.stream(prompt, options.tokens, temperature=0, compile=compile))


def of_transformers(folder: Path, options: argparse.Namespace, compile: bool) -> Callable[[], float]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).to(options.device).eval()
    prompt = torch.arange(1, options.prompt + 1, device=options.device)[None]
    more: dict[str, Any] = {"cache_implementation": "static"} if compile else {}

    class Clock:
        """Streamer that notes when it gets a token; the first call is for the prompt."""

        def __init__(self) -> None:
            self.times: list[float] = []

        def put(self, value: Any) -> None:
            value.tolist()
            self.times.append(time.perf_counter())

        def end(self) -> None:
            pass

    def run() -> float:
        clock = Clock()
        count = options.tokens
        with torch.no_grad():
            model.generate(
                prompt,
                max_new_tokens=count,
                min_new_tokens=count,
                do_sample=False,
                streamer=clock,
                pad_token_id=0,
                **more,
            )
        return (count - 1) / (clock.times[-1] - clock.times[1])

    return run


def of_mlx_lm(folder: Path, options: argparse.Namespace) -> Callable[[], float]:
    import mlx.core as mx
    from mlx_lm.generate import generate_step
    from mlx_lm.models.llama import Model, ModelArgs

    model = Model(ModelArgs.from_dict(json.loads((folder / "config.json").read_text())))
    model.load_weights(str(folder / "model.safetensors"))
    mx.eval(model.parameters())
    prompt = mx.arange(1, options.prompt + 1)
    return lambda: intervals(generate_step(prompt, model, max_tokens=options.tokens))


def contenders(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, str, Callable[[], float]]]:
    """Engine, name and function that returns tokens per second, for each contender; ours come first."""
    for engine in options.engines:
        yield engine, "ember_ml", ember(folder, engine, options, compile=engine == "jax")
        if engine == "torch":
            if find_spec("transformers"):
                yield engine, "transformers", of_transformers(folder, options, compile=False)
            if options.compile:
                yield engine, "ember_ml compiled", ember(folder, engine, options, compile=True)
                if find_spec("transformers"):
                    yield engine, "transformers compiled", of_transformers(folder, options, compile=True)
        if engine == "mlx" and find_spec("mlx_lm"):
            yield engine, "mlx-lm", of_mlx_lm(folder, options)


def decode(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Tokens per second of each contender, the median of the repeats."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder, SIZES[options.model], options.dtype)
        runs = list(contenders(folder, options))
        found: dict[tuple[str, str], list[float]] = {(engine, name): [] for engine, name, _ in runs}
        for repeat in range(options.repeats + 1):
            for engine, name, run in runs:
                rate = run()
                if repeat:
                    found[engine, name].append(rate)
    return [
        {"engine": engine, "name": name, "tokens_per_second": statistics.median(rates)}
        for (engine, name), rates in found.items()
    ]


# Programs of the processes that load; each prints seconds and the growth of the peak of the memory.
_OWN = {
    "numpy": "from safetensors.numpy import load_file\nfound = [load_file(f) for f in files]\n"
    "total = sum(float(x.sum()) for d in found for x in d.values())",
    "torch": "from safetensors.torch import load_file\nfound = [load_file(f) for f in files]\n"
    "total = sum(float(x.sum()) for d in found for x in d.values())",
    "mlx": "found = [mx.load(f) for f in files]\nmx.eval(found)\n"
    "total = sum(float(x.sum()) for d in found for x in d.values())",
    "jax": "from safetensors.flax import load_file\nfound = [load_file(f) for f in files]\n"
    "total = sum(float(x.sum()) for d in found for x in d.values())",
}
_EMBER = """with ember_ml.use_backend(engine):
    found = models.load(folder)
    if engine == "mlx":
        mx.eval(list(found.tensors().values()))
    total = sum(float(x.sum()) for x in found.parameters().values())"""
_PROCESS = """import glob, resource, sys, time
engine, folder = sys.argv[1:3]
files = sorted(glob.glob(folder + "/*.safetensors"))
{imports}
import ember_ml
from ember_ml import models, ops
from ember_ml.models import llama
with ember_ml.use_backend(engine):
    ops.sum(ops.ones((2, 2)))
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
before, start = peak(), time.perf_counter()
{program}
print(time.perf_counter() - start, peak() - before)
"""
_IMPORTS = {"numpy": "", "torch": "import torch", "mlx": "import mlx.core as mx", "jax": "import jax"}


def load(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds and peak of the memory of loading a checkpoint in shards, ours and the engine's own loader in turns."""
    with TemporaryDirectory() as name:
        width = 1024 if options.load >= 0.5 else 128
        sizes = {"hidden_size": width, "intermediate_size": 4 * width, "vocab_size": 8 * width}
        # Four bytes for each weight of the attention, with a quarter of the heads for keys and values, and of the rest.
        layer, outside = 4 * 14.5 * width**2, 4 * 2 * 8 * width**2
        sizes["num_hidden_layers"] = max(1, round((options.load * 1e9 - outside) / layer))
        nbytes = write_model(Path(name), sizes, "float32", shard_size=int(options.load * 1e9 / 4), is_random=False)
        rows = []
        for engine in options.engines:
            found: dict[str, list[tuple[float, float]]] = {"ember_ml": [], "safetensors": []}
            for repeat in range(options.repeats + 1):
                for who, program in (("ember_ml", _EMBER), ("safetensors", _OWN[engine])):
                    text = _PROCESS.format(imports=_IMPORTS[engine], program=program)
                    command = [sys.executable, "-c", text, engine, name]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    if repeat:
                        seconds, memory = map(float, done.stdout.split())
                        found[who].append((seconds, memory / nbytes))
            for who, values in found.items():
                seconds, memory = (statistics.median(each) for each in zip(*values, strict=True))
                rows.append({"engine": engine, "name": who, "bytes": nbytes, "seconds": seconds, "peak": memory})
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=["numpy", "torch", "mlx", "jax"])
    parser.add_argument("--model", choices=SIZES, default="small")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="cpu", help="of torch (default: cpu)")
    parser.add_argument("--prompt", type=int, default=32, help="tokens of the prompt (default: 32)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens to generate (default: 64)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="compile on torch, too")
    parser.add_argument("--load", type=float, metavar="GB", help="measure loading of a checkpoint of this size")
    parser.add_argument("--no-decode", action="store_true", help="measure loading alone")
    parser.add_argument("--json", metavar="FILE", help="write the report to a file")
    options = parser.parse_args(arguments)
    report: dict[str, Any] = {"options": vars(options), "decode": [], "load": []}
    if not options.no_decode:
        report["decode"] = decode(options)
        print(f"decoding, {options.model} Llama in {options.dtype}, {options.tokens} tokens after {options.prompt}")
        for row in report["decode"]:
            first = next(one for one in report["decode"] if one["engine"] == row["engine"])
            ratio = first["tokens_per_second"] / row["tokens_per_second"]
            note = "" if row is first else f"  ember_ml is {ratio:.2f} times as fast"
            print(f"  {row['engine']:6} {row['name']:22} {row['tokens_per_second']:8.1f} tokens/s{note}")
    if options.load:
        report["load"] = load(options)
        print(f"loading {report['load'][0]['bytes'] / 1e9:.2f} GB in shards, and reading every weight")
        for row in report["load"]:
            print(
                f"  {row['engine']:6} {row['name']:12} {row['seconds']:7.2f} s, peak {row['peak']:.2f} of the weights"
            )
    if options.json:
        Path(options.json).write_text(json.dumps(report, indent=2, default=str) + os.linesep)


if __name__ == "__main__":
    main()
