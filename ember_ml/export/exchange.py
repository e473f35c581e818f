"""ONNX files, which torch's exporter writes from the module that ``nn.to_torch`` makes of a model."""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from ember_ml import ops, tree
from ember_ml.backend import use_backend
from ember_ml.dtypes import written
from ember_ml.errors import UnsupportedError
from ember_ml.extend import load_backend, unwrap
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
        output_names: names of the outputs; by default ``y``, or ``y0``, ``y1`` and so on.
        dynamic_batch: whether the first axis of every input may have any length. The name of the axis is ``batch``.
        opset: version of the ONNX operators; by default that of torch's exporter.
    """
    if not isinstance(model, Module):
        raise TypeError(f"onnx: model must be an ember_ml.nn.Module, got {written(model)}")
    missing = [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f"export.onnx requires {' and '.join(missing)}: pip install 'ember-ml[onnx]'")
    load_backend("torch", "export.onnx")
    import onnx.defs
    import torch

    latest = onnx.defs.onnx_opset_version()
    if opset is not None and not (type(opset) is int and 1 <= opset <= latest):
        raise ValueError(f"onnx: opset must be from 1 to {latest}, the latest of the installed onnx, got {opset!r}")
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"onnx: path must be that of a file, got the folder {str(target)!r}")
    given = example if isinstance(example, tuple) else (example,)
    inputs = _names("input_names", input_names, "x", len(given), "argument in example")
    # What forward creates is then on the device of the model too.
    with use_backend("torch", device="cpu"):
        try:
            args: tuple[Any, ...] = tuple(ops.asarray(unwrap(x), device="cpu") for x in given)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"onnx: example must be an array or tensor, or a tuple of them, got {written(example)}"
            ) from error
        if dynamic_batch and (any(not x.ndim for x in args) or len({x.shape[0] for x in args}) != 1):
            raise ValueError(
                "onnx: the first axes of example must have one length, the batch, for dynamic_batch=True, got shapes "
                f"{', '.join(str(list(x.shape)) for x in args)}"
            )
        adapter = to_torch(model).cpu().eval()
        with torch.no_grad():
            results = [x for x in tree.leaves(adapter(*args)) if isinstance(x, torch.Tensor)]
        outputs = _names("output_names", output_names, "y", len(results), "output of the model")
        twice = [name for name in outputs if name in inputs]
        if twice:
            raise ValueError(f"onnx: an output must have another name than the inputs, got {twice[0]!r} for both")
        # A folder that cannot be made is found before the export, which takes time.
        target.parent.mkdir(parents=True, exist_ok=True)
        program = _export(torch, adapter, args, inputs, outputs, dynamic_batch, opset)
    found = next(one.version for one in program.model_proto.opset_import if not one.domain)
    if opset is not None and found != opset:
        raise ValueError(f"onnx: opset must be one that torch's exporter can write this model in, {found}, got {opset}")
    size = sum(x.numel() * x.element_size() for x in adapter.state_dict().values())
    if size >= _LIMIT:
        program.save(str(target), external_data=True)
    else:
        atomic.write(target, program.model_proto.SerializeToString())
    return target


def _names(option: str, names: Sequence[str] | None, default: str, count: int, counted: str) -> list[str]:
    """Names of inputs or outputs; by default a letter, with a number if there are several."""
    if names is None:
        return [default] if count == 1 else [f"{default}{i}" for i in range(count)]
    if isinstance(names, str):
        raise TypeError(f"onnx: {option} must be a list of names, got the string {names!r}; write [{names!r}]")
    names = list(names)
    if len(names) != count:
        raise ValueError(f"onnx: {option} must have {count} names, one for each {counted}, got {len(names)}")
    if len(set(names)) != count or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"onnx: {option} must be different strings, none empty, got {names!r}")
    return names


def _export(
    torch: Any, adapter: Any, args: tuple[Any, ...], inputs: list[str], outputs: list[str], dynamic: bool, opset: Any
) -> Any:
    """ONNX program that torch's exporter makes of a module."""
    shapes = None
    if dynamic:
        if args[0].shape[0] < 2:
            # torch.export takes an axis of length 0 or 1 for a constant.
            args = tuple(torch.cat([x, x.new_zeros((2 - x.shape[0], *x.shape[1:]))]) for x in args)
        batch = torch.export.Dim("batch")
        # The forward method of the adapter takes *args.
        shapes = (tuple({0: batch} for _ in args),)
    with warnings.catch_warnings(), _quiet(), torch.no_grad():
        # The exporter warns of its own internals, such as deprecated functions that it calls.
        warnings.simplefilter("ignore")
        try:
            return torch.onnx.export(
                adapter,
                args,
                dynamo=True,
                dynamic_shapes=shapes,
                input_names=inputs,
                output_names=outputs,
                opset_version=opset,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            # The exporter's own message has colors and general advice; its causes say what is wrong.
            cause = first = error.__cause__ or error
            while first.__cause__ is not None:
                first = first.__cause__
            kind, (line, *_) = type(first).__name__, str(first).strip().splitlines() or [""]
            advice = ""
            if "DataDependent" in kind:
                advice = "; control flow that depends on values cannot be exported"
            elif dynamic and type(error).__name__ == "TorchExportError":
                advice = "; dynamic_batch=False exports the shapes of example alone"
            raise UnsupportedError(
                f"onnx: torch's exporter must be able to trace and convert the model, got {kind}: {line}{advice}"
            ) from cause


@contextmanager
def _quiet() -> Iterator[None]:
    """Context manager in which torch's exporter prints and logs nothing: what goes wrong is an exception."""
    names = ("torch.onnx", "torch.fx.experimental.symbolic_shapes", "onnxscript")
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    # The exporter's modules have loggers below torch.onnx with levels of their own.
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        # torch.export prints the graph when it meets control flow that depends on values.
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)
