"""ONNX files, which torch's exporter writes from the module that ``nn.to_torch`` makes of a model."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ember_ml import ops
from ember_ml.dtypes import written
from ember_ml.extend import activate, load_backend, unwrap
from ember_ml.nn import to_torch
from ember_ml.nn.modules import Module
from emberlint import atomic

# Protocol buffers, which a file is, hold at most 2 GiB; larger weights go to a second file.
_LIMIT = 2**31 - 2**24


def onnx(
    model: Module,
    example: Any,
    path: Any,
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_batch: bool = True,
    opset: int | None = None,
) -> Path:
    """Write a model as an ONNX file in evaluation mode, and return its path.

    The model may be on any engine, and does not change. It is traced by ``torch.export`` on the CPU, so what depends on
    values, such as a loop until convergence, cannot be exported. ``path`` is replaced when the export has succeeded.

    Args:
        model: the model to write.
        example: an argument of the model, or a tuple of several: arrays or tensors of any engine with the shapes and
            dtypes that the file is for.
        path: the file to write. If the weights have 2 GiB or more, they are in a second file in the same folder.
        input_names: names of the inputs in the file; by default ``x``, or ``x0``, ``x1`` and so on.
        output_names: names of the outputs; by default ``y``, or those of torch's exporter for several.
        dynamic_batch: whether the first axis of every input may have any length. The name of the axis is ``batch``.
        opset: version of the ONNX operators; by default that of torch's exporter.
    """
    if not isinstance(model, Module):
        raise TypeError(f"onnx: model must be an ember_ml.nn.Module, got {written(model)}")
    missing = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"export.onnx requires {' and '.join(missing)}: pip install 'ember-ml[onnx]'")
    backend = load_backend("torch", "export.onnx")
    import torch

    given = example if isinstance(example, tuple) else (example,)
    names = list(input_names or (["x"] if len(given) == 1 else [f"x{i}" for i in range(len(given))]))
    if len(names) != len(given):
        raise ValueError(f"onnx: input_names must have {len(given)} names, as many as example, got {len(names)}")
    with activate(backend):
        args: tuple[Any, ...] = tuple(ops.asarray(unwrap(x), device="cpu") for x in given)
    shapes = None
    if dynamic_batch:
        if any(not x.ndim for x in args) or len({x.shape[0] for x in args}) != 1:
            raise ValueError(
                "onnx: the first axes of example must have one length, the batch, for dynamic_batch=True, got shapes "
                f"{', '.join(str(list(x.shape)) for x in args)}"
            )
        if args[0].shape[0] < 2:
            # torch.export takes an axis of length 0 or 1 for a constant.
            args = tuple(torch.cat([x, torch.zeros((2 - x.shape[0], *x.shape[1:]), dtype=x.dtype)]) for x in args)
        batch = torch.export.Dim("batch")
        # The forward method of the adapter takes *args.
        shapes = (tuple({0: batch} for _ in args),)
    adapter = to_torch(model).cpu().eval()
    outputs = list(output_names) if output_names is not None else None
    if outputs is None:
        with torch.no_grad():
            outputs = ["y"] if isinstance(adapter(*args), torch.Tensor) else None
    with warnings.catch_warnings(), _quiet(), torch.no_grad():
        # The exporter warns of its own internals, such as deprecated functions that it calls.
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            adapter,
            args,
            dynamo=True,
            dynamic_shapes=shapes,
            input_names=names,
            output_names=outputs,
            opset_version=opset,
            verbose=False,
        )
    assert program is not None
    target = Path(path)
    size = sum(x.numel() * x.element_size() for x in adapter.state_dict().values())
    if size >= _LIMIT:
        target.parent.mkdir(parents=True, exist_ok=True)
        program.save(str(target), external_data=True)
    else:
        atomic.write(target, program.model_proto.SerializeToString(), parents=True)
    return target


@contextmanager
def _quiet() -> Iterator[None]:
    """Context manager in which torch's exporter does not log which optional libraries it found none of."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
