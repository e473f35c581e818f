"""Training data: arrays split into batches, or an iterable of batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from itertools import islice
from numbers import Real
from operator import index
from typing import Any, NamedTuple

from ember_ml import ops, tree
from ember_ml.dtypes import written
from ember_ml.extend import unchecked, unwrap
from ember_ml.frames import as_array, is_frame
from ember_ml.training.ranks import check_batch

# Examples, targets and, optionally, weights.
Batch = tuple[Any, ...]


class Share(NamedTuple):
    """Part of a batch that one of several ranks computes: a slice of its examples.

    If a batch has fewer examples than there are ranks, every rank computes all of them, and rank 0 counts them.
    """

    batch: Batch
    # Number of the first example and of all examples of the part, and number of examples of the whole batch.
    first: int
    examples: int
    of: int
    # Weight of the whole batch: its number of examples, or the sum of their weights.
    weight: Any
    # Whether losses and metrics of this rank count.
    is_counted: bool = True


def slice_of(count: int, rank: int, size: int) -> slice:
    """Examples that a rank computes of a batch of ``count``; all of them if there are fewer than ranks.

    >>> [slice_of(10, rank, 4) for rank in range(4)]
    [slice(0, 2, None), slice(2, 5, None), slice(5, 7, None), slice(7, 10, None)]
    """
    return slice(count * rank // size, count * (rank + 1) // size) if count >= size else slice(0, count)


class Data:
    """Base class of training data, which yield the share of a rank in each batch."""

    def shares(
        self, shuffle: bool, skip: int = 0, resume_state: Any = None, rank: int = 0, size: int = 1
    ) -> Generator[Share, None, None]:
        """Share of a rank in each batch from number ``skip`` on.

        Args:
            shuffle: draw the order of the examples from the library's random stream.
            resume_state: state of the random stream after the skipped batches, restored before the first batch.
            rank: number of this rank.
            size: number of ranks.
        """
        raise NotImplementedError

    def batches(self, shuffle: bool, skip: int = 0) -> Generator[Batch, None, None]:
        """Whole batches from number ``skip`` on."""
        with closing(self.shares(shuffle, skip)) as shares:
            for share in shares:
                yield share.batch


class Arrays(Data):
    """Examples along the first axis of every tensor.

    Memory-mapped files are read one batch at a time, in a thread that is a few batches ahead.
    """

    def __init__(self, x: Any, y: Any, batch_size: int, device: str | None = None, weights: Any = None) -> None:
        batch_size = check_integer("batch_size", batch_size, 1)
        given = (x, y) if weights is None else (x, y, weights)
        self.parts = [
            None if part is None else _as_tensors(part, device, name, keeps_files=True)
            for name, part in zip(_PARTS, given, strict=False)
        ]
        self.batch_size = batch_size
        self.device = device
        self.count = _count_examples(*self.parts)

    def __len__(self) -> int:
        return -(-self.count // self.batch_size)

    def shares(
        self, shuffle: bool, skip: int = 0, resume_state: Any = None, rank: int = 0, size: int = 1
    ) -> Generator[Share, None, None]:
        if not self.count:
            raise ValueError("Trainer: x must have at least 1 example along its first axis, got none")
        order = ops.random.permutation(self.count, device=self.device) if shuffle else None
        if resume_state is not None:
            ops.random.set_state(resume_state)
        files = [leaf for leaf in tree.leaves(self.parts) if _is_file(leaf)]
        # Files are indexed on the host; one read of the order serves all batches.
        rows: Any = ops.to_numpy(ops.arange(self.count) if order is None else order) if files else None

        def read(part: slice) -> list[Any]:
            # An array of indices reads a copy; a slice would refer to the file.
            return [_read(file, rows[part], self.device) for file in files]

        if size > 1:
            head = slice(0, min(self.batch_size, self.count))
            check_batch(tree.map(lambda x: None if x is None else x[head], self.parts), self.count, self.device)
        begins = range(skip * self.batch_size, self.count, self.batch_size)
        counts = [min(self.batch_size, self.count - begin) for begin in begins]
        slices = [slice_of(count, rank, size) for count in counts]
        parts = [slice(begin + own.start, begin + own.stop) for begin, own in zip(begins, slices, strict=True)]
        results: Generator[list[Any], None, None] = prefetch(read, parts) if files else ([] for _ in parts)
        with closing(results):
            for begin, count, own, part, tensors in zip(begins, counts, slices, parts, results, strict=True):
                rest = iter(tensors)
                batch = tuple(self._batch(data, part, order, rest) for data in self.parts)
                weights = batch[2:]
                if weights and own.stop - own.start < count:
                    # The rank needs the weight of all examples.
                    given: Any = self.parts[2]
                    whole = slice(begin, begin + count)
                    held = [_read(given, rows[whole], self.device)] if _is_file(given) else []
                    weights = (self._batch(given, whole, order, iter(held)),)
                weight = weight_of(count, *weights)
                yield Share(batch, own.start, own.stop - own.start, count, weight, count >= size or not rank)

    def _batch(self, data: Any, part: slice, order: Any, read: Iterator[Any]) -> Any:
        """Examples of ``data`` whose numbers are ``part`` of ``order``; those of files are the next of ``read``."""
        if data is None:
            return None

        def chosen(x: Any) -> Any:
            if _is_file(x):
                return next(read)
            return x[part] if order is None else ops.take(x, order[part], axis=0)

        # The indices of a permutation are in range.
        with unchecked():
            return tree.map(chosen, data)

    def split(self, fraction: float) -> tuple[Arrays, Batch]:
        """Examples to train on, and the last ``fraction`` of all, as Keras splits them: before any shuffling."""
        if isinstance(fraction, bool) or not isinstance(fraction, Real):
            raise TypeError(f"Trainer: validation_split must be a number, got {written(fraction)}")
        if not 0 < fraction < 1:
            raise ValueError(f"Trainer: validation_split must be > 0 and < 1, got {fraction!r}")
        first = int(self.count * (1 - fraction))
        if not 0 < first < self.count:
            raise ValueError(
                "Trainer: validation_split must leave at least 1 example to train on and 1 to validate with, got "
                f"{fraction} of {self.count} examples"
            )
        head, tail = (
            [None if data is None else tree.map(lambda x, part=part: _sliced(x, part), data) for data in self.parts]
            for part in (slice(None, first), slice(first, None))
        )
        return Arrays(head[0], head[1], self.batch_size, self.device, *head[2:]), tuple(tail)


class Batches(Data):
    """Iterable of batches ``(x, y)`` or ``(x, y, weights)``; for prediction, of ``x`` or ``(x,)``.

    Training for more than one epoch requires an iterable that can be iterated more than once. On several ranks, it must
    yield the same batches on each, which takes its slice of them.

    Args:
        target: key of the targets, or a list of several, if the batches are dictionaries.
        needs_target: whether a batch without targets is an error.
        takes_pairs: whether batches may be ``(x, y)`` in spite of ``target``.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        device: str | None = None,
        target: Any = None,
        needs_target: bool = False,
        takes_pairs: bool = False,
    ) -> None:
        _check_iterable(batches)
        self.source = batches
        # A loader of torch makes lists of the tuples of examples.
        self.has_lists = _is_of_torch(batches, "DataLoader")
        self.device = device
        self.target = target
        self.needs_target = needs_target
        self.takes_pairs = takes_pairs

    def __len__(self) -> int:
        """Number of batches; 0 if unknown."""
        try:
            return len(self.source) if isinstance(self.source, Sized) else 0
        except TypeError:
            # A loader of torch asks its dataset, and an IterableDataset need not have a length.
            return 0

    def shares(
        self, shuffle: bool, skip: int = 0, resume_state: Any = None, rank: int = 0, size: int = 1
    ) -> Generator[Share, None, None]:
        source = iter(self.source)
        is_empty, is_first = not sum(1 for _ in islice(source, skip)), True
        if resume_state is not None:
            # An iterable may draw its order with the first batch, so the state is restored after the skipped ones.
            ops.random.set_state(resume_state)
        for batch in source:
            is_empty = False
            if self.target is None and isinstance(self.source, _Streamed):
                batch = _only_or_all(batch)
            parts = batch if isinstance(batch, (tuple, list)) and len(batch) in (1, 2, 3) else (batch,)
            names = _PARTS
            if self.target is not None and (isinstance(batch, Mapping) or not self.takes_pairs):
                parts = _split_columns(batch, self.target)
                others = [name for name in batch if name not in _names(self.target)]
                names = (f"column {others[0]!r}" if len(others) == 1 else "x", *_PARTS[1:])
            if self.needs_target and len(parts) == 1:
                raise _error_without_target(parts[0])
            given = (*parts, None) if len(parts) == 1 else parts
            tensors = tuple(
                None if part is None else _as_tensors(_with_tuples(part) if self.has_lists else part, self.device, name)
                for name, part in zip(names, given, strict=False)
            )
            targets = tree.leaves(tensors[1])
            if not all(leaf.ndim for leaf in tree.leaves(tensors[0])) or not any(x is None or x.ndim for x in targets):
                raise ValueError(
                    "Trainer: without y, x must be an iterable of batches (x, y), whose first axes count examples, "
                    "got a single number for a batch; if x is data itself, y is missing"
                )
            if size > 1 and is_first:
                # One batch shows whether each rank has its own data; comparing all of them would take time.
                check_batch(tensors, 0, self.device)
            is_first = False
            yield _share_of(tensors, rank, size)
        if is_empty:
            raise ValueError(
                "Trainer: x must have at least 1 batch, got none; an iterator is empty after its first epoch"
            )


