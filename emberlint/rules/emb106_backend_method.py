"""A method that one engine alone has, for its own machinery.

## What it does

Reports methods of a tensor that move it, take part in autograd or touch its memory in one engine's way: `.cuda()`,
`.cpu()`, `.detach()`, `.numpy()`, `.backward()`, `.requires_grad_()`, `.contiguous()`, `.data_ptr()`, and torch's
methods that write in place (`.add_()`). Methods that have an operation of their own are EMB315's.

## Why

Other engines' tensors have no such method, and raise `AttributeError` when the line is reached.

## Example

```python
def frozen(x: torch.Tensor):
    return x.detach().cpu().numpy()
```

## Use instead

```python
def frozen(x: Tensor):
    return ops.to_numpy(ops.stop_gradient(x))
```

## Fix safety

Unsafe: the operations answer new tensors where torch may share memory, and the tensor may be none of ember's to begin
with. `.backward()` and in-place methods have no fix: gradients are asked for with `ember_ml.grad`, and results are
bound to a name.
"""

from __future__ import annotations

import ast

from emberlint.findings import UNSAFE, Fix
from emberlint.inference.file import File
from emberlint.rewrite.imports import import_name
from emberlint.rewrite.surroundings import is_viewed
from emberlint.rules import Rule

RULE = Rule("EMB106", "backend-method", "a method that one engine alone has, for its own machinery", fix="unsafe")

# Method -> the call that stands for it, where it takes no argument.
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
    "backward": "ask for gradients with `ember_ml.grad`",
    "data_ptr": "a tensor's memory is its engine's own",
    "is_cuda": "ask `ops.get_device`",
    "is_contiguous": "memory layout is the engine's own",
    "pin_memory": "memory is the engine's own",
    "register_hook": "ask for gradients with `ember_ml.grad`",
    "requires_grad_": "say what is differentiated in `ember_ml.grad`",
    "retain_grad": "ask for gradients with `ember_ml.grad`",
    "share_memory_": "memory is the engine's own",
    "storage": "memory is the engine's own",
    "stride": "memory layout is the engine's own",
    "block_until_ready": "use `ops.synchronize`",
    "setflags": "no operation changes its inputs",
    "byteswap": "memory layout is the engine's own",
    "tobytes": "use `ops.to_numpy(x).tobytes()`",
    "tofile": "use `ops.save`",
}
NAMES = frozenset({*_CALLS, *_ADVICE})


def _is_own(name: str) -> bool:
    return name.startswith(".") and (name[1:] in NAMES or name.endswith("_"))


@RULE.on(ast.Call, named=_is_own)
def check(node: ast.Call, file: File) -> None:
    """Calls of such a method on a tensor."""
    function = node.func
    if file.allowed is not None or not isinstance(function, ast.Attribute):
        return
    owner = file.value(function.value)
    if owner is None or not owner.is_array or owner.engine == "ember":
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
        message = f"`.{name}()` is {owner.engine or 'one engine'}'s own; use `{shown}`"
        fix = None
        if name != "contiguous" or not is_viewed(node, file):
            fix = Fix((*imports, file.edit(node, text)), UNSAFE, f"write `{' '.join(text.split())}`")
        file.report(RULE, node, message, fix=fix, because=owner)
    elif name in _ADVICE:
        file.report(RULE, node, f"`.{name}()` is {owner.engine or 'one engine'}'s own; {_ADVICE[name]}", because=owner)
    elif name.endswith("_") and not name.startswith("_") and owner.engine == "torch":
        file.report(
            RULE,
            node,
            f"`.{name}()` writes in place, which torch alone does; bind the result of an operation",
            because=owner,
        )
