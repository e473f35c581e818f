"""Rewriting of what only JAX's programs have: transforms, indexed updates, keys, trees, loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

from emberlint.config import NAMESPACE
from emberlint.findings import Edit, Finding
from emberlint.inference.file import File
from emberlint.inference.state import State
from emberlint.knowledge import catalogue
from emberlint.knowledge.engines import engine_of
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import SCALAR, SEQUENCE, STRING
from emberlint.rewrite.differences import shortened
from emberlint.rewrite.imports import import_name
from emberlint.source.tree import dotted

# Options that say how JAX compiles, and change no result. ``ember_ml.compile`` compiles again for other Python values.
_COMPILING = words("static_argnums static_argnames donate_argnums donate_argnames inline keep_unused prevent_cse")


class _Transform(NamedTuple):
    """Name of a transform under ``ember_ml``, the parameters that both have, and whether more may follow."""

    name: str
    parameters: tuple[str, ...]
    variadic: bool = False


TRANSFORMS = {
    "jax.checkpoint": _Transform("checkpoint", ("fun",)),
    "jax.grad": _Transform("grad", ("fun", "argnums", "has_aux")),
    "jax.hessian": _Transform("hessian", ("fun", "argnums")),
    "jax.jacfwd": _Transform("jacobian", ("fun", "argnums")),
    "jax.jacobian": _Transform("jacobian", ("fun", "argnums")),
    "jax.jacrev": _Transform("jacobian", ("fun", "argnums")),
    "jax.jit": _Transform("compile", ("fun",)),
    "jax.jvp": _Transform("jvp", ("fun", "primals", "tangents", "has_aux")),
    "jax.remat": _Transform("checkpoint", ("fun",)),
    "jax.tree.map": _Transform("tree.map", ("f",), True),
    "jax.tree_util.tree_map": _Transform("tree.map", ("f",), True),
    "jax.value_and_grad": _Transform("value_and_grad", ("fun", "argnums", "has_aux")),
    "jax.vjp": _Transform("vjp", ("fun", "has_aux"), True),
    "jax.vmap": _Transform("vmap", ("fun", "in_axes", "out_axes")),
}
# Functions of keys, with the same parameters; the keys, and what is drawn with them, are not JAX's.
_KEYS = {
    "jax.random.PRNGKey": ("key", ("seed",)),
    "jax.random.fold_in": ("fold_in", ("key", "data")),
    "jax.random.key": ("key", ("seed",)),
    "jax.random.split": ("split", ("key", "num")),
}
# Methods of ``x.at[index]``, in JAX or MLX, and the operations of some.
UPDATES = words("add apply div divide get max maximum min minimum mul multiply power set subtract")
_OPERATIONS = {"add": "index_add", "get": "index_get", "set": "index_update"}
# What to do instead of a function that cannot be rewritten.
ADVICE = {
    "jax.block_until_ready": "use `ops.synchronize`",
    "jax.config.update": (
        "leave out `jax_enable_x64`, which the JAX backend sets; Python floats stay float32, unless you call "
        '`ops.set_default_dtype("float64")`'
    ),
    "jax.custom_jvp": "use `ember_ml.custom_gradient`",
    "jax.custom_vjp": "use `ember_ml.custom_gradient`",
    "jax.debug.print": "use `print` outside of compiled code",
    "jax.device_get": "use `ops.to_numpy`",
    "jax.device_put": "use `ops.to_device`",
    "jax.lax.clamp": "use `ops.clip`, whose bounds come last",
    "jax.lax.div": "use `ops.divide`, or `ops.trunc` of it for integers",
    "jax.lax.dynamic_slice": "use `ops.slice`, which does not move a block that is out of bounds",
    "jax.lax.dynamic_update_slice": "use `ops.slice_update`, which does not move a block that is out of bounds",
    "jax.lax.round": "use `ops.round`, which rounds halves to even",
    "jax.random.categorical": "use `ops.random.categorical`, which has other parameters and another shape",
    "jax.tree.flatten": "use `ember_ml.tree`, where dictionaries keep the order of their keys",
    "jax.tree.leaves": "use `ember_ml.tree.leaves`, where dictionaries keep the order of their keys",
}
# Operations whose results may differ from JAX's without an error.
_DIFFERENT = {
    "convolve": "of integers has integers, in JAX floats",
    "correlate": "of integers has integers, in JAX floats",
    "eig": "has the eigenvalues in ascending order, and may have other signs of the vectors than JAX",
    "eigh": "may have other signs of the vectors than JAX",
    "eigvals": "has the eigenvalues in ascending order, JAX in any order",
    "histogram": "has counts that are integers, in JAX floats",
    "qr": "may have other signs of the vectors than JAX",
    "svd": "may have other signs of the vectors than JAX",
}
# Libraries that compute with JAX's arrays alone.
_LIBRARIES = {
    "chex": "",
    "equinox": "`ember_ml.nn`",
    "flax": "`ember_ml.nn`",
    "haiku": "`ember_ml.nn`",
    "numpyro": "",
    "optax": "`ember_ml.optim`",
    "orbax": "`ember_ml.training`",
}

NODES = (ast.Call, ast.Attribute, ast.Name)


def rewritten_node(node: Any, file: File) -> tuple[Edit, ...]:
    """Edits of a call or a name of JAX; nodes are passed from the outer to the inner ones."""
    handled: set[ast.AST] = file.shared("rewritten by a call", set)
    if isinstance(node, ast.Call):
        return _call(node, file, handled)
    if node in handled or not isinstance(node.ctx, ast.Load) or file.is_called(node):
        return ()
    transform = TRANSFORMS.get(file.path(node))
    return _named(node, transform.name, file) if transform is not None else ()


def _call(node: ast.Call, file: File, handled: set[ast.AST]) -> tuple[Edit, ...]:
    path = file.path(node.func)
    if path == "functools.partial" and node.args:
        return _partial(node, file, handled)
    if path in TRANSFORMS:
        return _transform(node, TRANSFORMS[path], file)
    if path in _KEYS:
        name, parameters = _KEYS[path]
        if len(node.args) > len(parameters) or not _are_known(node, parameters):
            return ()
        ops, imports = import_name(NAMESPACE, file)
        return (*imports, file.edit(node.func, f"{ops}.random.{name}"))
    if path == "jax.lax.while_loop":
        return _while_loop(node, file)
    if path.startswith("jax.numpy.") and path.removeprefix("jax.numpy.") in catalogue.dtypes():
        if len(node.args) != 1 or node.keywords:
            return ()
        ops, imports = import_name(NAMESPACE, file)
        text = f"{ops}.asarray({file.text(node.args[0])}, dtype={ops}.{path.rpartition('.')[2]})"
        return (*imports, file.edit(node, text))
    return _update(node, file)


def _named(node: ast.expr, name: str, file: File) -> tuple[Edit, ...]:
    """Edits that write ``ember_ml.grad`` or ``tree.map`` for a name."""
    place, _, last = f"ember_ml.{name}".rpartition(".")
    bound, imports = import_name(place, file)
    return (*imports, file.edit(node, f"{bound}.{last}"))


def _are_known(node: ast.Call, names: tuple[str, ...]) -> bool:
    """Whether all arguments can be matched, and the keywords are among these."""
    return ast.Starred not in map(type, node.args) and all(one.arg in names for one in node.keywords)


def _transform(node: ast.Call, transform: _Transform, file: File) -> tuple[Edit, ...]:
    kept = [one for one in node.keywords if one.arg not in _COMPILING]
    if any(one.arg not in transform.parameters[1:] for one in kept):
        return ()
    if not transform.variadic and (len(node.args) > len(transform.parameters) or ast.Starred in map(type, node.args)):
        return ()
    if len(kept) == len(node.keywords):
        return _named(node.func, transform.name, file) if node.args else ()
    place, _, last = f"ember_ml.{transform.name}".rpartition(".")
    bound, imports = import_name(place, file)
    given = ", ".join(file.text(part) for part in (*node.args, *kept))
    return (*imports, file.edit(node, f"{bound}.{last}({given})" if node.args else f"{bound}.{last}"))


def _partial(node: ast.Call, file: File, handled: set[ast.AST]) -> tuple[Edit, ...]:
    """``partial(jax.jit, static_argnums=0)``, which is a decorator."""
    transform = TRANSFORMS.get(file.path(node.args[0]))
    if transform is None:
        return ()
    handled.add(node.args[0])
    kept = [one for one in node.keywords if one.arg not in _COMPILING]
    if len(node.args) > 1 or any(one.arg not in transform.parameters[1:] for one in kept):
        return ()
    if kept:
        return _named(node.args[0], transform.name, file) if len(kept) == len(node.keywords) else ()
    return _named(node, transform.name, file)


def _while_loop(node: ast.Call, file: File) -> tuple[Edit, ...]:
    """``lax.while_loop``, whose functions take the variables as one argument; those of the operation take each."""
    if len(node.args) != 3 or node.keywords or ast.Starred in map(type, node.args):
        return ()
    condition, body, initial = node.args
    ops, imports = import_name(NAMESPACE, file)
    value = file.value(initial)
    if value is not None and (value.is_array or value.kind == SCALAR):
        return (*imports, file.edit(node.func, f"{ops}.while_loop"))
    if isinstance(body, ast.Lambda):
        text = f"lambda {ast.unparse(body.args)}: ({file.text(body.body)},)"
    elif dotted(body):
        name = "variables" if dotted(body).partition(".")[0] != "variables" else "loop_variables"
        text = f"lambda {name}: ({file.text(body)}({name}),)"
    else:
        return ()
    text = f"{ops}.while_loop({file.text(condition)}, {text}, ({file.text(initial)},))[0]"
    return (*imports, file.edit(node, text))


def _updated(node: ast.Call) -> ast.Subscript | None:
    """``x.at[index]`` of ``x.at[index].set(value)``."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in UPDATES:
        return None
    part = function.value
    if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Attribute) and part.value.attr == "at":
        return part
    return None