def _share_of(batch: Batch, rank: int, size: int) -> Share:
    """Share of a rank in a batch."""
    if size == 1:
        _check_counts(batch)
        count = size_of(batch[0])
    else:
        # All tensors must be sliced.
        count = _count_examples(*batch)
    weight = weight_of(count, *batch[2:])
    if size == 1:
        return Share(batch, 0, count, count, weight)
    own = slice_of(count, rank, size)
    part = tuple(None if data is None else tree.map(lambda x: x[own], data) for data in batch)
    return Share(part, own.start, own.stop - own.start, count, weight, count >= size or not rank)


def weight_of(count: int, weights: Any = None) -> Any:
    """Weight of examples: their number, or the sum of their weights."""
    return count if weights is None else ops.sum(ops.cast(weights, "float32"))


def as_data(
    x: Any, y: Any, batch_size: int, device: str | None = None, weights: Any = None, needs_target: bool = False
) -> Arrays | Batches:
    """Data on a device: ``x``, ``y`` and weights split into batches, or ``x`` alone as an iterable of batches.

    Args:
        needs_target: whether data without targets are an error.
    """
    _check_iterable(x)
    if target_of(x, y) is not None:
        if is_frame(x) or is_table(x):
            x, y = _split_target(x, y)
        elif isinstance(x, Iterable) and not _is_array(x):
            _check_weightless(weights)
            return Batches(batches_of(x, batch_size), device, y)
        else:
            # A LazyFrame, which is to be collected, is the error then.
            as_array(x, "Trainer: x")
            raise TypeError(
                "Trainer: y must be the name of a column for a data frame, a dataset or batches that are dictionaries "
                f"alone, got {y!r} for {written(x)}"
            )
    elif is_table(x):
        if y is None:
            raise ValueError(
                f"Trainer: y must be the name of the column of targets, one of {', '.join(_column_names(x))}, for a "
                "dataset, got None"
            )
        x = columns_of(x)
    if y is None and not _is_array(x):
        if not isinstance(x, Iterable):
            as_array(x, "Trainer: x")
            raise TypeError(f"Trainer: x must be arrays or an iterable of batches, got {written(x)}")
        _check_weightless(weights)
        return Batches(batches_of(x, batch_size), device, needs_target=needs_target)
    if y is None and needs_target:
        is_nested = isinstance(x, tuple) and any(isinstance(part, (tuple, list, dict)) for part in x)
        hint = "; a tuple holds the inputs of a model, so write batches as a list" if is_nested else ""
        raise ValueError(f"Trainer: y must be given for this loss, got None{hint}")
    return Arrays(x, y, batch_size, device, weights)


