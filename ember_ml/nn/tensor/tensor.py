"""``EmberTensor``: one tensor type, with the same operators and methods on every engine."""

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
from ember_ml.nn.tensor.flat import Flat
from ember_ml.nn.tensor.keys import is_plain
from ember_ml.nn.tensor.methods import methods
from ember_ml.nn.tensor.operators import binary, in_place, reflected, unary
from ember_ml.nn.tensor.updates import At


class EmberTensor:
    """Tensor of any engine, with the same operators, methods and indexing on each.

    Operations on an ``EmberTensor`` return an ``EmberTensor``. They run on its engine, whichever backend is active.
    Item assignment and in-place operators change only this tensor, never another one that shares its memory.

    Args:
        data: a native tensor of any engine, which is not copied, or anything that the active backend converts to one:
            a number, a sequence, a NumPy array.
        dtype: dtype to cast to.
        device: device to move to.
        requires_grad: record operations on the tensor for ``backward``, as in ``ops.convert_to_tensor``.

    >>> x = EmberTensor([[1.0, 2.0], [3.0, 4.0]])
    >>> (x @ x.T + 1).tolist()
    [[6.0, 12.0], [12.0, 26.0]]
    >>> x[0, 1:] = 7
    >>> x.mean(axis=0).tolist()
    [2.0, 5.5]
    """

    __slots__ = ("__weakref__", "home", "native")

    # The engine's own tensor, and its backend.
    native: Any
    home: Backend

    # NumPy arrays as the first operand defer to the operators of this class.
    __array_priority__ = 1000

    def __init__(self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> None:
        native = data.native if isinstance(data, EmberTensor) else data
        home = data.home if isinstance(data, EmberTensor) else _home_of(data)
        if (
            home is None
            or dtype is not None
            or device is not None
            or requires_grad is not False
            or native.dtype not in home.names
        ):
            home = home or current_backend()
            try:
                with use_backend(home.chosen_as):
                    native = ops.convert_to_tensor(native, dtype, device, requires_grad)
            except Exception as error:
                raise rename_error(error, "EmberTensor") from error.__cause__
            if isinstance(native, EmberTensor):
                # A sequence with an EmberTensor in it is converted to one.
                home, native = native.home, native.native
        self.home, self.native = home, _as_array(home, native)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Declare the methods that are created from operations to type checkers."""

        # Without these, some type checkers assume the bool of `object`.
        def __eq__(self, other: Any) -> EmberTensor: ...  # type: ignore[override]
        def __ne__(self, other: Any) -> EmberTensor: ...  # type: ignore[override]
    else:
        __eq__, __ne__ = binary("equal"), binary("not_equal")

    __add__, __radd__, __iadd__ = binary("add"), reflected("add"), in_place("add")
    __sub__, __rsub__, __isub__ = binary("subtract"), reflected("subtract"), in_place("subtract")
    __mul__, __rmul__, __imul__ = binary("multiply"), reflected("multiply"), in_place("multiply")
    __truediv__, __rtruediv__, __itruediv__ = binary("divide"), reflected("divide"), in_place("divide")
    __floordiv__, __rfloordiv__ = binary("floor_divide"), reflected("floor_divide")
    __ifloordiv__ = in_place("floor_divide")
    __mod__, __rmod__, __imod__ = binary("remainder"), reflected("remainder"), in_place("remainder")
    __pow__, __rpow__, __ipow__ = binary("power"), reflected("power"), in_place("power")
    __matmul__, __rmatmul__, __imatmul__ = binary("matmul"), reflected("matmul"), in_place("matmul")
    __and__, __rand__, __iand__ = binary("bitwise_and"), reflected("bitwise_and"), in_place("bitwise_and")
    __or__, __ror__, __ior__ = binary("bitwise_or"), reflected("bitwise_or"), in_place("bitwise_or")
    __xor__, __rxor__, __ixor__ = binary("bitwise_xor"), reflected("bitwise_xor"), in_place("bitwise_xor")
    __lshift__, __rlshift__ = binary("bitwise_left_shift"), reflected("bitwise_left_shift")
    __ilshift__ = in_place("bitwise_left_shift")
    __rshift__, __rrshift__ = binary("bitwise_right_shift"), reflected("bitwise_right_shift")
    __irshift__ = in_place("bitwise_right_shift")
    __lt__, __le__, __gt__, __ge__ = binary("less"), binary("less_equal"), binary("greater"), binary("greater_equal")
    __neg__, __pos__, __abs__, __invert__ = unary("negative"), unary("positive"), unary("abs"), unary("bitwise_invert")

    def __hash__(self) -> int:
        # A 0-d tensor equals its number, so it must have the same hash to be found in a dict or a set.
        return object.__hash__(self) if self.native.shape else hash(self._element())

    def __divmod__(self, other: Any) -> tuple[EmberTensor, EmberTensor]:
        quotient, rest = ops.divmod(self, other)
        return _as_ember_tensor(quotient), _as_ember_tensor(rest)

    def __rdivmod__(self, other: Any) -> tuple[EmberTensor, EmberTensor]:
        quotient, rest = ops.divmod(other, self)
        return _as_ember_tensor(quotient), _as_ember_tensor(rest)

    def __round__(self, digits: int | None = None) -> EmberTensor:
        return _as_ember_tensor(ops.round(self, digits or 0))

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(self.native.shape)

    @property
    def dtype(self) -> EmberDType:
        """Dtype, the same object on every engine."""
        return self.home.dtype_of(self.native)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.native.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return ops.size(self.native)

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> str:
        """Name of the device of the tensor."""
        return self.home.device_of(self.native)

    @property
    def backend(self) -> str:
        """Name of the engine of the tensor."""
        return self.home.chosen_as

    @property
    def flat(self) -> Flat:
        """Elements in row-major order, which are read and assigned by one index: ``x.flat[3]``."""
        return Flat(self)

    @property
    def T(self) -> EmberTensor:  # noqa: N802 - as in NumPy and the standard
        """Tensor with its axes in reverse order."""
        return _as_ember_tensor(ops.transpose(self))

    @property
    def mT(self) -> EmberTensor:  # noqa: N802
        """Tensor with its last two axes exchanged."""
        return _as_ember_tensor(ops.matrix_transpose(self))

    @property
    def mH(self) -> EmberTensor:  # noqa: N802
        """Complex conjugate of the tensor with its last two axes exchanged."""
        return _as_ember_tensor(ops.conj(ops.matrix_transpose(self)))

    @property
    def real(self) -> EmberTensor:
        """Real part."""
        return _as_ember_tensor(ops.real(self))

    @property
    def imag(self) -> EmberTensor:
        """Imaginary part."""
        return _as_ember_tensor(ops.imag(self))

    @property
    def at(self) -> At:
        """Functional updates, which return a new tensor: ``x.at[key].add(values)``."""
        return At(self)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len: the tensor must have at least 1 axis, got a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[EmberTensor]:
        if not self.ndim:
            raise TypeError("iter: the tensor must have at least 1 axis, got a 0-d tensor")
        return map(_as_ember_tensor, ops.unstack(self))

    def __contains__(self, value: Any) -> bool:
        found = self == value
        if not isinstance(found, EmberTensor):
            # A value that is not an operand is not equal to any element.
            return False
        return bool(ops.any(found))  # emberlint: ignore[EMB201] `in` requires a bool

    def __getitem__(self, key: Any) -> EmberTensor:
        native = self.native
        if not is_plain(key, native.shape):
            try:
                return _as_ember_tensor(ops.index_get(self, key))
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
        """The only element as a Python number, or the element at an index: a flat one, or one integer per axis."""
        if place:
            key = place[0] if isinstance(place[0], tuple) else place
            return (self.reshape(-1) if len(key) == 1 else self)[key].item()
        if self.size != 1:
            raise ValueError(f"item: the tensor must have 1 element, got shape {list(self.shape)}")
        return self._element()

    def tolist(self) -> Any:
        """Elements as Python numbers, in nested lists."""
        # Lazy engines compute here; ops.eval translates their errors.
        native: Any = ops.eval(self.native)
        return native.tolist()

    def numpy(self) -> Any:
        """Copy of the elements as a NumPy array."""
        return ops.to_numpy(self)

    def _number(self, name: str) -> Any:
        if self.ndim:
            raise TypeError(f"{name}: the tensor must be 0-d, got shape {list(self.shape)}")
        return self._element()

    def _element(self) -> Any:
        """The only element as a Python number."""
        try:
            return self.native.item()
        except RuntimeError as error:
            # Lazy engines compute here, and may run out of memory.
            if self.home.error_class(error) is MemoryError:
                raise MemoryError(str(error)) from error
            raise

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"bool: the tensor must have one element, got shape {list(self.shape)}; ops.all(x) and ops.any(x) "
                "return one value"
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

    def _repr_html_(self) -> str:
        """Values, shape, dtype, device and engine for notebooks."""
        from html import escape  # needed in notebooks alone

        about = f"EmberTensor {self.dtype.name}{list(self.shape)}, device={self.device!r}, backend={self.backend!r}"
        return f"<pre>{escape(_text(self))}</pre><small>{escape(about)}</small>"

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
        """Tensor with another shape, given as integers or as one sequence of them."""
        return _as_ember_tensor(ops.reshape(self, _one_or_several(shape), copy=copy))

    def transpose(self, *axes: Any) -> EmberTensor:
        """Tensor with its axes in another order, given as integers or as one sequence; by default reversed."""
        return _as_ember_tensor(ops.transpose(self, _one_or_several(axes) if axes else None))

    def permute_dims(self, *axes: Any) -> EmberTensor:
        """Tensor with its axes in another order, given as integers or as one sequence."""
        return _as_ember_tensor(ops.permute_dims(self, _one_or_several(axes)))

    def to(self, device: Any) -> EmberTensor:
        """Tensor on another device of its engine."""
        return _as_ember_tensor(ops.to_device(self, device))

    def to_device(self, device: Any, /, *, stream: Any = None) -> EmberTensor:
        """Tensor on another device of its engine.

        Args:
            stream: part of the array API standard; not supported, so it must be ``None``.
        """
        if stream is not None:
            raise ValueError(f"to_device: stream must be None on the {self.backend} backend, got {stream!r}")
        return _as_ember_tensor(ops.to_device(self, device))

    def to_backend(self, name: str) -> EmberTensor:
        """Tensor on another engine, which shares memory if the engines can; itself if it is on that engine."""
        if name == self.backend:
            return self
        home = load_backend(name, "to_backend")
        with use_backend(name):
            return make(home, ops.asarray(self.native))

    @property
    def requires_grad(self) -> bool:
        """Whether the engine records operations on the tensor for ``backward``, as torch can."""
        return bool(getattr(self.native, "requires_grad", False))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._recorded().requires_grad = value

    def requires_grad_(self, value: bool = True) -> EmberTensor:
        """Set ``requires_grad``, and return the tensor."""
        self.requires_grad = value
        return self

    @property
    def grad(self) -> EmberTensor | None:
        """Gradient that ``backward`` computed, or ``None``."""
        found = self._recorded().grad
        return None if found is None else make(self.home, found)

    def backward(self, gradient: Any = None, **options: Any) -> None:
        """Compute the gradients of the tensors that this one was computed from, and store them in ``grad``."""
        native = self._recorded()
        if not native.requires_grad:
            raise RuntimeError(
                "backward: the tensor must be computed from tensors with requires_grad=True, got one that is not; "
                "ember_ml.transform.value_and_grad and training.Trainer work on every engine, and the parameters of a "
                "module require grad after model.requires_grad_()"
            )
        native.backward(unwrap(gradient), **options)

    def detach(self) -> EmberTensor:
        """Tensor with the same values, through which no gradient flows."""
        return _as_ember_tensor(ops.stop_gradient(self))

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
        outs = options.get("out", ())
        if (
            method == "__call__"
            and outs
            and len(options) == 1
            and not any(isinstance(out, EmberTensor) for out in outs)
        ):
            # ``array += x`` changes an array of NumPy, as ``array[...] = x`` does.
            return ufunc(*(part.__array__() if isinstance(part, EmberTensor) else part for part in inputs), out=outs)
        operation = getattr(ops, _UFUNCS.get(ufunc.__name__, ufunc.__name__), None)
        if method == "outer" and not options and operation is not None:
            x, y = inputs
            return operation(ops.reshape(x, (*ops.shape(x), *(1,) * ops.ndim(y))), y)
        if method != "__call__" or options or operation is None:
            called = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            given = f" with {', '.join(options)}" if options else ""
            if method == "at" and isinstance(inputs[0], EmberTensor):
                raise TypeError(
                    f"numpy.{called}: the array to change must be NumPy's, got an EmberTensor; "
                    f"write {_updated_at(ufunc.__name__, inputs)}"
                )
            raise TypeError(
                f"numpy.{called}{given}: arguments must not be EmberTensors, got one; x.numpy() is an array for it"
            )
        return operation(*inputs)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Namespace of the array API standard for this tensor."""
        from ember_ml.nn.tensor.namespace import namespace_of  # here, since it imports this module

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
        if max_version is not None and max_version < (1, 0):
            # Before 1.0 capsules had no version; JAX 0.10 exports one only if none is asked for.
            max_version = None
        try:
            return native.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        except (AssertionError, NotImplementedError, RuntimeError) as error:
            # The standard requires BufferError for tensors that cannot be exported; engines raise different errors.
            raise BufferError(
                f"__dlpack__: the {self.backend} engine must be able to export the tensor, got {error}"
            ) from error

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.native.__dlpack_device__()  # type: ignore[no-any-return]

    def __copy__(self) -> EmberTensor:
        return make(self.home, self.native)

    def __deepcopy__(self, memo: dict[int, Any]) -> EmberTensor:
        if not getattr(self.native, "is_leaf", True):
            # torch 2.13: deepcopy supports only leaves of a graph; the copy is a new leaf, as after unpickling.
            return _as_ember_tensor(ops.copy(self.detach())).requires_grad_()
        return make(self.home, _copy.deepcopy(self.native, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.backend, self.home.to_host(self.native), self.device, self.requires_grad)


for _name, _function in methods().items():
    if _name not in vars(EmberTensor):
        setattr(EmberTensor, _name, _function)

# Functions create the operators, so set the names that errors and help show.
for _name, _function in vars(EmberTensor).items():
    if "<locals>" in getattr(_function, "__qualname__", ""):
        _function.__name__, _function.__qualname__ = _name, f"EmberTensor.{_name}"


def make(home: Backend, native: Any) -> EmberTensor:
    """``EmberTensor`` of a native tensor, on ``home`` unless the tensor belongs to another engine."""
    x = object.__new__(EmberTensor)
    if not isinstance(native, home.tensors):
        home = backend_of(native) or home
    x.home, x.native = home, _as_array(home, native)
    return x


def _home_of(data: Any) -> Backend | None:
    """Backend of a native tensor; ``None`` for what the active backend converts, which NumPy arrays are to others."""
    home = backend_of(data)
    return None if home is not None and home.is_host and not current_backend().is_host else home


def _as_array(home: Backend, native: Any) -> Any:
    """``native``, with NumPy scalars and subclasses of its array type converted to arrays."""
    return native if not home.is_host or type(native) is home.tensors[0] else home.to_host(native)


register_wrapper(EmberTensor, make)
operators.register(EmberTensor)


def wrap(tree: Any) -> Any:
    """``tree`` with every native tensor in its nested containers wrapped in ``EmberTensor``.

    >>> from ember_ml.ops import ones
    >>> wrap({"weights": [ones(2)], "step": 3})["weights"][0].shape
    (2,)
    """

    def of(leaf: Any) -> Any:
        home = backend_of(leaf)
        return leaf if home is None else make(home, leaf)

    return containers.map(of, tree)


def unwrap(tree: Any) -> Any:
    """``tree`` with every ``EmberTensor`` in its nested containers replaced by its native tensor.

    >>> unwrap([EmberTensor([1.0, 2.0]), 3])[1]
    3
    """
    return unwrap_tree(tree)


def _restored(name: str, array: Any, device: str, requires_grad: bool) -> EmberTensor:
    """Tensor from a pickle, on its original engine and device if they are available, else on the active ones."""
    home = load_backend(name) if name in get_available_backends() else current_backend()
    there = home.find_device(device) if device in home.devices() else home.device
    x = make(home, home.convert(array, None, there))
    return x.requires_grad_() if requires_grad and home.name == name else x


# NumPy functions whose operations have other names.
_UFUNCS = {"degrees": "rad2deg", "invert": "bitwise_invert", "radians": "deg2rad"}


def _updated_at(name: str, inputs: tuple[Any, ...]) -> str:
    """Statement for a message that does what ``ufunc.at`` does to an array."""
    if name in ("add", "subtract"):
        return f"x = tensor.index_add(x, i, {'v' if name == 'add' else '-v'})"
    operands = "x[i]" if len(inputs) == 2 else "x[i], v"
    operation = _UFUNCS.get(name, name)
    called = f"tensor.{operation}" if hasattr(ops, operation) else f"np.{name}"
    return f"x = tensor.index_update(x, i, {called}({operands})) if no index repeats"


def _as_ember_tensor(result: Any) -> EmberTensor:
    """``result`` for type checkers: operations on an ``EmberTensor`` return one, but are annotated with ``Tensor``."""
    return result  # type: ignore[no-any-return]


def _one_or_several(values: tuple[Any, ...]) -> Any:
    if len(values) != 1 or isinstance(values[0], int):
        return values
    return values[0].tolist() if hasattr(values[0], "tolist") else values[0]


def _text(x: EmberTensor) -> str:
    """Values as NumPy prints them, on every engine; the type if there are none, as in traced code."""
    try:
        array = x.home.to_host(x.native)
    except Exception:
        return type(x.native).__name__
    text: str = load_backend("numpy").core.text(array, len("EmberTensor("))
    return text