def update_edits(node: ast.Call, file: File, namespace: str) -> tuple[str, tuple[Edit, ...]] | None:
    """Operation for ``x.at[index].set(value)`` and the edits; ``None`` if there is none, or for another expression."""
    part = _updated(node)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if part is None or name not in _OPERATIONS or ast.Starred in map(type, node.args):
        return None
    if len(node.args) != (name != "get") or not _are_known(node, ("indices_are_sorted", "unique_indices")):
        return None
    ops, imports = import_name(namespace, file)
    array: Any = part.value
    given = [file.text(array.value), _index(part.slice, file), *(file.text(one) for one in node.args)]
    operation = _OPERATIONS[name]
    return operation, (*imports, file.edit(node, f"{ops}.{operation}({', '.join(given)})"))


def _update(node: ast.Call, file: File) -> tuple[Edit, ...]:
    part = _updated(node)
    value = file.value(part.value.value) if part is not None and isinstance(part.value, ast.Attribute) else None
    if part is None or (value is not None and not value.is_array):
        return ()
    found = update_edits(node, file, NAMESPACE)
    return found[1] if found is not None else ()


def _index(node: ast.expr, file: File) -> str:
    """Text of an index as an object: ``1:3`` is ``slice(1, 3)``."""
    if isinstance(node, ast.Tuple):
        parts = [_index(part, file) for part in node.elts]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if not isinstance(node, ast.Slice):
        return file.text(node)
    ends = [file.text(part) if part is not None else "None" for part in (node.lower, node.upper, node.step)]
    if node.step is None:
        ends.pop()
    return "slice(None)" if ends == ["None", "None"] else f"slice({', '.join(ends)})"