def as_validation(
    data: Any, target: Any, batch_size: int, device: str | None = None, needs_target: bool = False
) -> Arrays | Batches:
    """Validation data: ``(x, y)`` or ``(x, y, weights)``, or data in the form of the training data.

    Args:
        target: name of the targets in the training data, or ``None``.
    """
    is_pair = isinstance(data, tuple) or (isinstance(data, list) and all(hasattr(part, "shape") for part in data))
    if is_pair and len(data) in (2, 3):
        x, y, weights = (*data, None)[:3]
        return as_data(x, y, batch_size, device, weights, needs_target)
    y = None
    _check_split(data)
    if target is not None and (is_frame(data) or is_table(data)):
        data, y = _split_target(data, target)
    found = as_data(data, y, batch_size, device, None, needs_target)
    if target is not None and isinstance(found, Batches):
        found.target, found.takes_pairs = target, True
    return found


def target_of(x: Any, y: Any) -> Any:
    """``y`` if it is the name of the targets in ``x``, or a list of several; ``None`` if it is targets itself."""
    if isinstance(y, str) or (is_frame(x) and _is_label(y)):
        return y
    if not isinstance(y, (list, tuple)) or not y or not all(isinstance(name, str) for name in y):
        return None
    if is_frame(x) or is_table(x):
        # Others are labels that are text.
        names = list(x.columns) if is_frame(x) else _column_names(x)
        return y if any(name in names for name in y) else None
    if isinstance(x, list) and not (x and isinstance(x[0], Mapping)):
        # A list of numbers is data, and one of pairs has targets.
        return None
    return y if isinstance(x, Iterable) and not _is_array(x) else None


