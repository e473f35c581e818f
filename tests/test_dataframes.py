"""Data frames, arrays of xarray, loaders and datasets as input, on every engine."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import ember_ml
from ember_ml import frames, nn, ops, optim, training
from ember_ml.backend import Backend
from ember_ml.nn.tensor import EmberTensor
from ember_ml.training.data import Batches, Column, as_data

pandas = pytest.importorskip("pandas", reason="its frames are the input")
polars = pytest.importorskip("polars", reason="its frames are the input")
xarray = pytest.importorskip("xarray", reason="its arrays are the input")

COLUMNS: dict[str, Any] = {"a": [1.0, 2.0, 3.0], "b": [4, 5, 6], "c": [True, False, True]}
ROWS = [[1.0, 4.0, 1.0], [2.0, 5.0, 0.0], [3.0, 6.0, 1.0]]
LIBRARIES = pytest.mark.parametrize("library", [pandas, polars], ids=["pandas", "polars"])


@LIBRARIES
def test_columns_are_promoted(library: Any) -> None:
    array = frames.as_array(library.DataFrame(COLUMNS))
    assert (array.dtype, array.tolist()) == ("float64", ROWS)
    assert frames.as_array(library.DataFrame({"b": [4, 5], "c": [True, False]})).dtype == "int64"
    assert frames.as_array(library.DataFrame({"c": [True, False]})).dtype == "bool"
    assert frames.as_array(library.Series("b", [1, 2]) if library is polars else library.Series([1, 2])).tolist() == [
        1,
        2,
    ]
    assert frames.as_array(library.DataFrame({})).shape == (0, 0)
    assert frames.as_array(library.DataFrame({"a": np.zeros(0, np.float32), "b": np.zeros(0, np.int8)})).shape == (0, 2)
    narrow = library.DataFrame({"a": np.ones(2, np.float32), "b": np.ones(2, np.int64)})
    assert frames.as_array(narrow).dtype == "float32"


def test_a_frame_of_one_dtype_is_not_copied() -> None:
    array = np.ones((4, 3), np.float32)
    assert np.shares_memory(frames.as_array(pandas.DataFrame(array, copy=False)), array)


@LIBRARIES
def test_columns_without_rows_are_floats(library: Any) -> None:
    array = frames.as_array(library.DataFrame({"a": [], "b": []}))
    assert (array.dtype, array.shape) == ("float64", (0, 2))


def test_columns_of_polars_that_are_all_missing_are_nan() -> None:
    array = frames.as_array(polars.DataFrame({"a": [1, 2], "b": [None, None]}))
    np.testing.assert_array_equal(array, [[1, np.nan], [2, np.nan]])
    for data in (polars.DataFrame({"b": [None, None]})["b"], polars.DataFrame({"b": [None, None]})):
        array = frames.as_array(data)
        assert array.dtype == "float64"
        assert np.isnan(array).all()


def test_the_byte_order_of_pandas_may_be_any() -> None:
    for order in "<>":
        frame = pandas.DataFrame({"a": np.array([1, 2], f"{order}f4"), "b": np.array([3, 4], ">f4")})
        array = frames.as_array(frame)
        assert (array.dtype, array.dtype.isnative, array.tolist()) == ("float32", True, [[1, 3], [2, 4]])
        array = frames.as_array(frame["b"])
        assert (array.dtype, array.dtype.isnative, array.tolist()) == ("float32", True, [3, 4])
    mixed = pandas.DataFrame({"a": np.array([1, 2], ">i4"), "b": [0.5, 1.5]})
    assert frames.as_array(mixed).tolist() == [[1, 0.5], [2, 1.5]]


def test_missing_values_become_nan() -> None:
    frame = pandas.DataFrame(
        {
            "i": pandas.array([1, None], "Int64"),
            "f": pandas.array([None, 2.5], "Float32"),
            "b": pandas.array([True, None], "boolean"),
            "n": pandas.array([3, 4], "Int8"),
        }
    )
    np.testing.assert_array_equal(frames.as_array(frame), [[1, np.nan, 1, 3], [np.nan, 2.5, np.nan, 4]])
    assert frames.as_array(frame["n"]).dtype == "int8"
    assert frames.as_array(frame["f"]).dtype == "float32"
    assert frames.as_array(frame[["i"]]).dtype == "float64"
    other = polars.DataFrame({"i": [1, None], "b": [True, None]})
    np.testing.assert_array_equal(frames.as_array(other), [[1, 1], [np.nan, np.nan]])
    np.testing.assert_array_equal(frames.as_array(polars.DataFrame({"i": [1, None]})), [[1], [np.nan]])


def test_columns_of_pandas_may_be_those_of_arrow() -> None:
    pytest.importorskip("pyarrow", reason="it holds the columns")
    frame = pandas.DataFrame(
        {
            "i": pandas.array([1, None], "int64[pyarrow]"),
            "f": pandas.array([None, 2.5], "float[pyarrow]"),
            "b": pandas.array([True, None], "bool[pyarrow]"),
            "n": pandas.array([3, 4], "int8[pyarrow]"),
            "city": pandas.array(["Rome", "Oslo"], "string[pyarrow]"),
        }
    )
    numbers = frame[["i", "f", "b", "n"]]
    np.testing.assert_array_equal(frames.as_array(numbers), [[1, np.nan, 1, 3], [np.nan, 2.5, np.nan, 4]])
    assert [frames.as_array(frame[name]).dtype.name for name in numbers] == ["float64", "float32", "float64", "int8"]
    assert frames.as_array(frame[["n"]]).dtype == "int8"
    with pytest.raises(TypeError, match="in column 'city'"):
        frames.as_array(frame)


def test_columns_of_pandas_may_be_sparse() -> None:
    codes = pandas.get_dummies(pandas.Series(list("aba")), sparse=True)
    array = frames.as_array(codes)
    assert (array.dtype, array.tolist()) == ("bool", [[True, False], [False, True], [True, False]])
    array = frames.as_array(codes["b"])
    assert (array.dtype, array.tolist()) == ("bool", [False, True, False])
    frame = pandas.DataFrame({"n": [1, 2, 3], "f": pandas.arrays.SparseArray(np.float32([0, 0.5, np.nan]))})
    np.testing.assert_array_equal(frames.as_array(frame), np.float32([[1, 0], [2, 0.5], [3, np.nan]]))
    assert frames.as_array(frame).dtype == "float32"
    with pytest.raises(TypeError, match=r"got (object|str) in column 'city'; write codes for what is text"):
        frames.as_array(pandas.DataFrame({"city": pandas.arrays.SparseArray(["Rome"])}))


@LIBRARIES
def test_a_column_that_is_not_of_numbers_is_named(library: Any) -> None:
    with pytest.raises(TypeError, match=r"x must have columns of numbers, got .* in column 'city'; write codes for"):
        frames.as_array(library.DataFrame({"a": [1.0], "city": ["Rome"]}))
    with pytest.raises(TypeError, match="in column 'city'"):
        nn.features.StandardScaler().fit(library.DataFrame({"city": ["Rome"]}))
    with pytest.raises(TypeError, match="uint64") as caught:
        frames.as_array(library.DataFrame({"a": np.ones(1, np.int64), "b": np.ones(1, np.uint64)}))
    assert "in column 'b' of x" in caught.value.__notes__


def test_other_classes_are_refused_or_left() -> None:
    with pytest.raises(TypeError, match="x must be a DataFrame, got a LazyFrame of polars"):
        frames.as_array(polars.LazyFrame(COLUMNS))
    with pytest.raises(TypeError, match="x must be a DataArray, got a Dataset of xarray"):
        frames.as_array(xarray.Dataset())
    with pytest.raises(TypeError, match="in column 'when'"):
        frames.as_array(pandas.DataFrame({"when": pandas.to_datetime(["2026-01-01"])}))
    with pytest.raises(TypeError, match="in column 'kind'"):
        frames.as_array(pandas.DataFrame({"kind": pandas.Categorical([1, 2])}))
    with pytest.raises(TypeError, match="Trainer: x must have columns of numbers"):
        as_data(pandas.DataFrame({"a": ["x"]}), [1.0], 2)
    twice = pandas.DataFrame([[1.0, 2], [3.0, 4]], columns=["a", "a"])
    assert frames.as_array(twice).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    for data in ([1.0], {"a": 1}, None, np.ones(2)):
        assert frames.as_array(data) is data


@LIBRARIES
def test_scalers_keep_the_names(library: Any, backend: Backend) -> None:
    scaler = nn.features.StandardScaler().fit(library.DataFrame(COLUMNS))
    assert scaler.feature_names_in_ == ["a", "b", "c"]
    found = scaler.transform(library.DataFrame(COLUMNS))
    assert type(found) is type(ops.asarray([1.0]))
    expected = (np.array(ROWS) - np.mean(ROWS, axis=0)) / np.std(ROWS, axis=0)
    np.testing.assert_allclose(ops.to_numpy(found), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="x must have the columns that were fitted to, a, b, c, got a, b, d"):
        scaler.transform(library.DataFrame({"a": [1.0], "b": [1], "d": [2]}))
    array = xarray.DataArray(np.array(ROWS), dims=("row", "column"), coords={"column": ["a", "b", "c"]})
    assert nn.features.MinMaxScaler().fit(array).feature_names_in_ == ["a", "b", "c"]


def trained(*data: Any, **options: Any) -> dict[str, float]:
    ops.random.set_seed(0)
    trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.01))
    trainer.fit(*data, epochs=2, batch_size=2, **options)
    return trainer.evaluate(*data, batch_size=2)


def test_frames_and_xarray_train_as_arrays_do(backend: Backend) -> None:
    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)
    expected = trained(x, y)["loss"]
    for library in (pandas, polars):
        frame = library.DataFrame({"a": x[:, 0], "b": x[:, 1]})
        assert trained(frame, library.DataFrame({"t": y[:, 0]}))["loss"] == pytest.approx(expected, rel=1e-5)
        assert trained({"x": frame}["x"], y, validation_data=(frame, y))["loss"] == pytest.approx(expected, rel=1e-5)
    array = xarray.DataArray(EmberTensor(x), dims=("row", "column"))
    assert trained(array, xarray.DataArray(y))["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_target_may_be_a_column() -> None:
    class Flat(nn.Module):
        def __init__(self) -> None:
            self.linear = nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return ops.squeeze(self.linear(x), axis=1)

    with ember_ml.use_backend("numpy"):
        frame = pandas.DataFrame({"a": [1.0, 2.0], "t": [1.0, 0.0], "b": [3.0, 4.0]})
        trainer = training.Trainer(Flat(), "mse", optim.SGD(0.01))
        trainer.fit(frame, "t", validation_data=(frame, "t"))
        assert trainer.predict(frame[["a", "b"]]).shape == (2,)
        with pytest.raises(ValueError, match="y must be the name of a column, one of a, t, b, got 'z'"):
            trainer.fit(frame, "z")
        with pytest.raises(TypeError, match="y must be the name of a column for a data frame"):
            trainer.fit(np.ones((2, 2)), "t")


def test_labels_of_columns_may_repeat_and_the_target_may_not() -> None:
    rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    with ember_ml.use_backend("numpy"):
        x, y = as_data(pandas.DataFrame(rows, columns=["a", "a", "y"]), "y", 2).parts
        assert (x.tolist(), y.tolist()) == ([[1.0, 2.0], [4.0, 5.0]], [3.0, 6.0])
        x, y = as_data(polars.DataFrame(rows, schema=["a", "b", "y"], orient="row"), "y", 2).parts
        assert (x.tolist(), y.tolist()) == ([[1.0, 2.0], [4.0, 5.0]], [3.0, 6.0])
        with pytest.raises(ValueError, match=r"^Trainer: y must be the name of one column, got 'y', the name of 2"):
            as_data(pandas.DataFrame(rows, columns=["a", "y", "y"]), "y", 2)


@LIBRARIES
def test_targets_may_be_several_columns_of_a_frame(library: Any) -> None:
    frame = library.DataFrame({"a": [1.0, 2.0], "t": [3.0, 4.0], "u": [5, 6]})
    with ember_ml.use_backend("numpy"):
        for names in (["t", "u"], ("t", "u")):
            x, y = as_data(frame, names, 2).parts
            assert (x.tolist(), y.tolist()) == ([[1.0], [2.0]], [[3.0, 5.0], [4.0, 6.0]])
        assert as_data(frame, ["u"], 2).parts[1].tolist() == [[5], [6]]
        with pytest.raises(ValueError, match="Trainer: y must be the name of a column, one of a, t, u, got 'z'"):
            as_data(frame, ["t", "z"], 2)
        with pytest.raises(ValueError, match="Trainer: y must be the name of a column, one of a, t, u, got 2"):
            as_data(frame, 2, 2)
        with pytest.raises(TypeError, match="Trainer: y must be numbers, got text such as 'cat'; encode the labels"):
            as_data(frame, ["cat", "dog"], 2)
        assert as_data(frame, [0, 1], 2).parts[1].tolist() == [0, 1]
        assert as_data(frame, (np.ones(2), np.ones(2)), 2).count == 2


def test_labels_of_columns_may_be_any() -> None:
    rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    with ember_ml.use_backend("numpy"):
        for label in (2, np.int64(2)):
            x, y = as_data(pandas.DataFrame(rows), label, 2).parts
            assert (x.tolist(), y.tolist()) == ([[1.0, 2.0], [4.0, 5.0]], [3.0, 6.0])
        # A list of numbers is the targets themselves.
        assert as_data(pandas.DataFrame(rows), [0, 1], 2).parts[1].tolist() == [0, 1]
        labels = pandas.MultiIndex.from_tuples([("a", "u"), ("a", "v"), ("t", "")])
        x, y = as_data(pandas.DataFrame(rows, columns=labels), ("t", ""), 2).parts
        assert (x.tolist(), y.tolist()) == ([[1.0, 2.0], [4.0, 5.0]], [3.0, 6.0])
        with pytest.raises(ValueError, match="Trainer: y must be the name of a column, one of 0, 1, 2, got 7"):
            as_data(pandas.DataFrame(rows), 7, 2)


class Dataset:
    """What is used of a dataset of Hugging Face: rows are read by slices and lists of numbers, columns by name."""

    def __init__(self, columns: dict[str, Any], kind: str | None = None) -> None:
        self.columns, self.format, self.reads = columns, {"type": kind}, []

    @property
    def column_names(self) -> list[str]:
        return list(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: Any) -> dict[str, Any]:
        self.reads.append(rows)
        if self.format["type"] == "numpy":
            return {name: np.asarray(column)[rows] for name, column in self.columns.items()}
        raise AssertionError("lists of Python numbers are not read")

    def with_format(self, kind: str) -> Dataset:
        return Dataset(self.columns, kind)

    def select_columns(self, names: list[str]) -> Dataset:
        return Dataset({name: self.columns[name] for name in names}, self.format["type"])

    def select(self, rows: Any) -> Dataset:
        chosen = {name: np.asarray(column)[list(rows)] for name, column in self.columns.items()}
        return Dataset(chosen, self.format["type"])


class Streamed:
    """A dataset of Hugging Face that is streamed."""

    column_names = ("x", "t")

    def __init__(self, x: Any, y: Any, format_type: str | None = None) -> None:
        self.x, self.y = x, y
        self._formatting = None if format_type is None else SimpleNamespace(format_type=format_type)

    def with_format(self, kind: str) -> Streamed:
        return type(self)(self.x, self.y, kind)

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("rows are not read one by one")

    def iter(self, batch_size: int) -> Iterator[Any]:
        if self._formatting is None:
            raise AssertionError("lists of Python numbers are not read")
        for i in range(0, len(self.x), batch_size):
            batch = {"x": self.x[i : i + batch_size]}
            yield UserDict(batch if self.y is None else {**batch, "t": self.y[i : i + batch_size]})


def test_datasets_are_training_data(backend: Backend) -> None:
    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)
    expected = trained(x, y)["loss"]
    dataset = Dataset({"x": x, "t": y})
    # The same order of examples as arrays have.
    assert trained(dataset, "t")["loss"] == pytest.approx(expected, rel=1e-5)
    assert trained(Dataset({"x": x}), y)["loss"] == pytest.approx(expected, rel=1e-5)
    plain = trained(x, y, shuffle=False)["loss"]
    assert trained(Streamed(x, y), "t")["loss"] == pytest.approx(plain, rel=1e-5)
    assert trained([{"x": x[:2], "t": y[:2]}, {"x": x[2:], "t": y[2:]}], "t")["loss"] == pytest.approx(plain, rel=1e-5)


def test_the_only_column_of_a_streamed_dataset_is_the_input_of_predict() -> None:
    x = np.array(ROWS, np.float32)[:, :2]
    with ember_ml.use_backend("numpy"):
        model = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.1))
        expected = model.predict(x)
        np.testing.assert_array_equal(model.predict(Streamed(x, None), batch_size=2), expected)
        np.testing.assert_array_equal(model.predict(Dataset({"x": x})), expected)


def test_datasets_with_formats_of_tables_and_transforms() -> None:
    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)

    class Transformed(Dataset):
        """A dataset with ``set_transform``, whose function computes ``x`` from another column."""

        def __getitem__(self, rows: Any) -> dict[str, Any]:
            return {"x": self.columns["z"][rows]}

        def select_columns(self, names: list[str]) -> Transformed:
            return Transformed({name: self.columns[name] for name in names}, "custom")

    with ember_ml.use_backend("numpy"):
        # Columns of vectors are lists in these formats.
        for kind in ("arrow", "pandas", "polars"):
            assert np.array_equal(Column(Dataset({"x": x}, kind), "x")[[0, 2]], x[[0, 2]])
        with pytest.raises(KeyError) as caught:
            trained(Transformed({"x": x, "z": x, "t": y}, "custom"), "t")
        assert "columns are read one by one, so a transform" in caught.value.__notes__[0]


def test_datasets_have_the_columns_of_their_format() -> None:
    class Formatted(Dataset):
        """A dataset with ``set_format("numpy", columns=...)``, whose rows have these columns alone."""

        def __init__(self, columns: dict[str, Any], chosen: list[str], is_complete: bool = False) -> None:
            super().__init__(columns, "numpy")
            self.format |= {"columns": chosen, "output_all_columns": is_complete}

        def __getitem__(self, rows: Any) -> dict[str, Any]:
            names = self.column_names if self.format["output_all_columns"] else self.format["columns"]
            return {name: np.asarray(self.columns[name])[rows] for name in names}

        def select_columns(self, names: list[str]) -> Formatted:
            chosen = [name for name in self.format["columns"] if name in names]
            return Formatted({name: self.columns[name] for name in names}, chosen, self.format["output_all_columns"])

    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)
    columns = {"x": x, "text": ["u", "v", "w"], "t": y}
    with ember_ml.use_backend("numpy"):
        expected = trained(x, y, shuffle=False)
        assert trained(Formatted(columns, ["x", "t"]), "t", shuffle=False) == expected
        assert trained(Formatted({"x": x, "t": y}, ["x"], is_complete=True), "t", shuffle=False) == expected
        model = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.1))
        np.testing.assert_array_equal(model.predict(Formatted(columns, ["x"])), model.predict(x))
        with pytest.raises(ValueError, match="y must be the name of the column of targets, one of x, t, for a dataset"):
            model.fit(Formatted(columns, ["x", "t"]))


def test_the_splits_of_a_dataset_are_not_one() -> None:
    class Splits(dict[str, Any]):
        """What ``load_dataset`` returns if it is not asked for one split."""

        column_names = with_format = select_columns = None

    splits = Splits(train=Dataset({"x": ROWS, "t": ROWS}), test=Dataset({"x": ROWS, "t": ROWS}))
    message = r"Trainer: x must be one split of the dataset, got Splits with train, test; write x\['train'\]"
    with ember_ml.use_backend("numpy"):
        model = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.1))
        train = splits["train"]
        for use in (
            lambda: model.fit(splits, "t"),
            lambda: model.fit(splits),
            lambda: model.predict(splits),
            lambda: model.fit(train, "t", validation_data=splits),
        ):
            with pytest.raises(TypeError, match=message):
                use()


def test_targets_may_be_several_columns_of_a_dataset() -> None:
    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)
    columns = {"x": x, "t": y, "u": 2 * y}
    with ember_ml.use_backend("numpy"):
        for data in (Dataset(columns), [columns], iter([columns])):
            ((inputs, targets),) = as_data(data, ["t", "u"], 3).batches(shuffle=False)
            assert np.array_equal(inputs, x)
            assert (list(targets), targets["u"].tolist()) == (["t", "u"], (2 * y).tolist())
            with pytest.raises(ValueError, match=r"y must be the name of one of several columns, .* t, u, got 'z'"):
                next(as_data(data if isinstance(data, (list, Dataset)) else [columns], ["t", "z"], 3).batches(False))
        ((_, targets),) = as_data(Dataset(columns), ["t"], 3).batches(shuffle=False)
        assert np.array_equal(targets, y)
        with pytest.raises(TypeError, match="Trainer: y must be numbers, got text such as 'cat'; encode the labels"):
            as_data([[1.0], [2.0]], ["cat", "dog"], 2)


def test_validation_data_may_have_the_form_of_the_training_data(backend: Backend) -> None:
    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)

    def found(data: Any, target: Any, validation: Any) -> float:
        ops.random.set_seed(0)
        trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.01))
        return trainer.fit(data, target, batch_size=2, epochs=2, validation_data=validation)["val_loss"][-1]

    expected = pytest.approx(found(x, y, (x, y)), rel=1e-4)
    columns = {"x": x, "t": y}
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "t": y[:, 0]})
    assert found(frame, ["t"], frame) == expected
    assert found(Dataset(columns), "t", Dataset(columns)) == expected
    in_order = pytest.approx(found([(x[:2], y[:2]), (x[2:], y[2:])], None, (x, y)), rel=1e-4)
    batches = [{"x": x[:2], "t": y[:2]}, {"x": x[2:], "t": y[2:]}]
    for training_data in (Streamed(x, y), batches):
        # What has other forms is read as before.
        for validation in (Streamed(x, y), batches, [(x, y)], (x, y), (Dataset(columns), "t"), (batches, "t")):
            assert found(training_data, "t", validation) == in_order
    assert found(frame, ["t"], [(x, y)]) == expected


def test_mistakes_in_validation_data_are_found_before_training() -> None:
    with ember_ml.use_backend("numpy"):
        x, y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)
        frame = pandas.DataFrame({"a": [1.0], "b": [2.0], "t": [3.0]})

        def weightless(prediction: Any, target: Any) -> Any:
            return ops.mean_squared_error(target, prediction)

        for data, validation, message in (
            ((x, y), (x, y[:2]), "the first axes must have one length"),
            ((x, y), x, "y must be given for this loss, got None"),
            ((x, y), frame, "y must be given for this loss, got None"),
            ((frame, ["t"]), frame[["a", "b"]], "y must be the name of a column, one of a, b, got 't'"),
            ((x, y), (x, y, y[:, 0]), "sample_weight must be None for a loss without"),
        ):
            trainer = training.Trainer(nn.Linear(2, 1), weightless if len(validation) == 3 else "mse", optim.SGD(0.01))
            with pytest.raises((ValueError, TypeError), match=message) as caught:
                trainer.fit(*data, validation_data=validation)
            assert "in validation_data of Trainer.fit" in caught.value.__notes__
            assert trainer.step == 0
        trainer.loss = "mse"
        with pytest.raises(ValueError, match="y must be given for this loss") as caught:
            trainer.fit(x, y, validation_data=[{"x": x, "t": y}])
        assert "in validation_data of Trainer.fit" in caught.value.__notes__


def test_datasets_are_read_by_rows() -> None:
    with ember_ml.use_backend("numpy"):
        x, y = np.arange(12, dtype=np.float32).reshape(6, 2), np.ones((6, 1), np.float32)
        dataset = Dataset({"x": x, "t": y})
        trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.0))
        trainer.fit(dataset, "t", batch_size=4, validation_split=0.5)
        np.testing.assert_allclose(trainer.predict(Dataset({"x": x}), 4), trainer.predict(x, 4))
        several = as_data(Dataset({"a": x, "b": x, "t": y}), "t", 4)
        ((inputs, target),) = [batch for batch in several.batches(shuffle=False) if len(batch[1]) == 2]
        assert (list(inputs), target.tolist(), inputs["b"].tolist()) == (["a", "b"], [[1.0]] * 2, x[4:].tolist())
        with pytest.raises(ValueError, match="y must be the name of the column of targets, one of x, t, for a dataset"):
            trainer.fit(dataset)
        with pytest.raises(ValueError, match="y must be the name of one of several columns, which are x, t, got 'z'"):
            trainer.fit(dataset, "z")
        with pytest.raises(TypeError, match="batches must be dictionaries for y='t', the name of the targets"):
            trainer.fit([(x, y)], "t")
        with pytest.raises(ValueError, match="Trainer: sample_weight must be None for an iterable of batches"):
            trainer.fit([{"x": x, "t": y}], "t", sample_weight=np.ones(6))


def test_messages_name_the_data() -> None:
    with ember_ml.use_backend("numpy"):
        trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.01))
        x, y = np.ones((3, 2), np.float32), np.ones((3, 1), np.float32)
        lazy = polars.LazyFrame(COLUMNS)
        for data in ((lazy, y), (lazy,), (lazy, "a")):
            with pytest.raises(
                TypeError, match=r"^Trainer: x must be a DataFrame, got a LazyFrame .*; write x.collect"
            ):
                trainer.fit(*data)
        with pytest.raises(TypeError, match=r"^Trainer: y must be numbers, got str; write codes for what is text"):
            trainer.fit(x, pandas.Series(["a", "b", "c"]))
        with pytest.raises(TypeError, match=r"^Trainer: y must be numbers, got str in 'kind'; write codes"):
            trainer.fit(x, pandas.Series(["a", "b", "c"], name="kind"))
        with pytest.raises(
            TypeError, match=r"^Trainer: x\['a'\] must be numbers, got text such as 'u'; encode it as num"
        ):
            trainer.fit({"a": ["u", "v", "w"]}, y)
        with pytest.raises(
            TypeError, match=r"^Trainer: column 'a' must be numbers, got text such as 'u'; encode it as num"
        ):
            trainer.fit(Dataset({"a": ["u", "v", "w"], "t": y}), "t", shuffle=False)
        nested = [{"u": 1.0, "v": 2.0}] * 3
        for data in ((Dataset({"a": nested, "t": y}),), ([{"a": nested, "t": y}],), (Dataset({"a": y, "t": nested}),)):
            with pytest.raises(
                TypeError,
                match=r"^Trainer: column '(a|t)' must be numbers, got dictionaries with u, v; for nested features of a "
                r"dataset, write x.flatten\(\), or wrap x in torch.utils.data.DataLoader\(x, batch_size\)",
            ):
                trainer.fit(*data, "t", shuffle=False)
        with pytest.raises(TypeError, match=r"^Trainer: x must be numbers, got dictionaries with u"):
            trainer.fit([[{"u": 1.0}]] * 3, y)
        ragged = np.empty(3, object)
        ragged[:] = [[1.0], [1.0, 2.0], [1.0]]
        with pytest.raises(
            ValueError, match=r"^Trainer: column 'a' must have rows of one shape, got .* \[1\] and \[2\]; pad"
        ):
            trainer.fit(Dataset({"a": ragged, "t": y}), "t", shuffle=False)
        with pytest.raises(ValueError, match=r"^Trainer: x\['a'\] must have rows of one shape"):
            trainer.fit([{"a": ragged.tolist(), "b": x, "t": y}], "t")
        with pytest.raises(TypeError, match=r"^Trainer: column 'a' must be numbers, got text"):
            trainer.fit([{"a": ["u"] * 3, "t": y}], "t")


def test_batches_without_targets_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="the datasets are its own")
    with ember_ml.use_backend("numpy"):
        x, y = np.ones((3, 2), np.float32), np.ones((3, 1), np.float32)
        trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.01))
        dataset = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
        wrap = (
            r"got a TensorDataset, which has single examples; wrap it in torch.utils.data.DataLoader\(x, batch_size\)"
        )
        for call in (lambda: trainer.fit(dataset), lambda: trainer.fit(dataset, y), lambda: trainer.predict(dataset)):
            with pytest.raises(TypeError, match=wrap):
                call()
        with pytest.raises(TypeError, match=wrap):
            trainer.fit(x, y, validation_data=dataset)
        for measure in (trainer.fit, trainer.evaluate):
            with pytest.raises(ValueError, match=r"write the name of the targets, one of x, t: fit\(batches, name\)"):
                measure([{"x": x, "t": y}])
            with pytest.raises(ValueError, match=r"batches must be \(x, y\) or \(x, y, weights\), got a tuple of 4"):
                measure([(x, y, y, y)])
            with pytest.raises(ValueError, match="a tuple holds the inputs of a model, so write batches as a list"):
                measure(((x, y), (x, y)))
        # A loss of the user may do without targets.
        free = training.Trainer(nn.Lambda(lambda batch: batch["x"]), lambda prediction, _: ops.mean(prediction), "sgd")
        assert free.evaluate([{"x": x}])["loss"] == 1


def test_datasets_of_torch_without_numbers_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="the datasets are its own")

    class Numbers(torch.utils.data.IterableDataset):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Iterator[Any]:
            return iter([(torch.ones(2), torch.ones(2))] * 6)

    class Both(Numbers):
        def __getitem__(self, index: int) -> Any:
            return torch.ones(2), torch.ones(2)

        def __len__(self) -> int:
            return 6

    with ember_ml.use_backend("numpy"):
        trainer = training.Trainer(nn.Linear(2, 2), "mse", optim.SGD(0.01))
        wrap = (
            r"got a (Numbers|Both), which has single examples; wrap it in torch.utils.data.DataLoader\(x, batch_size\)"
            ", with batch_size=None if its examples are batches"
        )
        for data in (Numbers(), Both()):
            for call in (trainer.fit, trainer.evaluate, trainer.predict):
                with pytest.raises(TypeError, match=wrap):
                    call(data)
            with pytest.raises(TypeError, match=wrap):
                trainer.fit(data, "t")
        assert len(trainer.fit(torch.utils.data.DataLoader(Numbers(), 4)).steps) == 2
        assert len(trainer.fit(torch.utils.data.DataLoader(Numbers(), None)).steps) == 6


def test_streamed_datasets_may_be_datasets_of_torch(backend: Backend) -> None:
    """The class of Hugging Face has torch's IterableDataset as a base if torch is installed."""
    torch = pytest.importorskip("torch", reason="the datasets are its own")
    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)
    plain = trained(x, y, shuffle=False)["loss"]
    kind = type("IterableDataset", (Streamed, torch.utils.data.IterableDataset), {})
    assert trained(kind(x, y), "t")["loss"] == pytest.approx(plain, rel=1e-5)


