"""The portable tensor: one set of operators and methods on every engine."""

from __future__ import annotations

import copy as _copy
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml import tree as containers
from ember_ml.backend import get_available_backends, use_backend
from ember_ml.dtypes import EmberDType
from ember_ml.extend import Backend, backend_of, current_backend, load_backend, register_wrapper, rename_error
from ember_ml.extend import unwrap as unwrap_tree
from ember_ml.nn.tensor import operators
from ember_ml.nn.tensor.keys import is_plain
from ember_ml.nn.tensor.methods import methods
from ember_ml.nn.tensor.operators import assigning, binary, reflected, unary
from ember_ml.nn.tensor.updates import At


class EmberTensor:
    """A tensor of any engine, with the same operators, methods and indexing on each.

    Every operation that is given one answers with one, computed on the engine that it lives on, whatever is active.
    Assigning into it, and the operators that assign, give it a new value: no other tensor changes with it.

    Args:
        data: a native tensor of any engine, which is held without a copy; anything else becomes a tensor of the active
            backend.
        dtype: the dtype to cast to.
        device: the device to move to.

    >>> x = EmberTensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x @ x.T + 1).tolist()
    [[6.0, 12.0], [12.0, 26.0]]
    >>> x[0, 1:] = 7
    >>> x.mean(axis=0).tolist()
    [2.0, 5.5]
    """

    __slots__ = ("__weakref__", "home", "native")

    # The engine's own tensor, and the backend of that engine.
    native: Any
    home: Backend

    # Arrays of NumPy that meet one of these leave the operator to it.
    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: Any = None, device: Any = None) -> None:
        native = data.native if isinstance(data, EmberTensor) else data
        home = data.home if isinstance(data, EmberTensor) else backend_of(data)
        if home is None or dtype is not None or device is not None or native.dtype not in home.names:
            home = home or current_backend()
            try:
                with use_backend(home.chosen_as):
                    native = ops.asarray(native, dtype=dtype, device=device)
            except Exception as error:
                raise rename_error(error, "EmberTensor") from error.__cause__
            if isinstance(native, EmberTensor):
                # There were some in the sequence.
                home, native = native.home, native.native
        self.home, self.native = home, _whole(home, native)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The methods that operations are, which checkers cannot see."""

        # Not the bool of `object`, which some checkers take it for otherwise.
        def __eq__(self, other: Any) -> EmberTensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> EmberTensor: ...  # type: ignore[override]
    else:
        __eq__, __ne__ = binary("equal"), binary("not_equal")

    __add__, __radd__, __iadd__ = binary("add"), reflected("add"), assigning("add")
    __sub__, __rsub__, __isub__ = binary("subtract"), reflected("subtract"), assigning("subtract")
    __mul__, __rmul__, __imul__ = binary("multiply"), reflected("multiply"), assigning("multiply")
    __truediv__, __rtruediv__, __itruediv__ = binary("divide"), reflected("divide"), assigning("divide")
    __floordiv__, __rfloordiv__ = binary("floor_divide"), reflected("floor_divide")
    __ifloordiv__ = assigning("floor_divide")
    __mod__, __rmod__, __imod__ = binary("remainder"), reflected("remainder"), assigning("remainder")
    __pow__, __rpow__, __ipow__ = binary("power"), reflected("power"), assigning("power")
    __matmul__, __rmatmul__, __imatmul__ = binary("matmul"), reflected("matmul"), assigning("matmul")
    __and__, __rand__, __iand__ = binary("bitwise_and"), reflected("bitwise_and"), assigning("bitwise_and")
    __or__, __ror__, __ior__ = binary("bitwise_or"), reflected("bitwise_or"), assigning("bitwise_or")
    __xor__, __rxor__, __ixor__ = binary("bitwise_xor"), reflected("bitwise_xor"), assigning("bitwise_xor")
    __lshift__, __rlshift__ = binary("bitwise_left_shift"), reflected("bitwise_left_shift")
    __ilshift__ = assigning("bitwise_left_shift")
    __rshift__, __rrshift__ = binary("bitwise_right_shift"), reflected("bitwise_right_shift")
    __irshift__ = assigning("bitwise_right_shift")
    __lt__, __le__, __gt__, __ge__ = binary("less"), binary("less_equal"), binary("greater"), binary("greater_equal")
    __neg__, __pos__, __abs__, __invert__ = unary("negative"), unary("positive"), unary("abs"), unary("bitwise_invert")

    __hash__ = object.__hash__

    def __divmod__(self, other: Any) -> tuple[EmberTensor, EmberTensor]:
        quotient, rest = ops.divmod(self, other)
        return _portable(quotient), _portable(rest)

    def __rdivmod__(self, other: Any) -> tuple[EmberTensor, EmberTensor]:
        quotient, rest = ops.divmod(other, self)
        return _portable(quotient), _portable(rest)

    def __round__(self, digits: int | None = None) -> EmberTensor:
        return _portable(ops.round(self, digits or 0))

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return tuple(self.native.shape)

    @property
    def dtype(self) -> EmberDType:
        """The portable dtype."""
        return self.home.dtype_of(self.native)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.native.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return ops.size(self.native)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> str:
        """The name of the device that the tensor is on."""
        return self.home.device_of(self.native)

    @property
    def backend(self) -> str:
        """The name of the engine that the tensor lives on."""
        return self.home.chosen_as

    @property
    def T(self) -> EmberTensor:  # noqa: N802 - NumPy's and the standard's name
        """The tensor with its axes in reverse."""
        return _portable(ops.transpose(self))

    @property
    def mT(self) -> EmberTensor:  # noqa: N802
        """The tensor with its last two axes exchanged."""
        return _portable(ops.matrix_transpose(self))

    @property
    def mH(self) -> EmberTensor:  # noqa: N802
        """The conjugate of the tensor with its last two axes exchanged."""
        return _portable(ops.conj(ops.matrix_transpose(self)))

    @property
    def real(self) -> EmberTensor:
        """The real part."""
        return _portable(ops.real(self))

    @property
    def imag(self) -> EmberTensor:
        """The imaginary part."""
        return _portable(ops.imag(self))

    @property
    def at(self) -> At:
        """Places in the tensor, for updates that answer with a new one: ``x.at[key].add(values)``."""
        return At(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len: the tensor must have at least 1 axis, got a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[EmberTensor]:
        if not self.ndim:
            raise TypeError("iter: the tensor must have at least 1 axis, got a 0-d tensor")
        return map(_portable, ops.unstack(self))

    def __contains__(self, value: Any) -> bool:
        found = self == value
        if not isinstance(found, EmberTensor):
            # No operand, which is equal to no element.
            return False
        return bool(ops.any(found))  # emberlint: ignore[EMB201] Python wants a bool of `in`

    def __getitem__(self, key: Any) -> EmberTensor:
        native = self.native
        if not is_plain(key, native.shape):
            try:
                return _portable(ops.index_get(self, key))
            except Exception as error:
                raise rename_error(error, "indexing") from error.__cause__
        part = native[key]
        if type(part) is not type(native):
            return make(self.home, part)
        x = object.__new__(EmberTensor)
        x.home, x.native = self.home, part
        return x

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            self.native = unwrap(ops.index_update(self, key, value))
        except Exception as error:
            raise rename_error(error, "item assignment") from error.__cause__

    def item(self, *place: Any) -> Any:
        """The only element, as a Python number; or that at a place, given as integers or counted row by row."""
        if place:
            key = place[0] if isinstance(place[0], tuple) else place
            return (self.reshape(-1) if len(key) == 1 else self)[key].item()
        if self.size != 1:
            raise ValueError(f"item: the tensor must have 1 element, got shape {list(self.shape)}")
        return self._element()

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        # A lazy engine may run out of memory here.
        native: Any = ops.eval(self.native)
        return native.tolist()

    def numpy(self) -> Any:
        """A copy of the elements as a host array."""
        return ops.to_numpy(self)

    def _number(self, name: str) -> Any:
        if self.ndim:
            raise TypeError(f"{name}: the tensor must be 0-d, got shape {list(self.shape)}")
        return self._element()

    def _element(self) -> Any:
        """The only element, as a Python number."""
        try:
            return self.native.item()
        except RuntimeError as error:
            # A lazy engine may run out of memory here.
            if self.home.error_class(error) is MemoryError:
                raise MemoryError(str(error)) from error
            raise

    def __bool__(self) -> bool:
        if self.ndim:
            raise ValueError(
                f"bool: the tensor must be 0-d, got shape {list(self.shape)}; ops.all(x) and ops.any(x) return one "
                "value"
            )
        return bool(self._element())

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        number = self._number("index")
        if type(number) is not int:
            raise TypeError(f"index: the tensor must be of integers, got {self.dtype.name}")
        return number

    def __repr__(self) -> str:
        text = _text(self)
        end = f"shape={self.shape}, dtype={self.dtype.name}, device={self.device!r}, backend={self.backend!r})"
        width = len("EmberTensor(") if "\n" not in text else 0
        apart = len(text) - text.rfind("\n") + width + len(end) > 120
        return f"EmberTensor({text},\n             {end}" if apart else f"EmberTensor({text}, {end}"

    def __format__(self, form: str) -> str:
        if form and not self.ndim:
            return format(self._element(), form)
        try:
            return format(str(self), form)
        except ValueError:
            raise TypeError(f"format: the tensor must be 0-d for {form!r}, got shape {list(self.shape)}") from None

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)))

    def reshape(self, *shape: Any, copy: bool | None = None) -> EmberTensor:
        """The elements in another shape, given as integers or as one sequence of them."""
        return _portable(ops.reshape(self, _one_or_several(shape), copy=copy))

    def transpose(self, *axes: Any) -> EmberTensor:
        """The tensor with its axes in another order, given as integers or as one sequence; by default in reverse."""
        return _portable(ops.transpose(self, _one_or_several(axes) if axes else None))

    def permute_dims(self, *axes: Any) -> EmberTensor:
        """The tensor with its axes in another order."""
        return _portable(ops.permute_dims(self, _one_or_several(axes)))

    def to(self, device: Any) -> EmberTensor:
        """The tensor on another device of its engine."""
        return _portable(ops.to_device(self, device))

    def to_device(self, device: Any, /, *, stream: Any = None) -> EmberTensor:
        """The tensor on another device of its engine.

        Args:
            stream: as the standard has it; no engine here takes one, so it must be ``None``.
        """
        if stream is not None:
            raise ValueError(f"to_device: stream must be None on the {self.backend} backend, got {stream!r}")
        return _portable(ops.to_device(self, device))

    def to_backend(self, name: str) -> EmberTensor:
        """The tensor on another engine; itself if it is there already. Memory is shared where the engines allow it."""
        if name == self.backend:
            return self
        home = load_backend(name, "to_backend")
        with use_backend(name):
            return make(home, ops.asarray(self.native))

    @property
    def requires_grad(self) -> bool:
        """Whether the engine records what is computed with the tensor, as torch does where asked."""
        return bool(getattr(self.native, "requires_grad", False))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._recorded().requires_grad = value

    def requires_grad_(self, value: bool = True) -> EmberTensor:
        """The tensor, with torch told to record what is computed with it, or not to."""
        self.requires_grad = value
        return self

    @property
    def grad(self) -> EmberTensor | None:
        """The gradient that ``backward`` left, or ``None``."""
        found = self._recorded().grad
        return None if found is None else make(self.home, found)

    def backward(self, gradient: Any = None, **options: Any) -> None:
        """Nothing; the tensors that this one was computed from have their gradients afterwards."""
        self._recorded().backward(unwrap(gradient), **options)

    def detach(self) -> EmberTensor:
        """The tensor, through which no gradient flows."""
        return _portable(ops.stop_gradient(self))

    def _recorded(self) -> Any:
        if not hasattr(self.native, "requires_grad"):
            raise AttributeError(
                f"requires_grad: the tensor must be on the torch backend, got {self.backend}; ember_ml.transform.grad "
                "works on every engine"
            )
        return self.native

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.home.to_host(self.native).__array__(dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        operation = getattr(ops, _UFUNCS.get(ufunc.__name__, ufunc.__name__), None)
        if method != "__call__" or options or operation is None:
            called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            given = f" with {', '.join(options)}" if options else ""
            raise TypeError(
                f"numpy.{called}{given}: arguments must not be EmberTensors, got one; x.numpy() is an array for it"
            )
        return operation(*inputs)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The namespace of the array API standard whose functions take this tensor."""
        from ember_ml.nn.tensor.namespace import namespace_of  # it holds this type

        return namespace_of(load_backend(self.backend), api_version)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        native = self.home.forwards(self.native)
        if copy is not None and not copy and native is not self.native:
            raise BufferError("__dlpack__: copy must not be False for a tensor with negative strides, got copy=False")
        try:
            return native.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        except (AssertionError, NotImplementedError, RuntimeError) as error:
            # The standard's word for what cannot be handed over; each engine has one of its own.
            raise BufferError(
                f"__dlpack__: the {self.backend} engine must be able to export the tensor, got {error}"
            ) from error

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.native.__dlpack_device__()  # type: ignore[no-any-return]

    def __copy__(self) -> EmberTensor:
        return make(self.home, self.native)

    def __deepcopy__(self, memo: dict[int, Any]) -> EmberTensor:
        if not getattr(self.native, "is_leaf", True):
            # torch copies none in the middle of a computation; the copy begins another, as a pickled one does.
            return _portable(ops.copy(self.detach())).requires_grad_()
        return make(self.home, _copy.deepcopy(self.native, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.backend, self.home.to_host(self.native), self.device, self.requires_grad)


for _name, _function in methods().items():
    if _name not in vars(EmberTensor):
        setattr(EmberTensor, _name, _function)

# The operators are made by functions; errors and help call them by the names that they have here.
for _name, _function in vars(EmberTensor).items():
    if "<locals>" in getattr(_function, "__qualname__", ""):
        _function.__name__, _function.__qualname__ = _name, f"EmberTensor.{_name}"


def make(home: Backend, native: Any) -> EmberTensor:
    """The portable tensor that holds a native one of ``home``, or of an engine whose tensors are guests there."""
    x = object.__new__(EmberTensor)
    if not isinstance(native, home.tensors):
        home = backend_of(native) or home
    x.home, x.native = home, _whole(home, native)
    return x


def _whole(home: Backend, native: Any) -> Any:
    """``native``; of NumPy's scalars and subclasses, the array."""
    return native if not home.is_host or type(native) is home.tensors[0] else home.to_host(native)


register_wrapper(EmberTensor, make)
operators.know(EmberTensor)


def wrap(tree: Any) -> Any:
    """``tree`` with an ``EmberTensor`` for each native tensor in its nested containers.

    >>> from ember_ml.ops import ones
    >>> wrap({"weights": [ones(2)], "step": 3})["weights"][0].shape
    (2,)
    """

    def of(leaf: Any) -> Any:
        home = backend_of(leaf)
        return leaf if home is None else make(home, leaf)

    return containers.map(of, tree)


def unwrap(tree: Any) -> Any:
    """``tree`` with the native tensor for each ``EmberTensor`` in its nested containers.

    >>> unwrap([EmberTensor([1.0, 2.0]), 3])[1]
    3
    """
    return unwrap_tree(tree)


def _restored(name: str, array: Any, device: str, requires_grad: bool) -> EmberTensor:
    """A tensor from a pickle: on the engine and device that it was on, or else on the active ones."""
    home = load_backend(name) if name in get_available_backends() else current_backend()
    there = home.find_device(device) if device in home.devices() else home.device
    x = make(home, home.convert(array, None, there))
    return x.requires_grad_() if requires_grad and home.name == name else x


# The functions of NumPy that operations have other names for.
_UFUNCS = {"degrees": "rad2deg", "invert": "bitwise_invert", "radians": "deg2rad"}


def _portable(answer: Any) -> EmberTensor:
    """The answer of an operation to a portable tensor, which is one too: the operation's signature promises less."""
    return answer  # type: ignore[no-any-return]


def _one_or_several(values: tuple[Any, ...]) -> Any:
    if len(values) != 1 or isinstance(values[0], int):
        return values
    return values[0].tolist() if hasattr(values[0], "tolist") else values[0]


def _text(x: EmberTensor) -> str:
    """The values as NumPy prints them, whatever the engine; what a compiler traces has none."""
    try:
        array = x.home.to_host(x.native)
    except Exception:
        return type(x.native).__name__
    text: str = load_backend("numpy").core.text(array, len("EmberTensor("))
    return text