def _is_label(y: Any) -> bool:
    """Whether ``y`` is a value, or a tuple of values, as labels of pandas are; without an axis, it is not targets."""
    if isinstance(y, tuple):
        return bool(y) and all(_is_label(part) for part in y)
    return isinstance(y, str) or not (y is None or hasattr(y, "__len__") or hasattr(y, "__iter__"))


def _check_weightless(weights: Any) -> None:
    if weights is not None:
        raise ValueError(
            "Trainer: sample_weight must be None for an iterable of batches, which hold their weights: (x, y, weights)"
        )


def _check_iterable(x: Any) -> None:
    """Raise an error for a dataset of torch, which has single examples, by number or one after the other."""
    _check_split(x)
    # A streamed dataset of Hugging Face has torch's IterableDataset as a base if torch is installed.
    if _is_array(x) or is_table(x) or _is_streamed(x):
        return
    is_iterable = hasattr(x, "__iter__")
    has_numbers = not is_iterable and hasattr(x, "__getitem__") and hasattr(x, "__len__")
    if has_numbers or _is_of_torch(x, "Dataset"):
        hint = ", with batch_size=None if its examples are batches" if is_iterable else ""
        raise TypeError(
            f"Trainer: x must be arrays or an iterable of batches, got {written(x)}, which has single examples; wrap "
            f"it in torch.utils.data.DataLoader(x, batch_size){hint}"
        )


def _is_of_torch(x: Any, name: str) -> bool:
    """Whether ``x`` is an instance of a class of ``torch.utils.data``, which is not imported."""
    return any(base.__name__ == name and base.__module__.startswith("torch.utils.data.") for base in type(x).__mro__)


def _with_tuples(part: Any) -> Any:
    """A part of a batch with tuples instead of lists of tensors. Lists of numbers and of text remain."""
    if isinstance(part, Mapping):
        return {key: _with_tuples(value) for key, value in part.items()}
    if not isinstance(part, (list, tuple)):
        return part
    items = [_with_tuples(item) for item in part]
    # Numbers, and tensors without axes, are the examples of one array.
    has_tensors = any(getattr(leaf, "ndim", 0) for leaf in tree.leaves(items))
    return tuple(items) if has_tensors or isinstance(part, tuple) else part


