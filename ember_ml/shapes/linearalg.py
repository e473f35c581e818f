"""Shapes of matrices, of the points of pairwise distances, and of the operands of sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.dtypes import written
from ember_ml.shapes.axes import axis_of


def check_matrix(x: Any) -> None:
    """Raise an error if a tensor has fewer than two axes."""
    if x.ndim < 2:
        raise ValueError(f"x must have at least 2 axes, got {x.ndim}")


def check_square(x: Any) -> None:
    """Raise an error unless the last two axes of a tensor have the same length."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"x must be square in its last two axes, got shape {list(x.shape)}")


def check_right_side(matrix: Any, right: Any) -> None:
    """Raise an error unless ``right``, a vector or matrices, has the rows of a square matrix."""
    if not right.ndim or right.shape[-2 if right.ndim > 1 else 0] != matrix.shape[-1]:
        raise ValueError(
            f"the shapes of the matrix and the right side must fit, got {list(matrix.shape)} and {list(right.shape)}"
        )


def uses_matmul(x: Any, y: Any, p: float) -> bool:
    """Whether the distances between the points of ``x`` and ``y`` are computed with a matrix product."""
    rows = (x.shape[0], y.shape[0]) if len(x.shape) == len(y.shape) == 2 else (0, 0)
    return p == 2 and min(rows) > 0 and max(rows) > 25


def paired_axes(x1: Any, x2: Any, axes: Any) -> tuple[list[int], list[int]]:
    """The summed axes of each tensor, as nonnegative numbers."""
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ValueError(
                f"axes must be from 0 to the number of axes of both tensors, got {axes} for shapes {list(x1.shape)} "
                f"and {list(x2.shape)}"
            )
        return list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    left, right = ([one] if isinstance(one, int) else list(one) for one in axes)
    if len(left) != len(right):
        raise ValueError(f"axes must name as many axes of x1 as of x2, got {axes}")
    return [axis_of(i, x1.ndim) for i in left], [axis_of(i, x2.ndim) for i in right]


def terms_of(equation: str, operands: Sequence[Any]) -> tuple[list[str], str]:
    """Labels of each operand and of the result, with a separate label for each axis covered by ``...``."""
    if not isinstance(equation, str):
        raise TypeError(f"equation must be a string like 'ij,jk->ik', got {written(equation)}")
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise TypeError(
            f"operands must be as many as equation names, {len(terms)} in {equation!r}, got {len(operands)}"
        )
    named = [term.replace("...", "") for term in terms]
    letters = "".join(named) + right.replace("...", "")
    if not letters.isalpha() and letters:
        raise ValueError(f"equation must name axes by letters, got {equation!r}")
    extra = [x.ndim - len(name) if "..." in term else 0 for term, name, x in zip(terms, named, operands, strict=True)]
    # These characters are not letters, so they cannot occur in an equation.
    dots = "".join(chr(0x2460 + i) for i in range(max(extra, default=0)))
    found = [term.replace("...", dots[len(dots) - n :]) for term, n in zip(terms, extra, strict=True)]
    for term, labels, n, x in zip(terms, found, extra, operands, strict=True):
        if n < 0 or len(labels) != x.ndim:
            raise ValueError(f"equation must name every axis of an operand, got {term!r} for shape {list(x.shape)}")
    if not arrow:
        once = "".join(sorted(one for one in set(letters) if letters.count(one) == 1))
        return found, dots + once
    output = right.replace("...", dots)
    if len(set(output)) < len(output) or not set(output) <= set("".join(found)):
        raise ValueError(f"equation must name each axis of the result once, and as an operand does, got {equation!r}")
    return found, output


def sizes_of(terms: Sequence[str], operands: Sequence[Any]) -> dict[str, int]:
    """Length of each labeled axis; length 1 broadcasts."""
    sizes: dict[str, int] = {}
    for labels, x in zip(terms, operands, strict=True):
        for label, size in zip(labels, x.shape, strict=True):
            if sizes.setdefault(label, size) != size and 1 not in (size, sizes[label]):
                raise ValueError(
                    f"equation must name axes of one length by one letter, got lengths {sizes[label]} and {size}"
                )
            if sizes[label] == 1:
                sizes[label] = size
    return sizes