def test_loaders_of_unknown_length_are_training_data() -> None:
    torch = pytest.importorskip("torch", reason="the loader is its own")

    class Numbers(torch.utils.data.IterableDataset):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Iterator[Any]:
            return iter([(torch.ones(2), torch.ones(1))] * 6)

    with ember_ml.use_backend("numpy"):
        trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.01))
        assert len(trainer.fit(torch.utils.data.DataLoader(Numbers(), 4), epochs=2).steps) == 4


def test_loaders_of_torch_are_training_data(backend: Backend) -> None:
    torch = pytest.importorskip("torch", reason="the loader is its own")
    x, y = torch.tensor(ROWS)[:, :2], torch.tensor([[1.0], [0.0], [1.0]])
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 2)
    plain = trained(x.numpy(), y.numpy(), shuffle=False)["loss"]
    assert trained(loader)["loss"] == pytest.approx(plain, rel=1e-5)
    trainer = training.Trainer(nn.Linear(2, 1), "mse", optim.SGD(0.01))
    assert tuple(trainer.predict(loader).shape) == (3, 1)


class Pair(nn.Module):
    """Takes two inputs and gives two outputs, or their sum."""

    def __init__(self, outputs: int = 1) -> None:
        self.linear, self.outputs = nn.Linear(2, 1), outputs

    def forward(self, x: Any) -> Any:
        assert type(x) is tuple
        a, b = x
        found = self.linear(ops.add(a, b))
        return found if self.outputs == 1 else (found, ops.multiply(found, 2))