def _error_without_target(batch: Any) -> ValueError:
    """Error for a batch without targets."""
    text = "Trainer: y must be given for this loss, got None; "
    if isinstance(batch, Mapping):
        return ValueError(
            f"{text}for batches that are dictionaries, write the name of the targets, one of "
            f"{', '.join(map(str, batch))}: fit(batches, name)"
        )
    found = f"a {type(batch).__name__} of {len(batch)}" if isinstance(batch, (tuple, list)) else written(batch)
    return ValueError(f"{text}without it, batches must be (x, y) or (x, y, weights), got {found}")


def _is_array(x: Any) -> bool:
    return ops.is_tensor(x) or hasattr(x, "__array__") or isinstance(x, (Mapping, tuple))


class Column:
    """Column of a dataset of Hugging Face, which is read by rows when they are needed."""

    ndim = 1

    def __init__(self, table: Any, name: str) -> None:
        self.table = _with_arrays(table, getattr(table, "format", {}).get("type")).select_columns([name])
        self.name = name

    @property
    def shape(self) -> tuple[int]:
        return (len(self.table),)

    def __getitem__(self, rows: Any) -> Any:
        try:
            return self.table[rows][self.name]
        except KeyError as error:
            error.add_note(
                f"in column {self.name!r} of Trainer: columns are read one by one, so a transform of the dataset must "
                "not require others; use x.map, or wrap x in torch.utils.data.DataLoader(x, batch_size)"
            )
            raise

    def part(self, rows: slice) -> Column:
        """The column of a range of rows."""
        return Column(self.table.select(range(len(self.table))[rows]), self.name)


def _with_arrays(dataset: Any, format_type: str | None) -> Any:
    """A dataset of Hugging Face whose rows are arrays."""
    # Rows without a format are lists of Python numbers, and vectors are lists in tables; arrays refer to the file.
    return dataset.with_format("numpy") if format_type in (None, "arrow", "pandas", "polars") else dataset


def is_table(x: Any) -> bool:
    """Whether ``x`` is a dataset of Hugging Face that is read by rows, or has the same protocol."""
    return all(hasattr(x, name) for name in ("column_names", "select_columns", "with_format", "__getitem__", "__len__"))


def columns_of(table: Any) -> Any:
    """The columns of a dataset by name, or its only column."""
    _check_split(table)
    return _only_or_all({name: Column(table, name) for name in _column_names(table)})


def _column_names(table: Any) -> list[str]:
    """Names of the columns that rows of a dataset have: those of its format if it names some, else all."""
    chosen = getattr(table, "format", {})
    names = None if chosen.get("output_all_columns") else chosen.get("columns")
    return list(names or table.column_names)


def _only_or_all(columns: Any) -> Any:
    """The column if there is one alone, else all of them by name."""
    return next(iter(columns.values())) if len(columns) == 1 else columns


def _check_split(x: Any) -> None:
    """Raise an error for all splits of a dataset of Hugging Face, which are a dictionary."""
    if isinstance(x, Mapping) and is_table(x):
        first = next(iter(x), "train")
        raise TypeError(
            f"Trainer: x must be one split of the dataset, got {type(x).__name__} with {', '.join(map(str, x))}; write "
            f"x[{first!r}]"
        )


def batches_of(x: Any, batch_size: int) -> Any:
    """An iterable of batches: ``x`` itself, or the batches of a dataset of Hugging Face that is streamed."""
    return _Streamed(x, batch_size) if _is_streamed(x) else x


def _is_streamed(x: Any) -> bool:
    """Whether ``x`` is a streamed dataset of Hugging Face, or has the same protocol."""
    return hasattr(x, "iter") and hasattr(x, "with_format")


class _Streamed:
    """Batches of a streamed dataset, which can be iterated more than once."""

    def __init__(self, dataset: Any, batch_size: int) -> None:
        # datasets 5.2: a streamed dataset has no public format.
        kind = getattr(getattr(dataset, "_formatting", None), "format_type", None)
        self.dataset, self.batch_size = _with_arrays(dataset, kind), check_integer("batch_size", batch_size, 1)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.dataset.iter(batch_size=self.batch_size))


def _split_target(x: Any, target: Any) -> tuple[Any, Any]:
    """The columns of a data frame or a dataset without those of targets, and the latter."""
    if is_frame(x):
        return _split_frame(x, target)
    return _split_columns({name: Column(x, name) for name in _column_names(x)}, target)


