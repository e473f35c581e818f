"""Files of adapters in the layout of PEFT: ``adapter_config.json`` and ``adapter_model.safetensors``."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ember_ml import ops
from ember_ml.backend import use_backend
from ember_ml.dtypes import as_dtype, written
from ember_ml.errors import UnsupportedError
from ember_ml.extend import map_tensors, tensor_entries, write_tensors
from ember_ml.models import files
from ember_ml.models.decoder import Decoder
from ember_ml.models.pretrained import PretrainedModel, Source
from ember_ml.nn.initializers import skip_initialization
from ember_ml.nn.modules import Linear, LoRA, Module
from ember_ml.nn.modules.lora import ADAPTED, Adapted, AdaptedEmbedding
from ember_ml.nn.modules.torch_state import torch_axes
from emberlint import atomic

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
_PREFIX = "base_model.model."

# Dtypes and shapes of the tensors of a file, by key.
_Stored: TypeAlias = Mapping[str, tuple[str, tuple[int, ...]]]

# Entries of adapter_config.json that are used, or do not change what a trained adapter computes. Others must be off.
_KNOWN = frozenset(
    {
        "alpha_pattern", "auto_mapping", "base_model_name_or_path", "bias", "corda_config", "ensure_weight_tying",
        "eva_config", "exclude_modules", "fan_in_fan_out", "inference_mode", "init_lora_weights", "layers_pattern",
        "layers_to_transform", "lora_alpha", "lora_dropout", "megatron_core", "modules_to_save", "peft_type",
        "peft_version", "qalora_group_size", "r", "rank_pattern", "revision", "runtime_config", "target_modules",
        "task_type", "use_rslora",
    }
)  # fmt: skip
# All entries that earlier versions of save_adapter wrote; PEFT writes more. Their adapters of a tied embedding apply
# to the output layer too, for which the files have none.
_EARLIER = frozenset(
    {
        "alpha_pattern", "base_model_name_or_path", "bias", "fan_in_fan_out", "inference_mode", "init_lora_weights",
        "lora_alpha", "lora_dropout", "modules_to_save", "peft_type", "r", "rank_pattern", "target_modules",
        "task_type", "use_rslora",
    }
)  # fmt: skip
# Key of a factor in a file: its layer, and A or B.
_FACTOR = re.compile(r"(.*)\.lora_(?:embedding_)?([AB])(?:\.weight)?")
# Initializations that leave the weights of the model as they are.
_INITIALIZATIONS = (None, True, False, "gaussian", "eva", "orthogonal")


def save_adapter(lora: LoRA, folder: str | os.PathLike[str], *, base_model: str | None = None) -> None:
    """Write adapters, and the modules that were trained with them, to a folder that PEFT and ``load_adapter`` open.

    Args:
        base_model: name or folder of the model without adapters, for PEFT to find it.
    """
    if not isinstance(lora, LoRA):
        raise TypeError(f"save_adapter: lora must be an nn.LoRA, got {written(lora)}")
    sources = _adapter_sources(lora.model)
    parts: dict[str, dict[int, Adapted]] = {}
    for path, layer in lora.layers.items():
        source = sources[f"{path}.weight"]
        parts.setdefault(_layer_name(source), {})[source.part[0]] = layer
    counts = {_layer_name(source): source.part[1] for source in sources.values()}
    entries: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    alphas: dict[str, float] = {}
    with use_backend(lora.backend):
        for name, layers in parts.items():
            a, b, alpha = _joined(layers, counts[name], lora.rank_stabilized)
            first = next(iter(layers.values()))
            ranks[name], alphas[name] = int(a.shape[1]), int(alpha) if alpha == int(alpha) else alpha
            for half, tensor in (("A", a), ("B", b)):
                key = f"lora_embedding_{half}" if isinstance(first, AdaptedEmbedding) else f"lora_{half}.weight"
                entries[f"{_PREFIX}{name}.{key}"] = _entry(ops.transpose(tensor))
        # PEFT applies the adapter of an embedding to its lookups alone: the output layer has one of its own.
        tied = []
        for other, name in _shared(lora.model).items():
            output, embedding = _layer_of(other), _layer_of(name)
            if embedding in parts:
                tied.append(output)
                ranks[output], alphas[output] = ranks[embedding], alphas[embedding]
                entries[f"{_PREFIX}{output}.lora_A.weight"] = _entry(parts[embedding][0].lora_b)
                entries[f"{_PREFIX}{output}.lora_B.weight"] = _entry(parts[embedding][0].lora_a)
        whole = _trained_sources(lora, sources)
        state: dict[str, Any] = lora.model.state_dict()
        for path, source in whole.items():
            entries[_PREFIX + source.name] = _entry(source.restore([state[path]]))
        modules = {_layer_name(source) for source in whole.values()}
        # A tensor of two layers is written for both, since PEFT would replace one of them alone.
        for other, name in _shared(lora.model).items():
            if _PREFIX + name in entries:
                if not isinstance(lora.model, Decoder):
                    raise UnsupportedError(
                        f"save_adapter: {name} must be frozen or adapted, since {other} is the same tensor, got it "
                        "trained as a whole"
                    )
                entries[_PREFIX + other] = entries[_PREFIX + name]
                modules.add(_layer_of(other))
        # PEFT expects all tensors of a module, also those that it shares with another.
        for other, path in _copies(lora.model, sources).items():
            if any(other.startswith(f"{name}.") for name in modules):
                entries.setdefault(_PREFIX + other, _entry(sources[path].restore([state[path]])))
    linear = [path for path, layer in lora.layers.items() if not isinstance(layer, AdaptedEmbedding)]
    config = {
        "peft_type": "LORA",
        # Distinguishes these files from earlier ones, which lack it.
        "auto_mapping": None,
        "task_type": None,
        "base_model_name_or_path": base_model,
        "inference_mode": True,
        "r": lora.rank,
        "lora_alpha": int(lora.alpha) if lora.alpha == int(lora.alpha) else lora.alpha,
        "lora_dropout": lora.dropout,
        "use_rslora": lora.rank_stabilized,
        "bias": "none",
        "target_modules": sorted([*parts, *tied]),
        "modules_to_save": sorted(modules) or None,
        "rank_pattern": {name: rank for name, rank in ranks.items() if rank != lora.rank},
        "alpha_pattern": {name: alpha for name, alpha in alphas.items() if alpha != lora.alpha},
        # Whether weights have the axes (in, out) in the files of the model, as those of GPT-2.
        "fan_in_fan_out": bool(linear) and all(sources[f"{path}.weight"].axes is None for path in linear),
        "init_lora_weights": True,
    }
    if tied and isinstance(lora.model, Decoder):
        # PEFT 0.21 then trains both adapters as one if the output layer is called lm_head, as in all decoders. Versions
        # that do not know this entry ignore it, and compute the same.
        config["ensure_weight_tying"] = True
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    write_tensors(place / WEIGHTS, entries, {"format": "pt"})
    atomic.write(place / CONFIG, files.json_text(config))


def load_adapter(model: Module, folder: str | os.PathLike[str]) -> LoRA:
    """Adapters that PEFT or ``save_adapter`` wrote, as an ``nn.LoRA`` of ``model``, which is adapted in place.

    If anything does not fit, the error lists all of it, and the model is unchanged. If PEFT has changed the embedding
    or the output layer of a decoder alone where they are one tensor, they become two, as in PEFT.
    """
    if not isinstance(model, Module):
        raise TypeError(f"load_adapter: model must be a Module, got {written(model)}")
    place = Path(folder)
    for name in (CONFIG, WEIGHTS):
        if not (place / name).is_file():
            pickled = (
                "; adapter_model.bin is a pickle, which is not read" if (place / "adapter_model.bin").exists() else ""
            )
            raise FileNotFoundError(f"{place} must have {name}, got none{pickled}")
    options = _Options.read(place / CONFIG)
    stored = tensor_entries(place / WEIGHTS)
    with _untied(model, stored, options, place / WEIGHTS):
        return _load(model, place / WEIGHTS, stored, options)


def _load(model: Module, path: Path, stored: _Stored, options: _Options) -> LoRA:
    plan = _match(model, stored, options, path)
    with use_backend(model.backend):
        device = ops.get_device(next(iter(model.tensors().values())))
        tensors = map_tensors(path, device)
        factors = {path: _factors(tensors, found, options) for path, found in _used(plan.layers, tensors).items()}
        whole = {path: source.extract(tensors[key]) for path, (key, source) in plan.whole.items()}
        lora = LoRA.from_factors(
            model,
            factors,
            dropout=options.dropout,
            # PEFT also writes the weights of embeddings and output layers that are adapted.
            trained=sorted({path.rpartition(".")[0] for path in whole} - factors.keys()),
            rank_stabilized=options.is_stabilized,
        )
        model.load_state_dict(whole, strict=False)
    lora.rank, lora.alpha = options.rank, options.alpha
    return lora


@contextmanager
def _untied(model: Module, stored: _Stored, options: _Options, where: Path) -> Iterator[None]:
    """Untie the output layer of a decoder from its embedding if a file does not change both in the same way.

    PEFT changes only the module that it was told to train. An error in the block restores the model.
    """
    changed = _changed_alone(model, stored, options, where)
    if not changed:
        yield
        return
    if not isinstance(model, Decoder):
        raise UnsupportedError(
            f"{where}: the embedding and the output layer of {type(model).__name__} must be changed together, since "
            f"they are one tensor, got {', '.join(changed)}"
        )
    config, weight = model.config, model.embedding.weight
    with use_backend(model.backend):
        with skip_initialization():
            head = Linear(weight.shape[1], weight.shape[0], bias=False)
        head.weight = ops.copy(ops.matrix_transpose(weight))
        model.head, model.config = head.train(model.training), replace(config, tie_word_embeddings=False)
    try:
        yield
    except BaseException:
        model.head, model.config = None, config
        raise


def _copies(model: Module, sources: Mapping[str, Source]) -> dict[str, str]:
    """Names that files may have for a second copy of a tensor, and the path of the tensor."""
    paths = {source.name: path for path, source in sources.items()}
    names = model.duplicates() if isinstance(model, PretrainedModel) else {}
    return {other: paths[name] for other, name in names.items()}


def _shared(model: Module) -> dict[str, str]:
    """Names of weights that are those of another layer, and the names of these."""
    names = model.duplicates() if isinstance(model, PretrainedModel) else {}
    return {other: name for other, name in names.items() if name.endswith(".weight")}


def _changed_alone(model: Module, stored: _Stored, options: _Options, where: Path) -> list[str]:
    """Keys of a file that do not change two layers with a tied weight in the same way."""
    keys = {_given_name(key): key for key in stored}
    found = []
    for other, name in _shared(model).items():
        layers = _layer_of(other), _layer_of(name)
        own = [
            key
            for given, key in keys.items()
            if given in (other, name) or given.startswith(tuple(f"{layer}.lora_" for layer in layers))
        ]
        whole = [given for given in (other, name) if given in keys]
        if whole == [other]:
            is_tied = _is_kept(model, other, keys[other], where)
        else:
            is_tied = not whole or _has_both(keys, other, name, where)
        if not (is_tied and _adapts_both(keys, *layers, options, where)):
            found += own
    return found


def _adapts_both(keys: Mapping[str, str], layer: str, embedding: str, options: _Options, where: Path) -> bool:
    """Whether a file has the same adapter for an output layer and for its embedding, or for neither."""
    factors: dict[str, dict[str, str]] = {layer: {}, embedding: {}}
    for given, key in keys.items():
        half = _FACTOR.fullmatch(given)
        if half is not None and half[1] in factors:
            factors[half[1]][half[2]] = key
    one, other = factors[layer], factors[embedding]
    if not one:
        return not other or options.is_earlier
    scales = [(options.rank_of(name), options.alpha_of(name)) for name in factors]
    if len(one) != 2 or len(other) != 2 or scales[0] != scales[1]:
        return False
    with use_backend("numpy"):
        tensors = map_tensors(where)
        # The weight of the output layer is the transpose of that of the embedding.
        same = [
            ops.array_equal(tensors[one[half]], ops.transpose(tensors[other[half_of_other]]))
            for half, half_of_other in (("A", "B"), ("B", "A"))
        ]
        return all(map(bool, same))


def _is_kept(model: Module, other: str, key: str, where: Path) -> bool:
    """Whether a file has the tensor of the model, unchanged, under the second name of a tied weight."""
    sources = _sources(model)
    path = _copies(model, sources)[other]
    with use_backend(model.backend):
        kept: Any = sources[path].restore([model.state_dict()[path]])
        stored: Any = map_tensors(where, ops.get_device(kept))[key]
        stored = ops.cast(stored, kept.dtype)
        return bool(ops.array_equal(stored, kept))  # emberlint: ignore[EMB201] read on the host


def _has_both(keys: Mapping[str, str], one: str, other: str, where: Path) -> bool:
    """Whether a file has equal tensors under two names."""
    if one not in keys or other not in keys:
        return False
    with use_backend("numpy"):
        tensors = map_tensors(where)
        return bool(
            ops.array_equal(tensors[keys[one]], tensors[keys[other]])
        )  # emberlint: ignore[EMB201] read on the host


def _given_name(key: str) -> str:
    """Name of a layer or tensor, from its key in a file."""
    return key.removeprefix(_PREFIX).replace(".base_layer.", ".").replace(".modules_to_save.", ".")


class _Options(NamedTuple):
    """Entries of an ``adapter_config.json``."""

    rank: int
    alpha: float
    dropout: float
    is_stabilized: bool
    ranks: Mapping[str, int]
    alphas: Mapping[str, float]
    is_earlier: bool

    @classmethod
    def read(cls, path: Path) -> _Options:
        values = files.read_json(path)
        if values.get("peft_type") != "LORA":
            raise UnsupportedError(f"{path}: peft_type must be 'LORA', got {values.get('peft_type')!r}")
        wrong = [f"{name} must be off, got {value!r}" for name, value in values.items() if name not in _KNOWN and value]
        if values.get("bias", "none") != "none":
            wrong.append(f"bias must be 'none', got {values['bias']!r}")
        if values.get("init_lora_weights") not in _INITIALIZATIONS:
            wrong.append(
                f"init_lora_weights must leave the weights of the model unchanged, got {values['init_lora_weights']!r}"
            )
        if wrong:
            raise UnsupportedError(f"{path}: {'; '.join(wrong)}")
        rank, alpha, dropout = values.get("r", 8), values.get("lora_alpha", 8), values.get("lora_dropout", 0.0)
        ranks, alphas = values.get("rank_pattern") or {}, values.get("alpha_pattern") or {}
        numbers = [("r", rank, (int,)), ("lora_alpha", alpha, (int, float)), ("lora_dropout", dropout, (int, float))]
        wrong = [
            f"{name} must be a number, got {value!r}" for name, value, kinds in numbers if type(value) not in kinds
        ]
        for name, table in (("rank_pattern", ranks), ("alpha_pattern", alphas)):
            if not isinstance(table, dict) or not all(type(value) in (int, float) for value in table.values()):
                wrong.append(f"{name} must be an object of numbers, got {table!r}")
        if wrong or rank < 1:
            raise ValueError(f"{path}: {'; '.join(wrong) or f'r must be >= 1, got {rank}'}")
        return cls(rank, alpha, dropout, bool(values.get("use_rslora")), ranks, alphas, values.keys() == _EARLIER)

    def rank_of(self, name: str) -> int:
        return int(_by_pattern(self.ranks, name, self.rank))

    def alpha_of(self, name: str) -> float:
        return float(_by_pattern(self.alphas, name, self.alpha))


def _by_pattern(table: Mapping[str, Any], name: str, default: Any) -> Any:
    """Entry whose key matches the end of ``name``, as in PEFT."""
    for key, value in table.items():
        if re.match(rf"(.*\.)?({key})$", name):
            return value
    return default


class _Found(NamedTuple):
    """Factors of a layer in a file: their keys, and the part of the second that belongs to the layer."""

    name: str
    a: str
    b: str
    part: tuple[int, int]


class _Plan(NamedTuple):
    """What a file has for the layers of a model, and for tensors that were trained as a whole, by path."""

    layers: dict[str, _Found]
    whole: dict[str, tuple[str, Source]]


def _match(model: Module, stored: _Stored, options: _Options, where: Path) -> _Plan:
    """Where the file has what; an error lists all that does not fit the model."""
    sources = _sources(model)
    state: dict[str, Any] = model.state_dict()
    paths, copies = {source.name: path for path, source in sources.items()}, _copies(model, sources)
    layers: dict[str, list[str]] = {}
    for path, module in model.named_modules():
        if type(module) in ADAPTED:
            layers.setdefault(_layer_name(sources[f"{path}.weight"]), []).append(path)
    # Output layers whose adapter is that of the embedding, which ``_untied`` has checked.
    tied = {_layer_of(other) for other in _shared(model)}
    halves: dict[str, dict[str, str]] = {}
    # Names in the file, which patterns of the configuration match.
    given_names: dict[str, str] = {}
    plan = _Plan({}, {})
    extra, wrong = [], []
    for key, (_, shape) in stored.items():
        given = _given_name(key)
        name = model.renamed(given) if isinstance(model, PretrainedModel) else given
        half = _FACTOR.fullmatch(name)
        if half is not None and half[1] in layers:
            halves.setdefault(half[1], {})[half[2]] = key
            given_names[half[1]] = given.partition(".lora_")[0]
        elif half is None and name in paths and sources[paths[name]].part[1] == 1:
            path = paths[name]
            expected = sources[path].stored_shape(tuple(state[path].shape))
            plan.whole[path] = key, sources[path]
            wrong += _misfit(key, shape, expected)
        elif given not in copies and (half is None or half[1] not in tied):
            extra.append(key)
    missing = [f"the factor {half} of {name}" for name, found in halves.items() for half in "AB" if half not in found]
    for name, found in halves.items():
        for path in layers[name] if len(found) == 2 else ():
            part = sources[f"{path}.weight"].part
            inputs, outputs = state[f"{path}.weight"].shape
            rank = options.rank_of(given_names[name])
            wrong += _misfit(found["A"], stored[found["A"]][1], (rank, inputs))
            wrong += _misfit(found["B"], stored[found["B"]][1], (outputs * part[1], rank))
            plan.layers[path] = _Found(given_names[name], found["A"], found["B"], part)
    complaints = [f"missing: {', '.join(missing)}"] if missing else []
    complaints += [f"extra: {', '.join(extra)}"] if extra else []
    complaints += ["wrong shape:", *dict.fromkeys(wrong)] if wrong else []
    if complaints or not halves:
        title = f"{where} must have adapters of layers of {type(model).__name__}"
        raise ValueError("\n".join([title, *complaints]) if complaints else f"{title}, got none")
    return plan


def _misfit(key: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> list[str]:
    return [] if shape == expected else [f"  {key}: {list(shape)} where the model has {list(expected)}"]


def _used(layers: dict[str, _Found], tensors: Mapping[str, Any]) -> dict[str, _Found]:
    """Layers to adapt.

    A file joins the queries, keys and values of GPT-2 in one layer. A part of such a layer is left out if its rows of
    the second factor are zero, unless those of all parts are.
    """
    idle = {path for path, found in layers.items() if found.part[1] > 1 and not _rows(tensors, found)}
    alive = {found.name for path, found in layers.items() if path not in idle}
    return {path: found for path, found in layers.items() if path not in idle or found.name not in alive}


def _rows(tensors: Mapping[str, Any], found: _Found) -> list[int]:
    """Rows of the second factor that are not zero for the part of a layer."""
    b: Any = ops.to_numpy(ops.cast(tensors[found.b], "float32"))
    size = b.shape[0] // found.part[1]
    return [row for row in range(b.shape[1]) if b[found.part[0] * size :, row][:size].any()]


def _factors(tensors: Mapping[str, Any], found: _Found, options: _Options) -> tuple[Any, Any, float]:
    """Factors with the axes (in, rank) and (rank, out), and alpha."""
    a, b = ops.transpose(tensors[found.a]), ops.transpose(tensors[found.b])
    alpha, rank = options.alpha_of(found.name), options.rank_of(found.name)
    index, count = found.part
    if count == 1:
        return a, b, alpha
    size = b.shape[1] // count
    b = b[:, index * size : (index + 1) * size]
    # ``_joined`` gives each layer rows of its own, zero for the others: keep the rows of this layer.
    rows = _rows(tensors, found)
    if not rows or len(rows) == rank:
        return a, b, alpha
    kept = ops.asarray(rows)
    scale = math.sqrt(len(rows) / rank) if options.is_stabilized else len(rows) / rank
    return ops.take(a, kept, axis=1), ops.take(b, kept, axis=0), alpha * scale


def _joined(layers: dict[int, Adapted], count: int, is_stabilized: bool) -> tuple[Any, Any, float]:
    """Factors, and alpha, of the layer of a file that has ``count`` layers of the model as its parts."""
    first = next(iter(layers.values()))
    if count == 1:
        return first.lora_a, first.lora_b, first.alpha
    if len(layers) == count and all(layer.scale == first.scale for layer in layers.values()):
        same = [ops.array_equal(layer.lora_a, first.lora_a) for layer in layers.values()]
        if all(map(bool, same)):
            return first.lora_a, ops.concat([layers[i].lora_b for i in range(count)], axis=1), first.alpha
    # The product of the joined factors has the products of the parts side by side.
    a = ops.concat([layer.lora_a for layer in layers.values()], axis=1)
    rows = []
    for index, layer in layers.items():
        own = ops.multiply(layer.lora_b, layer.scale / first.scale)
        rows.append(ops.concat([own if i == index else ops.zeros_like(own) for i in range(count)], axis=1))
    rank = int(a.shape[1])
    return a, ops.concat(rows, axis=0), first.scale * (math.sqrt(rank) if is_stabilized else rank)


def _trained_sources(lora: LoRA, sources: Mapping[str, Source]) -> dict[str, Source]:
    """Sources of the tensors that are trained as a whole, by path."""
    prefixes = tuple(f"{path}." for path in lora.trained)
    found = {path: source for path, source in sources.items() if prefixes and path.startswith(prefixes)}
    parts = [path for path, source in found.items() if source.part[1] > 1]
    if parts:
        raise UnsupportedError(
            f"save_adapter: a layer that files have as a part of another must be adapted, got {', '.join(parts)}, "
            "which is trained as a whole"
        )
    return found


def _sources(model: Module) -> dict[str, Source]:
    """Where files have each tensor of a model; one without a table of names has the names and axes of torch.nn."""
    if isinstance(model, PretrainedModel):
        return model.sources()
    modules = dict(model.named_modules())
    return {
        path: Source(path, torch_axes(modules.get(prefix), name, len(tensor.shape)), (0, 1))
        for path, tensor in model.state_dict().items()
        for prefix, _, name in [path.rpartition(".")]
    }


def _adapter_sources(model: Module) -> dict[str, Source]:
    """``_sources`` with the names that files of adapters have."""
    found = _sources(model)
    if not isinstance(model, PretrainedModel):
        return found
    return {path: source._replace(name=model.adapter_name(source.name)) for path, source in found.items()}


def _layer_name(source: Source) -> str:
    return _layer_of(source.name)


def _layer_of(name: str) -> str:
    """Name of the layer of a tensor."""
    return name.rpartition(".")[0]


def _entry(tensor: Any) -> tuple[str, tuple[int, ...], Any]:
    return as_dtype(tensor.dtype).name, tuple(tensor.shape), partial(_same, tensor)


def _same(tensor: Any) -> Any:
    return tensor
