"""Functions of SciPy that reject tensors: they get NumPy arrays, and their results become tensors again."""

from __future__ import annotations

import ast

from emberlint.findings import Edit
from emberlint.inference.file import File
from emberlint.knowledge.returns import words
from emberlint.knowledge.types import INSTANCE, NONE, SCALAR, STRING
from emberlint.rewrite.imports import import_name

# Ufuncs of scipy.special with one result. Its other functions want Python numbers, or return several arrays.
_UFUNCS = words(
    """
    beta betainc betaincinv betaln binom boxcox cbrt dawsn digamma ellipe ellipeinc ellipk ellipkinc entr erf erfc
    erfcinv erfcx erfi erfinv exp1 expi expit expn exprel gamma gammainc gammaincc gammainccinv gammaincinv gammaln
    hankel1 hankel2 huber hyp1f1 hyp2f1 i0 i0e i1 i1e inv_boxcox iv ive j0 j1 jn jv jve k0 k0e k1 k1e kl_div kn kv kve
    lambertw log_expit log_ndtr loggamma logit ndtr ndtri poch psi rel_entr rgamma spence stdtr struve wofz xlog1py
    xlogy y0 y1 yn yv yve zeta
    """
)
# Functions of scipy.fft and scipy.fftpack, which read NumPy's attributes of the first argument.
_TRANSFORMS = words("dct dst fft fft2 fftn fftshift hilbert idct idst ifft ifft2 ifftn ifftshift irfft rfft")
_CONSTANT = frozenset({SCALAR, STRING, NONE, INSTANCE})


def scipy_function(node: ast.Call, file: File) -> tuple[Edit, ...]:
    """Edits of ``scipy.special.j0(x)`` to ``tensor.asarray(scipy.special.j0(tensor.to_numpy(x)))``.

    Ufuncs of other libraries reject EmberTensors. Arguments that are numbers stay as they are.
    """
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return ()
    arrays = [argument for argument in _array_arguments(node, file) if _may_be_tensor(argument, file)]
    if not arrays or b"ember_ml" not in file.source.data:
        return ()
    name, imports = import_name(file.config.namespace, file)
    edits = [file.edit(argument, f"{name}.to_numpy({file.text(argument)})") for argument in arrays]
    start, end = file.span(node)
    return (*imports, Edit(start, start, f"{name}.asarray("), *edits, Edit(end, end, ")"))


def _array_arguments(node: ast.Call, file: File) -> list[ast.expr]:
    """Arguments of a call that are arrays, if it is one of these functions."""
    space, _, function = file.path(node.func).rpartition(".")
    if space == "scipy.special" and function in _UFUNCS:
        return node.args
    return node.args[:1] if space in ("scipy.fft", "scipy.fftpack") and function in _TRANSFORMS else []


def _may_be_tensor(node: ast.expr, file: File) -> bool:
    operand = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(operand, ast.Constant):
        return False
    if isinstance(node, ast.Call) and file.path(node.func).endswith(".to_numpy"):
        return False
    value = file.value(node)
    return value is None or value.kind not in _CONSTANT
