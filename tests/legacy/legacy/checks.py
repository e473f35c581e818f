"""Checks that need no engine."""


def axis_in(axis: int, ndim: int) -> int:
    """``axis`` counted from the front; a ValueError if there is no such axis."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of range for {ndim} axes")
    return axis % ndim