def _split_columns(columns: Any, target: Any) -> tuple[Any, Any]:
    """The columns without those of targets, and the latter; the column itself if there is only one."""
    if not isinstance(columns, Mapping):
        raise TypeError(
            f"Trainer: batches must be dictionaries for y={target!r}, the name of the targets, got {written(columns)}"
        )
    names = _names(target)
    rest = {name: column for name, column in columns.items() if name not in names}
    for name in names:
        if name not in columns or not rest:
            raise ValueError(
                f"Trainer: y must be the name of one of several columns, which are {', '.join(map(str, columns))}, got "
                f"{name!r}"
            )
    return _only_or_all(rest), _only_or_all({name: columns[name] for name in names})


def _split_frame(frame: Any, target: Any) -> tuple[Any, Any]:
    """The columns of a data frame without those of targets, and the latter."""
    labels = list(frame.columns)
    # A label of pandas may be a tuple.
    is_one = target in labels or not isinstance(target, (list, tuple))
    names = [target] if is_one else list(target)
    for name in names:
        if name not in labels:
            raise ValueError(
                f"Trainer: y must be the name of a column, one of {', '.join(map(str, labels))}, got {name!r}"
            )
        if labels.count(name) > 1:
            raise ValueError(
                f"Trainer: y must be the name of one column, got {name!r}, the name of {labels.count(name)} columns"
            )
    # Selecting the other columns by name would repeat those whose names occur more than once in pandas.
    rest = frame.drop(columns=names) if hasattr(frame, "iloc") else frame.drop(names)
    return rest, frame[target] if is_one else frame[names]


def _names(target: Any) -> list[Any]:
    """Names of the columns of targets, of which there may be one alone."""
    return list(target) if isinstance(target, (list, tuple)) else [target]


# Number of batches that are read ahead.
AHEAD = 2


def prefetch(f: Callable[[Any], Any], items: Iterable[Any], ahead: int = AHEAD) -> Generator[Any, None, None]:
    """``map(f, items)``, computed in a thread that is up to ``ahead`` results ahead of the caller.

    Results are in order, and an error of ``f`` is raised in its place. The thread ends with the iterator, which a
    caller that stops early closes.

    >>> list(prefetch(lambda x: x * x, [1, 2, 3]))
    [1, 4, 9]
    """
    # The thread sees the chosen backend, which is a value of the context.
    context, rest = copy_context(), iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="ember_ml-prefetch") as executor:
        waiting = deque(executor.submit(context.run, f, item) for item in islice(rest, ahead))
        try:
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(executor.submit(context.run, f, item) for item in islice(rest, 1))
                yield result
        finally:
            executor.shutdown(cancel_futures=True)


def check_integer(name: str, value: Any, least: int) -> int:
    """``value`` as an ``int``; an error if it is not an integer or below ``least``."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"Trainer: {name} must be an integer, got {value!r}") from None
    if number < least:
        raise ValueError(f"Trainer: {name} must be >= {least}, got {number}")
    return number


def size_of(batch: Any) -> int:
    """Number of examples in a batch."""
    first = tree.leaves(batch)[0]
    return int(first.shape[0]) if first.ndim else 1


def converted_like(like: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Tensors of ``found``, each on the device and in the dtype of the tensor of ``like`` with the same path."""
    return {
        path: ops.cast(ops.to_device(x, ops.get_device(like[path])), ops.dtype(like[path])) if path in like else x
        for path, x in found.items()
    }


# Names of the parts of a batch.
_PARTS = ("x", "y", "sample_weight")


def _as_tensors(data: Any, device: str | None, name: str, keeps_files: bool = False) -> Any:
    """Native tensors of the active engine from an array, or from a dictionary or tuple of arrays.

    Args:
        name: name of the data in messages.
        keeps_files: leave memory-mapped files as they are.
    """
    if isinstance(data, dict):
        return {key: _as_tensors(value, device, f"{name}[{key!r}]", keeps_files) for key, value in data.items()}
    if isinstance(data, tuple):
        return tuple(_as_tensors(value, device, name, keeps_files) for value in data)
    if isinstance(data, Mapping):  # such as the batches of a tokenizer
        return _as_tensors(dict(data), device, name, keeps_files)
    if keeps_files and _is_file(data):
        return data
    return _as_tensor(unwrap(as_array(data, f"Trainer: {name}")), device, name)