def both_errors(prediction: Any, target: Any) -> Any:
    assert type(target) is tuple
    return sum(ops.mean_squared_error(y, p) for y, p in zip(target, prediction, strict=True))


def loaded(examples: list[Any], batch_size: int = 2, **options: Any) -> Any:
    torch = pytest.importorskip("torch", reason="the loader is its own")
    return torch.utils.data.DataLoader(examples, batch_size, **options)


@pytest.mark.parametrize("container", [tuple, list])
def test_loaders_of_torch_may_have_several_inputs_and_targets(backend: Backend, container: Any) -> None:
    """The loader makes lists of both, which are no arrays."""
    a, b = np.array(ROWS, np.float32)[:, :2], np.array(ROWS, np.float32)[:, 1:]
    y = np.array([[1.0], [0.0], [1.0]], np.float32)

    def found(*data: Any, outputs: int, **options: Any) -> list[float]:
        ops.random.set_seed(0)
        trainer = training.Trainer(Pair(outputs), "mse" if outputs == 1 else both_errors, optim.SGD(0.01))
        steps = trainer.fit(
            *data, batch_size=2, epochs=2, validation_data=data if len(data) == 2 else data[0], **options
        )
        return [*steps.steps, *steps["loss"], *steps["val_loss"], trainer.evaluate(*data, batch_size=2)["loss"]]

    inputs = [container(pair) for pair in zip(a, b, strict=True)]
    loader = loaded(list(zip(inputs, y, strict=True)))
    expected = found((a, b), y, outputs=1, shuffle=False)
    np.testing.assert_allclose(found(loader, outputs=1), expected, rtol=1e-5)
    assert tuple(training.Trainer(Pair(), "mse", "sgd").predict(loader).shape) == (3, 1)
    targets = [container(pair) for pair in zip(y, 2 * y, strict=True)]
    expected = found((a, b), (y, 2 * y), outputs=2, shuffle=False)
    np.testing.assert_allclose(found(loaded(list(zip(inputs, targets, strict=True))), outputs=2), expected, rtol=1e-5)
    named = loaded([{"x": pair, "t": target} for pair, target in zip(inputs, y, strict=True)])
    ops.random.set_seed(0)
    steps = training.Trainer(Pair(), "mse", optim.SGD(0.01)).fit(named, "t").steps
    np.testing.assert_allclose(steps, found((a, b), y, outputs=1, shuffle=False)[:2], rtol=1e-5)


