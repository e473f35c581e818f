"""A method for one engine's devices, autograd or memory.

## What it does

Reports methods that move a tensor, take part in autograd or access its memory and that only one engine has: `.cuda()`,
`.cpu()`, `.detach()`, `.numpy()`, `.backward()`, `.requires_grad_()`, `.contiguous()`, `.data_ptr()`, JAX's
`.block_until_ready()` and `.devices()`, and torch's methods that write in place (`.add_()`). EMB315 reports methods
that have an equivalent operation.

## Why

Other engines' tensors do not have the method, so the call raises `AttributeError`.

## Example

```python
import torch


def frozen(x: torch.Tensor):
    return x.detach().cpu().numpy()
```

## Use instead

```python
from ember_ml import ops
from ember_ml.types import Tensor


def frozen(x: Tensor):
    return ops.to_numpy(ops.stop_gradient(x))
```

## Fix safety

Unsafe: the operations return new tensors where torch may share memory, and the tensor may not be one of ember's.
`.backward()` and in-place methods have no fix: use `ember_ml.grad` for gradients, and assign the result of an
operation.
"""

from __future__ import annotations

import ast

from emberlint.findings import UNSAFE, Fix
from emberlint.inference.file import File
from emberlint.rewrite.imports import import_name
from emberlint.rewrite.surroundings import is_viewed
from emberlint.rules import Rule

RULE = Rule("EMB106", "backend-method", "a method for one engine's devices, autograd or memory", fix="unsafe")

# Method without arguments -> the equivalent call.
_CALLS = {
    "clone": "copy({})",
    "contiguous": "",
    "cpu": 'to_device({}, "cpu")',
    "cuda": 'to_device({}, "cuda")',
    "detach": "stop_gradient({})",
    "mps": 'to_device({}, "mps")',
    "numpy": "to_numpy({})",
}
_ADVICE = {
    "backward": "compute gradients with `ember_ml.grad`",
    "data_ptr": "there is no portable access to memory",
    "is_cuda": "use `ops.get_device`",
    "is_contiguous": "there is no portable memory layout",
    "pin_memory": "there is no portable access to memory",
    "register_hook": "compute gradients with `ember_ml.grad`",
    "requires_grad_": "name the arguments to differentiate in `ember_ml.grad`",
    "retain_grad": "compute gradients with `ember_ml.grad`",
    "share_memory_": "there is no portable access to memory",
    "storage": "there is no portable access to memory",
    "stride": "there is no portable memory layout",
    "addressable_data": "there is no portable access to memory",
    "block_until_ready": "use `ops.synchronize`",
    "copy_to_host_async": "use `ops.to_numpy` where results leave the program",
    "delete": "there is no portable access to memory",
    "devices": "use `ops.get_device`",
    "is_deleted": "there is no portable access to memory",
    "is_ready": "use `ops.synchronize`",
    "unsafe_buffer_pointer": "there is no portable access to memory",
    "setflags": "no operation changes its inputs",
    "byteswap": "there is no portable memory layout",
    "tobytes": "use `ops.to_numpy(x).tobytes()`",
    "tofile": "use `ops.save`",
}
NAMES = frozenset({*_CALLS, *_ADVICE})


def _is_own(name: str) -> bool:
    return name.startswith(".") and (name[1:] in NAMES or name.endswith("_"))


def _is_converted(node: ast.expr) -> bool:
    """Whether the expression is a call of ``to_numpy``, whose result has the methods of NumPy on every engine."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "to_numpy"


@RULE.on(ast.Call, named=_is_own)
def check(node: ast.Call, file: File) -> None:
    """Report calls of these methods on a tensor."""
    function = node.func
    if file.allowed is not None or not isinstance(function, ast.Attribute):
        return
    owner = file.value(function.value)
    if owner is None or not owner.is_array or owner.engine == "ember" or _is_converted(function.value):
        return
    name = function.attr
    if name in _CALLS:
        if node.args or node.keywords:
            return
        call = _CALLS[name]
        inner = file.text(function.value)
        bound, imports = import_name(file.config.namespace, file) if call else ("", ())
        text = f"{bound}.{call.format(inner)}" if call else inner
        shown = f"{bound}.{call.format('x')}" if call else "x"
        message = f"`.{name}()` is specific to {owner.engine or 'one engine'}; use `{shown}`"
        fix = None
        if name != "contiguous" or not is_viewed(node, file):
            fix = Fix((*imports, file.edit(node, text)), UNSAFE, f"write `{' '.join(text.split())}`")
        file.report(RULE, node, message, fix=fix, because=owner)
    elif name in _ADVICE:
        file.report(
            RULE, node, f"`.{name}()` is specific to {owner.engine or 'one engine'}; {_ADVICE[name]}", because=owner
        )
    elif name.endswith("_") and not name.startswith("_") and owner.engine == "torch":
        file.report(
            RULE,
            node,
            f"`.{name}()` writes in place, which only torch supports; assign the result of an operation",
            because=owner,
        )
