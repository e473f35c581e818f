"""``load`` and ``save``: models from and to folders in the layout of Hugging Face."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml.dtypes import KINDS, as_dtype
from ember_ml.errors import UnsupportedError
from ember_ml.extend import activate, backend_of, current_backend, from_view, load_backend, map_tensors
from ember_ml.models import files
from ember_ml.models.architectures import architecture_of, find_architecture
from ember_ml.models.decoder import Decoder
from ember_ml.models.pretrained import PretrainedModel, Source
from ember_ml.nn.initializers import skip_initialization
from ember_ml.nn.modules.lora import Adapted
from ember_ml.types import DeviceLike, DTypeLike

# Largest file of weights, as in transformers.
_SHARD_SIZE = 50 * 10**9

# Tensors that are copied to an engine at the same time: a copy that transposes takes longer than reading the file.
_COPIES = 2


def load(
    folder_or_file: str | os.PathLike[str], dtype: DTypeLike | None = None, device: DeviceLike | None = None
) -> Any:
    """Model in a folder with ``config.json`` and ``model.safetensors``, in evaluation mode, on the active backend.

    Weights in several files with an index are read too. Tensors are views of the files in memory where the engine
    supports it. If anything is wrong, the error names the file and the tensor, and there is no model.

    Args:
        folder_or_file: the folder, a ``.safetensors`` file in it, or an index.
        dtype: dtype of the floating-point parameters, by default those of the files.
        device: device of the parameters, by default the default device.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is not None and wanted.kind not in KINDS["real floating"]:
        raise TypeError(f"load: dtype must be floating, got {wanted.name}")
    folder, paths, index = files.locate(folder_or_file)
    values = files.read_config(folder)
    try:
        kind = find_architecture(values)
        config = kind.config_class.from_dict(values)
    except (TypeError, UnsupportedError, ValueError) as error:
        raise type(error)(f"{folder / files.CONFIG}: {error}") from error
    stored = files.find_tensors(paths, index)
    # Parameters that are replaced next are views that take no memory, on NumPy if the engine has none.
    engine = current_backend()
    with activate(engine if engine.has_views else load_backend("numpy")), skip_initialization():
        try:
            model = kind(config)
        except (TypeError, UnsupportedError, ValueError) as error:
            raise type(error)(f"{folder / files.CONFIG}: {error}") from error
    sources = _match(model, stored, index or paths[0])
    model.assign(_read(model, sources, stored, wanted, device))
    return model.eval()


def _match(model: PretrainedModel, stored: dict[str, files.Stored], where: Path) -> dict[str, Source]:
    """Source of each tensor of the model; an error lists what is missing, left over or of another shape."""
    sources = model.sources()
    names = _with_base(model, sources, stored)
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
            if path not in ties:
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
    extra = [name for ours, name in names.items() if name not in used and not model.is_ignored(ours)]
    complaints = [f"missing: {', '.join(dict.fromkeys(missing))}"] if missing else []
    complaints += [f"extra: {', '.join(extra)}"] if extra else []
    complaints += ["wrong shape or dtype:", *dict.fromkeys(misshapen)] if misshapen else []
    if complaints:
        raise ValueError(
            "\n".join([f"{where} must have the tensors of {type(model).__name__} in config.json", *complaints])
        )
    return found


def _with_base(model: PretrainedModel, sources: dict[str, Source], stored: dict[str, files.Stored]) -> dict[str, str]:
    """Names in the files by their full names; files of a model without its head lack the prefix ``base``."""
    base = model.base
    expected = {source.name for source in sources.values()}
    names = {model.renamed(name): name for name in stored}
    if not base or any(name.startswith(base) for name in names):
        return names
    return {name if name in expected else base + name: own for name, own in names.items()}


def _read(
    model: PretrainedModel, sources: dict[str, Source], stored: dict[str, files.Stored], dtype: Any, device: Any
) -> dict[str, Any]:
    """Tensors of the model by path, of the active backend."""
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
    for path, tensor in model.tensors().items():
        if path not in found:
            found[path] = ops.asarray(tensor, device=device)
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