class Example(NamedTuple):
    """What a dataset of torch may return for an example."""

    image: Any
    label: Any


def test_batches_may_be_named_tuples(backend: Backend) -> None:
    """A loader of torch makes them of examples that are."""
    x, y = np.array(ROWS, np.float32)[:, :2], np.array([[1.0], [0.0], [1.0]], np.float32)
    expected = trained(x, y, shuffle=False)["loss"]
    batches = [Example(x[:2], y[:2]), Example(x[2:], y[2:])]
    for data in (batches, loaded([Example(a, b) for a, b in zip(x, y, strict=True)])):
        assert trained(data, validation_data=Example(x, y))["loss"] == pytest.approx(expected, rel=1e-5)
    # As the input of a model, one is the tuple of its parts.
    a = np.array(ROWS, np.float32)[:, 1:]
    found = training.Trainer(Pair(), "mse", "sgd").predict(Example(x, a))
    assert tuple(found.shape) == (3, 1)
    inputs = loaded([(Example(first, second), target) for first, second, target in zip(x, a, y, strict=True)])
    assert len(training.Trainer(Pair(), "mse", "sgd").fit(inputs).steps) == 2


def test_inputs_of_loaders_may_be_nested_and_of_several_shapes(backend: Backend) -> None:
    torch = pytest.importorskip("torch", reason="the tensors are its own")
    example = ((torch.ones(2), [torch.ones(3), {"c": (torch.ones(4),)}]), 1.0)
    ((x, y),) = Batches(loaded([example] * 2)).batches(shuffle=False)
    assert type(x) is type(x[1]) is type(x[1][1]["c"]) is tuple
    assert [tuple(leaf.shape) for leaf in (x[0], x[1][0], x[1][1]["c"][0], y)] == [(2, 2), (2, 3), (2, 4), (2,)]


