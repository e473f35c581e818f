"""Data frames of pandas and polars, and arrays of xarray, as arrays; none of these libraries is imported."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.dtypes import DTYPES, as_dtype, promote, written
from ember_ml.extend import activate, load_backend


def as_array(data: Any, name: str = "x") -> Any:
    """``data`` as an array if it is a data frame, a series or an array of xarray; else ``data`` itself.

    A frame becomes a matrix with one column for each of its own, in the dtype that they promote to: bool gives way to
    integers, integers to floats. Missing values become NaN. The result is a NumPy array, or what an array of xarray
    holds. A column that is not of numbers is a ``TypeError`` that names it.

    Args:
        name: what the data are called in errors, such as ``"x"`` or ``"Trainer: x"``.

    >>> as_array([1.0, 2.0])
    [1.0, 2.0]
    """
    kind = _kind(data)
    variable = name.rpartition(": ")[2]
    if kind == ("xarray", "DataArray"):
        return data.data
    if kind == ("polars", "LazyFrame"):
        raise TypeError(f"{name} must be a DataFrame, got a LazyFrame of polars; write {variable}.collect()")
    if kind == ("xarray", "Dataset"):
        raise TypeError(
            f"{name} must be a DataArray, got a Dataset of xarray; write {variable}.to_dataarray() or {variable}[key]"
        )
    if kind[1] == "Series":
        label = getattr(data, "name", None)
        return _column(data, f"{name} must be numbers", "" if label in (None, "") else f" in {written(label)}")
    if kind[1] != "DataFrame":
        return data
    labels = list(data.columns)
    # By position: labels may occur more than once in pandas.
    columns = [data.iloc[:, i] for i in range(len(labels))] if kind[0] == "pandas" else list(data.iter_columns())
    if (
        len({_name(column.dtype) for column in columns}) == 1
        and _is_plain(columns[0].dtype)
        and not _may_have_nulls(data, kind)
    ):
        return data.to_numpy(dtype=_name(columns[0].dtype)) if kind[0] == "pandas" else data.to_numpy()
    required = f"{name} must have columns of numbers"
    arrays = [_column(column, required, f" in column {label!r}") for column, label in zip(columns, labels, strict=True)]
    with activate(load_backend("numpy")):
        if not arrays:
            return ops.zeros((len(data), 0))
        found = as_dtype(arrays[0].dtype)
        for array, label in zip(arrays[1:], labels[1:], strict=True):
            try:
                found = promote(found, as_dtype(array.dtype))
            except TypeError as error:
                error.add_note(f"in column {label!r} of {name}")
                raise
        return ops.stack([ops.cast(array, found) for array in arrays], axis=1)


def column_names(data: Any) -> list[str] | None:
    """Names of the columns of a data frame, or of the last axis of a matrix of xarray, if all of them are strings.

    >>> column_names([[1.0, 2.0]]) is None
    True
    """
    if _kind(data) == ("xarray", "DataArray"):
        last = data.coords.get(data.dims[-1]) if data.ndim == 2 else None
        names = [] if last is None else last.values.tolist()
    else:
        columns = getattr(data, "columns", None)
        names = [] if columns is None or callable(columns) else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def is_frame(data: Any) -> bool:
    """Whether ``data`` is a data frame of pandas or polars."""
    return _kind(data)[1] == "DataFrame"


def _kind(data: Any) -> tuple[str, str]:
    """Library and name of the class of ``data`` if it is one of those that are converted; two empty strings if not."""
    for base in type(data).__mro__:
        library = base.__module__.partition(".")[0]
        if base.__name__ in _CLASSES.get(library, ()):
            return library, base.__name__
    return "", ""


_CLASSES = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "LazyFrame", "Series"),
    "xarray": ("DataArray", "Dataset"),
}


def _name(dtype: Any) -> str:
    """Name of a dtype of a column, without the byte order, which those of NumPy may have."""
    if type(dtype).__name__ == "ArrowDtype":
        # pandas writes these as Arrow does, such as double[pyarrow].
        dtype = dtype.numpy_dtype
    return str(getattr(dtype, "name", dtype))


def _is_plain(dtype: Any) -> bool:
    """Whether a dtype of a column is one of ours by name: not text, dates, categories or decimals."""
    # polars writes Float32, and pandas writes the dtypes with missing values so.
    return _name(dtype).lower().replace("boolean", "bool") in DTYPES


def _may_have_nulls(data: Any, kind: tuple[str, str]) -> bool:
    """Whether a frame of one dtype may have missing values; NaN in NumPy's floats does not count as missing."""
    if kind[0] == "polars":
        return any(data.null_count().row(0))
    return any(_is_nullable(str(dtype)) for dtype in data.dtypes)


def _is_nullable(dtype: str) -> bool:
    """Whether a dtype of pandas holds missing values: its own and Arrow's do, such as Int64; NumPy's do not."""
    return dtype[:1].isupper() or dtype == "boolean" or dtype.endswith("[pyarrow]")


def _column(column: Any, required: str, place: str) -> Any:
    """A series as a NumPy array, with NaN for missing values.

    Args:
        required: what must hold, for errors.
        place: name of the series, for errors.
    """
    is_polars = _kind(column)[0] == "polars"
    if str(column.dtype).startswith("Sparse["):
        column = column.sparse.to_dense()
    if is_polars and str(column.dtype) == "Null":
        # A column without values, which could be of any dtype; pandas makes floats of it.
        column = column.cast(float)
    dtype = _name(column.dtype)
    if not _is_plain(column.dtype):
        raise TypeError(f"{required}, got {column.dtype}{place}; write codes for what is text, a category or a date")
    may_have_nulls = is_polars or _is_nullable(str(column.dtype))
    if not (may_have_nulls and (column.null_count() if is_polars else column.isna().any())):
        return column.to_numpy() if is_polars else column.to_numpy(dtype=dtype.lower().replace("boolean", "bool"))
    if is_polars:
        return (column if dtype.startswith("Float") else column.cast(float)).fill_null(float("nan")).to_numpy()
    floating = dtype.lower() if dtype.lower().startswith("float") else "float64"
    return column.to_numpy(dtype=floating, na_value=float("nan"))
