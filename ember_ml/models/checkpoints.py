"""``load`` and ``save``: models from and to folders in the layout of Hugging Face."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml.dtypes import KINDS, as_dtype
from ember_ml.errors import UnsupportedError, warn
from ember_ml.extend import activate, backend_of, current_backend, from_view, load_backend, map_tensors
from ember_ml.models import files
from ember_ml.models.architectures import architecture_of, find_architecture
from ember_ml.models.decoder import Decoder
from ember_ml.models.pretrained import Config, PretrainedModel, Source
from ember_ml.nn.initializers import skip_initialization
from ember_ml.nn.modules.lora import Adapted
from ember_ml.types import DeviceLike, DTypeLike

# Largest file of weights, as in transformers.
_SHARD_SIZE = 50 * 10**9

# Tensors that are copied to an engine at the same time: a copy that transposes takes longer than reading the file.
_COPIES = 2


def load(
    folder_or_file: str | os.PathLike[str],
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    *,
    architecture: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> Any:
    """Model in a folder with ``config.json`` and ``model.safetensors``, in evaluation mode, on the active backend.

    Weights in several files with an index are read too. Tensors are views of the files in memory where the engine
    supports it. If anything is wrong, the error names the file and the tensor, and there is no model.

    Args:
        folder_or_file: the folder, a ``.safetensors`` file in it, or an index.
        dtype: dtype of the floating-point parameters, by default those of the files.
        device: device of the parameters, by default the default device.
        architecture: class to load in place of that in ``config.json``, such as ``"BertForSequenceClassification"``.
            Tensors of its head that the files lack are initialized, and those of another head are left out.
        config: entries that replace those of ``config.json``, such as ``{"num_labels": 3}``.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and wanted.kind not in KINDS["real floating"]:
        raise TypeError(f"load: dtype must be floating, got {wanted.name}")
    folder, paths, index = files.locate(folder_or_file)
    where = index or paths[0]
    given = files.read_config(folder)
    values = {**given, **(config or {})}
    with _naming(folder / files.CONFIG):
        model_class = find_architecture(values, architecture)
        known = {
            *given,
            *model_class.config_class.aliases,
            *(entry.name for entry in fields(model_class.config_class)),
        } - {"extra"}
        unknown = [name for name in values if name not in known]
        if unknown:
            raise ValueError(f"config must have entries of {', '.join(sorted(known))}, got {', '.join(unknown)}")
        entries: Any = model_class.config_class.from_dict(values)
    with _naming_quantization(values, folder / files.CONFIG):
        stored = files.find_tensors(paths, index)
    model = _build(model_class, entries, folder)
    sources = model.sources()
    names = _full_names(model, sources, stored)
    copies = [(other, name) for other, name in model.duplicates().items() if other in names and name in names]
    differing = [names[other] for other, name in copies if not _are_equal(stored, names[other], names[name])]
    if differing:
        warn(
            f"load: tie_word_embeddings is true in {folder / files.CONFIG}, but {where} has another tensor "
            f"{', '.join(differing)}, so the model is loaded with tie_word_embeddings=False"
        )
        model = _build(model_class, replace(entries, tie_word_embeddings=False), folder)
        sources = model.sources()
        names = _full_names(model, sources, stored)
    if isinstance(model, Decoder):
        _set_generation_config(model, folder)
    with _naming_quantization(values, folder / files.CONFIG):
        matched = _match(model, sources, names, stored, where, is_chosen=architecture is not None)
    tensors = _read(matched, stored, wanted, device)
    if architecture and any(path not in tensors for path in model.state_dict() if _is_below(path, model.heads)):
        first = next((x for x in tensors.values() if ops.is_float(x)), None)
        model.add_head(dtype=wanted if first is None else first.dtype)
    tensors.update((path, ops.asarray(x, device=device)) for path, x in model.tensors().items() if path not in tensors)
    model.assign(tensors)
    return model.eval()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Begin the message of errors of the configuration with the name of its file."""
    try:
        yield
    except (TypeError, UnsupportedError, ValueError) as error:
        raise type(error)(f"{path}: {error}") from error


@contextmanager
def _naming_quantization(values: Mapping[str, Any], path: Path) -> Iterator[None]:
    """Begin the message of errors of the tensors with the entry for quantized weights, if there is one."""
    try:
        yield
    except ValueError as error:
        # transformers and mlx-lm write these. Files may have them beside weights that are not quantized, which load.
        entry = next((name for name in ("quantization_config", "quantization") if values.get(name)), None)
        if entry is None:
            raise
        raise UnsupportedError(
            f"{path}: weights must not be quantized, got {entry}; load the model before it was quantized\n{error}"
        ) from error


def _set_generation_config(model: Decoder, folder: Path) -> None:
    values = files.read_generation(folder)
    if values is not None:
        # Module.__setattr__ would search the dictionary for modules.
        object.__setattr__(model, "_generation_config", values)
        if values.get("eos_token_id") is not None:
            with _naming(folder / files.GENERATION):
                _ = model.stop_tokens


def _build(model_class: type[PretrainedModel], config: Config, folder: Path) -> PretrainedModel:
    """Model with placeholder parameters, which take no memory: views of zeros, on NumPy if the engine has no views."""
    engine = current_backend()
    with (
        activate(engine if engine.has_views else load_backend("numpy")),
        skip_initialization(),
        _naming(folder / files.CONFIG),
    ):
        return model_class(config)


def _full_names(model: PretrainedModel, sources: dict[str, Source], stored: dict[str, files.Stored]) -> dict[str, str]:
    """Name in the files of each tensor, by the name that the model expects: renamed, with or without ``base``."""
    expected = {source.name for source in sources.values()}
    names: dict[str, str] = {}
    # A file may have a tensor under two names, of which one is that of the model.
    for name in sorted(stored, key=lambda name: name not in expected):
        ours = model.renamed(name)
        options = (ours, model.base + ours, ours.removeprefix(model.base))
        found = next((option for option in options if option in expected), ours)
        names[name if found in names else found] = name
    for other, name in model.duplicates().items():
        if other in names and name not in names:
            names[name] = names.pop(other)
    return names


def _are_equal(stored: dict[str, files.Stored], one: str, other: str) -> bool:
    if stored[one][1:] != stored[other][1:]:
        return False
    with activate(load_backend("numpy")):
        x, y = (map_tensors(stored[name].path)[name] for name in (one, other))
        return bool(ops.array_equal(x, y))  # emberlint: ignore[EMB201] read on the host


def _is_below(path: str, layers: tuple[str, ...]) -> bool:
    return path.startswith(tuple(f"{layer}." for layer in layers))


def _match(
    model: PretrainedModel,
    sources: dict[str, Source],
    names: dict[str, str],
    stored: dict[str, files.Stored],
    where: Path,
    *,
    is_chosen: bool,
) -> dict[str, Source]:
    """Source of each tensor of the model that the files have.

    An error lists what is missing, left over or of another shape.

    Args:
        is_chosen: whether the files may be those of a model with another head.
    """
    for layer in model.optional:
        own = {path: source for path, source in sources.items() if path.startswith(f"{layer}.")}
        if not any(source.name in names for source in own.values()):
            setattr(model, layer, None)
            sources = {path: source for path, source in sources.items() if path not in own}
    ties = model.layout().ties
    state: Any = model.state_dict()
    missing, misshapen = [], []
    used: set[str] = set()
    found: dict[str, Source] = {}
    for path, source in sources.items():
        name = names.get(source.name)
        if name is None:
            is_new = is_chosen and _is_below(path, model.heads)
            if path not in ties and not is_new and not model.is_defaulted(source.name):
                missing.append(source.name)
            continue
        used.add(name)
        expected = source.stored_shape(tuple(state[path].shape))
        actual = stored[name]
        if actual.shape != expected:
            misshapen.append(f"  {name} in {actual.path}: {list(actual.shape)} where the model has {list(expected)}")
        elif as_dtype(actual.dtype).kind not in KINDS["real floating"] and ops.is_float(state[path]):
            misshapen.append(f"  {name} in {actual.path}: {actual.dtype} where the model has floating-point numbers")
        if path not in ties:
            found[path] = source._replace(name=name)
    parts = {_part(model, source.name) for path, source in sources.items() if not _is_below(path, model.heads)}
    # Tensors that are not used, and whether they belong to a part that the model has, not to another head.
    unused = {
        name: _part(model, ours) in parts
        for ours, name in names.items()
        if name not in used and not model.is_ignored(ours)
    }
    extra = [name for name, is_own in unused.items() if is_own]
    heads = [name for name, is_own in unused.items() if not is_own and not is_chosen]
    complaints = [f"missing: {', '.join(dict.fromkeys(missing))}"] if missing else []
    if extra:
        complaints.append(f"extra: {', '.join(extra)} (remove them from the files if the model has no such layers)")
    if heads:
        option = f"architecture={architecture_of(model)!r}"
        complaints.append(f"extra: {', '.join(heads)} (load with {option} leaves them out)")
    complaints += ["wrong shape or dtype:", *dict.fromkeys(misshapen)] if misshapen else []
    if complaints:
        raise ValueError(
            "\n".join([f"{where} must have the tensors of {type(model).__name__} in config.json", *complaints])
        )
    return found


def _part(model: PretrainedModel, name: str) -> str:
    """Part of the model that a tensor belongs to, such as ``encoder``; those of heads are other ones."""
    return name.removeprefix(model.base).partition(".")[0]


def _read(sources: dict[str, Source], stored: dict[str, files.Stored], dtype: Any, device: Any) -> dict[str, Any]:
    """Tensors by path, of the active backend."""
    by_file: dict[Path, list[tuple[str, Source]]] = {}
    for path, source in sources.items():
        by_file.setdefault(stored[source.name].path, []).append((path, source))
    engine = current_backend()
    found: dict[str, Any] = {}
    copies: dict[str, Future[Any]] = {}
    with ThreadPoolExecutor(_COPIES) as pool:
        for file, wanted in by_file.items():
            tensors: dict[str, Any] = map_tensors(file, device)
            uses = Counter(source.name for _, source in wanted)
            reader = backend_of(tensors[wanted[0][1].name]) or engine
            for path, source in wanted:
                uses[source.name] -= 1
                # A view is unmapped after its last copy, so that few tensors are in memory twice.
                stored_tensor = tensors[source.name] if uses[source.name] else tensors.pop(source.name)
                with activate(reader):
                    x = source.extract(stored_tensor)
                    if dtype is not None and ops.is_float(x):
                        x = ops.cast(x, dtype)
                if reader is engine:
                    found[path] = x
                else:
                    copies[path] = pool.submit(copy_context().run, from_view, x, device)
                del x, stored_tensor
        found.update((path, copy.result()) for path, copy in copies.items())
    return found


def save(model: PretrainedModel, folder: str | os.PathLike[str], *, max_shard_size: int = _SHARD_SIZE) -> None:
    """Write a model to a folder that ``transformers`` and ``load`` open.

    The folder is replaced as a whole: after an error, such as an ``OSError`` for a full disk, it has the earlier model.
    If the program ends while the files are put in place, it has the earlier model, this one, or none that loads.

    Args:
        max_shard_size: number of bytes above which the weights are written to several files with an index.
    """
    if not isinstance(model, PretrainedModel):
        raise TypeError(f"save: model must be one of ember_ml.models, got {type(model).__name__}")
    adapted = [path for path, module in model.named_modules() if isinstance(module, Adapted)]
    if adapted:
        raise ValueError(
            f"save: model must have no adapters, got some at {', '.join(adapted)}; write merge().remove() of their "
            "nn.LoRA, or save_adapter"
        )
    if max_shard_size < 1:
        raise ValueError(f"save: max_shard_size must be >= 1, got {max_shard_size}")
    entries = model.stored()
    dtypes = {entry[0] for entry in entries.values() if entry[0] in ("float16", "bfloat16", "float32", "float64")}
    config = {**model.config.to_dict(), "architectures": [architecture_of(model)]}
    config.pop("torch_dtype", None)
    if len(dtypes) == 1:
        config["dtype"] = dtypes.pop()
    generation = model._generation_config if isinstance(model, Decoder) else None
    files.write_folder(Path(folder), config, generation, entries, max_shard_size)