def test_lists_of_numbers_are_arrays(backend: Backend) -> None:
    x, y = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 0.0, 1.0]
    for batches in (
        [(x, y)],
        loaded([(x, y)], None),
        loaded([*zip(x, y, strict=True)], 3, collate_fn=lambda _: (x, y)),
    ):
        ((inputs, targets),) = Batches(batches).batches(shuffle=False)
        assert (ops.to_numpy(inputs).tolist(), ops.to_numpy(targets).tolist()) == (x, y)
    pairs = [tuple(row) for row in x]
    ((inputs, _),) = Batches(loaded(x, 3, collate_fn=lambda _: (pairs, y))).batches(shuffle=False)
    assert ops.to_numpy(inputs).tolist() == x
    ((inputs, _),) = Batches([([np.ones(2), np.zeros(2)], [1.0, 0.0])]).batches(shuffle=False)
    assert tuple(inputs.shape) == (2, 2)


class Tokens(UserDict[str, Any]):
    """What a tokenizer of ``transformers`` returns."""


def test_mappings_are_data(backend: Backend) -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            self.linear = nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return self.linear(ops.add(x["a"], x["b"]))

    a, b = np.array(ROWS, np.float32)[:, :2], np.array(ROWS, np.float32)[:, 1:]
    y = np.array([[1.0], [0.0], [1.0]], np.float32)
    trainer = training.Trainer(Sum(), "mse", optim.SGD(0.0))
    tokens = Tokens({"a": a, "b": b.tolist()})
    expected = trainer.evaluate({"a": a, "b": b}, y)["loss"]
    assert trainer.fit(tokens, y, batch_size=3)["loss"] == [pytest.approx(expected, rel=1e-5)]
    assert trainer.evaluate(tokens, y, batch_size=2)["loss"] == pytest.approx(expected, rel=1e-5)
    expected = ops.to_numpy(trainer.predict({"a": a, "b": b}))
    np.testing.assert_allclose(ops.to_numpy(trainer.predict(tokens, batch_size=2)), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="y must be given for this loss, got None"):
        trainer.fit(tokens)
    free = training.Trainer(Sum(), lambda prediction, _: ops.mean(prediction), optim.SGD(0.0))
    assert len(free.fit(tokens, batch_size=2).steps) == 2