def remaining(state: State) -> Iterator[tuple[Any, str]]:
    """Names of JAX, updates and libraries that are left in a file, with a message for each."""
    inner = {node.value for node in ast.walk(state.tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(state.tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                root = (getattr(node, "module", None) or alias.name).partition(".")[0]
                if root in _LIBRARIES and not getattr(node, "level", 0):
                    use = f"; use {_LIBRARIES[root]}" if _LIBRARIES[root] else ""
                    yield alias, f"`{root}` computes with JAX's arrays alone{use}"
        elif isinstance(node, (ast.Attribute, ast.Name)) and node not in inner and isinstance(node.ctx, ast.Load):
            path = state.path(node)
            if engine_of(path) == "jax":
                advice = ADVICE.get(path, "rewrite it by hand")
                yield node, f"`{state.text(node)}` of JAX stays; {advice}"
        elif isinstance(node, ast.Call) and _updated(node) is not None:
            yield node, f"`{shortened(state.text(node))}` stays; only JAX's arrays have it"


def silent_differences(state: State) -> list[Finding]:
    """Places of a ported file whose results differ from JAX's, or may, without an error."""
    found: list[tuple[Any, str]] = []
    is_complex = any(
        (isinstance(node, ast.Constant) and isinstance(node.value, complex))
        or (isinstance(node, (ast.Attribute, ast.Name)) and "complex" in dotted(node))
        for node in ast.walk(state.tree)
    )
    for node in ast.walk(state.tree):
        if isinstance(node, ast.Call):
            path = state.path(node.func)
            text = shortened(state.text(node))
            if path.startswith("ember_ml.ops.") and any(one.arg == "key" for one in node.keywords):
                found.append((node, f"`{text}` draws other numbers of the same distribution than JAX for the same key"))
            if path.startswith("ember_ml.ops.") and path.rpartition(".")[2] in _DIFFERENT:
                found.append((node, f"`{text}` {_DIFFERENT[path.rpartition('.')[2]]}"))
            if is_complex and path in ("ember_ml.grad", "ember_ml.value_and_grad"):
                found.append((node, f"`{text}` of complex tensors is the conjugate of JAX's gradient"))
        elif isinstance(node, ast.AugAssign) and state.value(node.target) is None and not _is_other(node.value, state):
            text, target = shortened(state.text(node)), shortened(state.text(node.target))
            changed = f"if `{target}` is a tensor, NumPy and torch change it in place"
            found.append((node, f"`{text}` makes a new array in JAX; {changed}"))
    found.sort(key=lambda one: int(one[0].lineno))
    return [_finding(state.source.path, node, message) for node, message in found]


def _is_other(node: ast.expr, state: State) -> bool:
    """Whether an expression is a list or text, so that what it is added to is no tensor."""
    value = state.value(node)
    return value is not None and value.kind in (SEQUENCE, STRING)


def _finding(path: str, node: Any, message: str) -> Finding:
    return Finding("", message, path, node.lineno, node.col_offset, node.lineno, node.col_offset, None, ())