def _read(file: Any, rows: Any, device: str | None) -> Any:
    """Tensor of the rows of a memory-mapped file or of a column of a dataset."""
    return _as_tensor(file[rows], device, f"column {file.name!r}" if isinstance(file, Column) else "the data")


def _as_tensor(values: Any, device: str | None, name: str) -> Any:
    try:
        return ops.asarray(values, device=device)
    except (TypeError, ValueError) as error:
        first = _first_value(values)
        if isinstance(first, Mapping):
            raise TypeError(
                f"Trainer: {name} must be numbers, got dictionaries with {', '.join(map(str, first))}; for nested "
                "features of a dataset, write x.flatten(), or wrap x in torch.utils.data.DataLoader(x, batch_size)"
            ) from None
        if first is not None:
            hint = "encode the labels as integers" if name.partition("[")[0] == "y" else "encode it as numbers"
            raise TypeError(f"Trainer: {name} must be numbers, got text such as {str(first)!r}; {hint}") from None
        shapes = _row_shapes(values)
        if len(shapes) > 1:
            found = " and ".join(str(list(shape)) for shape in shapes[:2])
            raise ValueError(
                f"Trainer: {name} must have rows of one shape, got rows of shapes {found}; pad them"
            ) from None
        error.add_note(f"in {name} of Trainer")
        raise


def _row_shapes(values: Any) -> list[Any]:
    """Different shapes of the rows of an array of objects or of a nested list."""
    try:
        return list(dict.fromkeys(tuple(row.shape) if hasattr(row, "shape") else (len(row),) for row in values))
    except TypeError:
        return []


def _first_value(values: Any) -> Any:
    """First element of an array or nested list if it is text or a dictionary, else ``None``."""
    while not isinstance(values, (str, Mapping)):
        try:
            values = next(iter(values))
        except (TypeError, StopIteration):
            return None
    return values


def _is_file(data: Any) -> bool:
    """Whether an array is a memory-mapped file, a ``numpy.memmap``, or the column of a dataset, which reads one."""
    return isinstance(data, Column) or (hasattr(data, "__array__") and getattr(data, "filename", None) is not None)


def _sliced(data: Any, part: slice) -> Any:
    return data.part(part) if isinstance(data, Column) else data[part]


def _count_examples(*parts: Any) -> int:
    leaves = _leaves(parts)
    counts = _counts(leaves)
    if len(counts) != 1 or -1 in counts:
        raise _error_of_counts(leaves)
    return counts.pop()


def _check_counts(batch: Batch) -> None:
    """Raise an error if the targets or the weights of a batch are of other examples than the inputs.

    One tensor of each part must count the examples. Others may be something else, such as a mask of all examples.
    """
    counts = _counts(_leaves(batch[:1]))
    for part in batch[1:]:
        found = _counts(_leaves([part]))
        if found and counts.isdisjoint(found):
            raise _error_of_counts(_leaves(batch))


def _leaves(parts: Iterable[Any]) -> list[Any]:
    return [leaf for part in parts if part is not None for leaf in tree.leaves(part) if leaf is not None]


def _counts(leaves: Iterable[Any]) -> set[int]:
    """Lengths of the first axes; -1 for tensors without axes."""
    return {int(leaf.shape[0]) if leaf.ndim else -1 for leaf in leaves}


def _error_of_counts(leaves: list[Any]) -> ValueError:
    shapes = ", ".join(str(tuple(leaf.shape)) for leaf in leaves)
    # A list of inputs is one array, whose second axis counts the examples.
    is_stacked = tuple(leaves[0].shape[1:2]) == tuple(leaves[-1].shape[:1]) != ()
    hint = "; if x is a list of several inputs, write a tuple" if is_stacked else ""
    return ValueError(
        f"Trainer: the first axes must have one length, the number of examples, got shapes {shapes}{hint}"
    )