def test_batches_are_not_copied() -> None:
    torch = pytest.importorskip("torch", reason="its tensors are the batches")
    x = torch.ones(4, 3)
    for name in ("numpy", "torch"):
        with ember_ml.use_backend(name):
            ((batch, _),) = Batches([(x, x)]).batches(shuffle=False)
        if name == "torch":
            assert batch is x
        else:
            assert type(batch) is np.ndarray
            assert batch.ctypes.data == x.data_ptr()


def test_an_ember_tensor_in_xarray(backend: Backend) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    coords = {"x": [10, 20], "y": ["a", "b", "c"]}
    array = xarray.DataArray(EmberTensor(values), dims=("x", "y"), coords=coords)
    peer = xarray.DataArray(values, dims=("x", "y"), coords=coords)
    row = np.array([1.0, 2.0, 3.0], np.float32)
    pairs = {
        "itself": lambda a, c: a,
        "sum": lambda a, c: a.sum("x"),
        "mean": lambda a, c: a.mean("y"),
        "whole mean": lambda a, c: a.mean(),
        "max": lambda a, c: a.max("x"),
        "std": lambda a, c: a.std("x"),
        "any": lambda a, c: (a > 1).any("y"),
        "arithmetic": lambda a, c: (a + 1) * 2 - a / 4,
        "power": lambda a, c: (-a) ** 2,
        "broadcasting": lambda a, c: a * c,
        "broadcasting from the left": lambda a, c: c + a.transpose("y", "x"),
        "universal function": lambda a, c: np.sqrt(a),
        "isel": lambda a, c: a.isel(x=0),
        "isel slice": lambda a, c: a.isel(y=slice(0, 2)),
        "isel list": lambda a, c: a.isel(x=[1, 0], y=[2, 0]),
        "sel": lambda a, c: a.sel(x=20),
        "sel list": lambda a, c: a.sel(y=["a", "c"]),
        "transpose": lambda a, c: a.transpose("y", "x"),
        "where": lambda a, c: a.where(a > 2, 0.0),
        "concat": lambda a, c: xarray.concat([a, a], dim="x"),
        "groupby": lambda a, c: a.groupby("x").mean(),
        "shift": lambda a, c: a.shift(x=1, fill_value=0.0),
        "pad": lambda a, c: a.pad(x=1, constant_values=0.0).drop_vars("x"),
        "reindex": lambda a, c: a.reindex(x=[10, 30], fill_value=0.0),
        "argmax": lambda a, c: a.argmax("y"),
    }
    for name, function in pairs.items():
        found = function(array, xarray.DataArray(EmberTensor(row), dims="y"))
        expected = function(peer, xarray.DataArray(row, dims="y"))
        assert isinstance(found.data, EmberTensor), name
        assert found.data.backend == backend.name, name
        assert (found.dims, found.shape) == (expected.dims, expected.shape), name
        np.testing.assert_allclose(found.data.numpy(), expected.values, rtol=1e-6, err_msg=name)
        assert {key: list(c.values) for key, c in found.coords.items() if c.ndim} == {
            key: list(c.values) for key, c in expected.coords.items() if c.ndim
        }, name
