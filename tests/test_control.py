"""Control flow: against plain Python, under compilers, and on trees."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import ember_ml
from ember_ml import ops, tree
from ember_ml.backend import Backend
from ember_ml.ops import control

State = namedtuple("State", "total count")


def compiled(backend: Backend, f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` as the engine's compiler has it; the whole of it, or an error."""
    if backend.name == "torch":
        import torch

        torch._dynamo.reset()
        return torch.compile(f, fullgraph=True, backend="eager")
    if backend.name == "mlx":
        import mlx.core as mx

        return mx.compile(f)
    return f


def test_cond_calls_one_function_only(backend: Backend) -> None:
    called: list[str] = []

    def noted(name: str) -> Callable[..., Any]:
        return lambda x: called.append(name) or x

    for pred in (True, ops.asarray(True), ops.asarray(2), 1.0):
        control.cond(pred, noted("yes"), noted("no"), ops.asarray(1.0))
    control.cond(ops.less(ops.asarray(3.0), 2.0), noted("yes"), noted("no"), ops.asarray(1.0))
    assert called == ["yes"] * 4 + ["no"]


def test_cond_branches_on_data_in_compiled_code(backend: Backend) -> None:
    def f(x: Any, y: Any) -> Any:
        return control.cond(
            ops.greater(ops.sum(x), 0.0),
            lambda a, b: {"sum": ops.add(a, b), "first": a},
            lambda a, b: {"first": ops.negative(b), "sum": a},
            x,
            y,
        )

    g = compiled(backend, f)
    for sign in (1.0, -1.0, 2.0):
        x, y = ops.asarray([sign, sign]), ops.asarray([10.0, 20.0])
        for key in ("sum", "first"):
            assert g(x, y)[key].tolist() == f(x, y)[key].tolist()


def test_cond_returns_tensors(backend: Backend) -> None:
    x = ops.asarray([1.0])
    result = control.cond(True, lambda: {"number": 2, "none": None, "x": x}, lambda: None)
    assert ops.get_dtype(result["number"]) == "int64"
    assert result["none"] is None
    ember_ml.set_backend("numpy")
    assert control.cond(True, lambda: x, lambda: None) is x


def test_cond_takes_a_scalar_predicate(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"cond: the predicate must be 0-d, got shape \[1\]"):
        control.cond(ops.asarray([True]), ops.negative, ops.square, 1.0)
    for wrong in ("yes", None, {}, object()):
        with pytest.raises(TypeError):
            control.cond(wrong, ops.negative, ops.square, 1.0)


def test_cond_selects_inside_a_vectorized_map(backend: Backend) -> None:
    rows = ops.asarray([[1.0, 2.0], [-3.0, -4.0]])
    result = ops.vectorized_map(lambda r: control.cond(ops.greater(ops.sum(r), 0), ops.negative, ops.square, r), rows)
    assert result.tolist() == [[-1.0, -2.0], [9.0, 16.0]]


def collatz(n: Any, count: Any) -> Any:
    half = ops.floor_divide(n, 2)
    return ops.where(ops.equal(ops.remainder(n, 2), 0), half, ops.add(ops.multiply(n, 3), 1)), ops.add(count, 1)


def is_above_one(n: Any, count: Any) -> Any:
    return ops.greater(n, 1)


@pytest.mark.parametrize(("start", "steps"), [(1, 0), (6, 8), (27, 111)])
def test_while_loop_counts_steps(backend: Backend, start: int, steps: int) -> None:
    n, count = ops.while_loop(is_above_one, collatz, (start, 0))
    assert (n.tolist(), count.tolist()) == (1, steps)


def test_while_loop_stops_on_data_in_compiled_code(backend: Backend) -> None:
    def f(n: Any) -> Any:
        return ops.while_loop(is_above_one, collatz, [n, 0], maximum_iterations=10)[1]

    g = compiled(backend, f)
    assert [g(ops.asarray(n)).tolist() for n in (6, 1, 3, 27)] == [8, 0, 7, 10]


def test_while_loop_needs_a_bound_where_data_cannot_stop_it(backend: Backend) -> None:
    g = compiled(backend, lambda n: ops.while_loop(is_above_one, collatz, [n, 0])[1])
    if backend.name == "mlx":
        with pytest.raises(ValueError, match="maximum_iterations"):
            g(ops.asarray(6))
    else:
        assert g(ops.asarray(6)).tolist() == 8


def test_while_loop_keeps_the_structure(backend: Backend) -> None:
    state = ops.while_loop(
        lambda s: ops.less(s["n"], 3), lambda s: {"n": ops.add(s["n"], 1), "none": None}, {"none": None, "n": 0}
    )
    assert state["none"] is None
    assert state["n"].tolist() == 3
    named = ops.while_loop(lambda total, count: ops.less(count, 2), lambda t, c: (t + c, c + 1), State(0, 0))
    assert isinstance(named, State)
    with pytest.raises(ValueError, match="structure"):
        ops.while_loop(lambda x, y: True, lambda x, y: x, (1, 2))
    with pytest.raises(ValueError, match="while_loop: maximum_iterations must be >= 0, got -1"):
        ops.while_loop(lambda x: True, ops.negative, 1, -1)


def test_fori_loop_takes_bounds_of_any_kind(backend: Backend) -> None:
    for low, high in ((1, 5), (ops.asarray(1), ops.asarray(5)), (np.int64(1), 5)):
        assert ops.fori_loop(low, high, lambda i, x: ops.multiply(x, i), 1).tolist() == 24
    for wrong in (1.5, "1", None, ops.asarray(1.0)):
        with pytest.raises(TypeError):
            ops.fori_loop(0, wrong, lambda i, x: x, 1)
    with pytest.raises(ValueError, match=r"fori_loop: lower and upper must be 0-d, got shape \[1\]"):
        ops.fori_loop(0, ops.asarray([3]), lambda i, x: x, 1)


def test_fori_loop_runs_to_a_traced_bound(backend: Backend) -> None:
    g = compiled(backend, lambda n, x: ops.fori_loop(0, n, lambda i, y: ops.add(y, i), x))
    if backend.name == "mlx":
        with pytest.raises(ValueError, match="maximum_iterations"):
            g(ops.asarray(4), ops.asarray(0))
    else:
        assert [g(ops.asarray(n), ops.asarray(0)).tolist() for n in (4, 0, 5)] == [6, 0, 10]


@hypothesis.settings(max_examples=20, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(values=st.lists(st.integers(-50, 50), max_size=7), reverse=st.booleans())
def test_scan_accumulates(backend: Backend, values: list[int], reverse: bool) -> None:
    xs = ops.asarray(values, dtype="int64")
    last, ys = ops.scan(lambda c, x: (ops.add(c, x),) * 2, 7, xs, reverse=reverse)
    expected = list(itertools.accumulate(values[::-1] if reverse else values, initial=7))
    assert last.tolist() == expected[-1]
    assert ys.tolist() == (expected[1:][::-1] if reverse else expected[1:])


def test_scan_goes_over_trees(backend: Backend) -> None:
    def step(carry: State, x: dict[str, Any]) -> Any:
        total = ops.add(carry.total, ops.sum(x["rows"]))
        return State(total, ops.add(carry.count, 1)), {"none": None, "pair": (x["flags"][0], total)}

    xs = {"rows": ops.asarray([[1.0, 2.0], [3.0, 4.0]]), "flags": [ops.asarray([True, False])], "nothing": None}
    carry, ys = ops.scan(step, State(0.0, 0), xs)
    assert isinstance(carry, State)
    assert (carry.total.tolist(), carry.count.tolist()) == (10.0, 2)
    assert ys["none"] is None
    assert [y.tolist() for y in ys["pair"]] == [[True, False], [3.0, 10.0]]


def test_scan_of_nothing_has_the_shapes_of_something(backend: Backend) -> None:
    def step(carry: Any, x: Any) -> Any:
        return carry, {"row": ops.cast(x, "float64"), "sum": ops.sum(x), "none": None}

    carry, ys = ops.scan(step, ops.asarray([1.0]), ops.zeros((0, 3), dtype="int8"))
    assert carry.tolist() == [1.0]
    assert (tuple(ys["row"].shape), ops.get_dtype(ys["row"])) == ((0, 3), "float64")
    assert (tuple(ys["sum"].shape), ops.get_dtype(ys["sum"])) == ((0,), "int64")
    assert ys["none"] is None


def test_scan_says_what_does_not_fit(backend: Backend) -> None:
    step = lambda c, x: (c, x)  # noqa: E731
    wrong: list[tuple[Any, ...]] = [
        (step, 0, None),
        (step, 0, ops.asarray(1.0)),
        (step, 0, (ops.zeros(2), ops.zeros(3))),
        (step, 0, ops.zeros(2), 3),
        (step, 0, None, -1),
        (step, 0, ops.zeros(2), None, False, 0),
        (lambda c, x: ((c, c), x), 0, ops.zeros(2)),
        (lambda c, x: ({"b": c["a"]}, x), {"a": 0}, ops.zeros(2)),
    ]
    for args in wrong:
        with pytest.raises(ValueError, match=r"scan|structure"):
            ops.scan(*args)


@pytest.mark.parametrize("result", [None, 1.0, (1.0,), [1.0, 2.0, 3.0], "ab"])
@pytest.mark.parametrize("count", [0, 2])
def test_scan_takes_functions_that_return_pairs(backend: Backend, count: int, result: Any) -> None:
    with pytest.raises(TypeError, match="f must return a pair, the next carry and a y, got "):
        ops.scan(lambda carry, x: result, 0.0, ops.ones(count))
    with pytest.raises(TypeError, match="a pair"):
        ops.scan(lambda carry, x: ops.ones(2), 0.0, ops.ones(count))


def test_scan_traces_on_every_engine(backend: Backend) -> None:
    def g(h: Any, rows: Any) -> Any:
        step = lambda c, r: ({"h": ops.add(ops.multiply(c["h"], 0.5), r)}, (c["h"], ops.sum(r)))  # noqa: E731
        carry, (hs, sums) = ops.scan(step, {"h": h}, rows, reverse=True)
        return carry["h"], hs, sums

    h, rows = ops.zeros(2), ops.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for mine, expected in zip(compiled(backend, g)(h, rows), g(h, rows), strict=True):
        assert mine.tolist() == expected.tolist()


@pytest.mark.parametrize("count", [*range(10), 16, 31, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_a_cumulative_sum(backend: Backend, count: int, reverse: bool) -> None:
    values = np.random.default_rng(count).integers(-9, 9, (3, count))
    calls: list[int] = []

    def add(a: Any, b: Any) -> Any:
        calls.append(1)
        return ops.add(a, b)

    result = ops.to_numpy(ops.associative_scan(add, ops.asarray(values), reverse=reverse, axis=-1))
    expected = np.cumsum(values[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(values, 1)
    np.testing.assert_array_equal(result, expected)
    assert len(calls) <= 2 * max(1, count).bit_length()


def test_associative_scan_keeps_the_order_of_what_does_not_commute(backend: Backend) -> None:
    maps = np.random.default_rng(0).integers(0, 5, (13, 5))
    composed = lambda f, g: {"map": ops.take_along_axis(g["map"], f["map"], axis=1)}  # noqa: E731
    result = ops.associative_scan(composed, {"map": ops.asarray(maps)})["map"].tolist()
    assert result == [m.tolist() for m in itertools.accumulate(maps, lambda f, g: g[f])]


def test_associative_scan_solves_a_linear_recurrence(backend: Backend) -> None:
    a, b = np.random.default_rng(1).uniform(-1, 1, (2, 9))

    def join(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    _, result = ops.associative_scan(join, (ops.asarray(a), ops.asarray(b)))
    expected = list(itertools.accumulate(zip(a, b, strict=True), lambda h, ab: (0, h[1] * ab[0] + ab[1])))
    np.testing.assert_allclose(ops.to_numpy(result), [h for _, h in expected], rtol=1e-12)


def test_associative_scan_says_what_does_not_fit(backend: Backend) -> None:
    for elems, axis in ((ops.asarray(1.0), 0), (ops.zeros(3), 1), ([ops.zeros(3), ops.zeros(2)], 0), ([None], 0)):
        with pytest.raises(ValueError, match="associative_scan"):
            ops.associative_scan(ops.add, elems, axis=axis)


@pytest.mark.parametrize("mapping", [ops.map, ops.vectorized_map])
def test_maps_go_over_trees(backend: Backend, mapping: Callable[..., Any]) -> None:
    xs = {"a": ops.asarray([[1.0, 2.0], [3.0, 4.0]]), "b": (ops.asarray([10, 20]),)}
    result = mapping(lambda x: [ops.add(x["a"], x["b"][0]), {"sum": ops.sum(x["a"])}], xs)
    assert result[0].tolist() == [[11.0, 12.0], [23.0, 24.0]]
    assert result[1]["sum"].tolist() == [3.0, 7.0]


@pytest.mark.parametrize("mapping", [ops.map, ops.vectorized_map])
def test_maps_say_what_is_wrong(backend: Backend, mapping: Callable[..., Any]) -> None:
    for xs in (1.0, ops.asarray(2.0), [ops.zeros(2), ops.zeros(3)], None):
        with pytest.raises(ValueError, match="map"):
            mapping(ops.negative, xs)
    with pytest.raises(ValueError, match=r".") as caught:
        mapping(lambda row: ops.reshape(row, (7,)), ops.zeros((2, 3)))
    assert any("reshape" in note for note in caught.value.__notes__)


def test_vectorized_map_takes_what_cannot_be_vectorized(backend: Backend) -> None:
    rows = ops.asarray([[1.0, 1.0, 2.0], [3.0, 1.0, 3.0]])
    assert ops.vectorized_map(lambda r: ops.unique_values(r), rows).tolist() == [[1.0, 2.0], [1.0, 3.0]]
    assert ops.vectorized_map(lambda r: r * float(ops.sum(r)), rows).tolist() == [[4.0, 4.0, 8.0], [21.0, 7.0, 21.0]]
    assert ops.vectorized_map(lambda r: {"none": None, "one": 1}, rows)["one"].tolist() == [1, 1]


def test_numbers_and_host_arrays_follow_the_tensors(backend: Backend) -> None:
    x = ops.asarray([1.0, 2.0])
    ember_ml.set_backend("numpy")
    tensors = [
        control.cond(np.bool_(True), ops.add, ops.subtract, x, np.float32(1)),
        *ops.scan(lambda c, r: (ops.add(c, r), 1.0), 0.0, x),
        ops.while_loop(lambda i, x: ops.less(i, 3), lambda i, x: (i + 1, x), (0, x))[0],
        ops.fori_loop(0, 2, lambda i, pair: (pair[0], i), (x, 7))[1],
        ops.map(lambda r: 1, x),
        ops.vectorized_map(ops.negative, x),
        ops.eval(x),
    ]
    for tensor in tensors:
        assert isinstance(tensor, backend.tensors), type(tensor)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_tensors_of_two_engines_are_refused(backend: Backend) -> None:
    pytest.importorskip("mlx.core")
    x = ops.asarray([1.0])
    with ember_ml.use_backend("mlx"):
        y = ops.asarray([1.0])
    with pytest.raises(TypeError, match="tensors must be of one engine"):
        ops.scan(lambda c, r: (c, r), x, y)


def test_gradients_flow_through_control_flow_and_stop_where_told(backend: Backend) -> None:
    def f(x: Any) -> Any:
        kept, _ = ops.scan(lambda c, r: (c * r, None), 1.0, x)
        chosen = control.cond(True, ops.square, ops.negative, kept)
        return chosen + ops.sum(ops.stop_gradient(x) * x)

    if backend.name == "torch":
        import torch

        x = torch.tensor([2.0, 3.0], requires_grad=True)
        f(x).backward()
        gradient = x.grad
    elif backend.name == "mlx":
        import mlx.core as mx

        gradient = mx.grad(f)(mx.array([2.0, 3.0]))
    else:
        return
    assert gradient is not None
    assert gradient.tolist() == [2 * 6 * 3 + 2.0, 2 * 6 * 2 + 3.0]


def test_eval_returns_its_arguments(backend: Backend) -> None:
    x, nested = ops.add(ops.zeros(3), 1.0), {"a": [ops.zeros(2)], "b": "text"}
    assert ops.eval(x) is x
    assert ops.eval(nested) is nested
    both = ops.eval(x, nested)
    assert both[0] is x
    assert both[1] is nested
    assert ops.eval() == ()


def test_is_tensor_knows_every_engine(backend: Backend) -> None:
    assert ops.is_tensor(ops.zeros(3))
    assert ops.is_tensor(np.float32(1))
    for other in (1, 1.0, None, "x", [1.0], (1,), {}, object(), np.array(["x"]), np.dtype("f4"), range(3)):
        assert not ops.is_tensor(other)
    if backend.name == "torch":
        import torch

        assert ops.is_tensor(torch.nn.Parameter(torch.zeros(2)))


def test_trees_are_walked_and_rebuilt() -> None:
    nested = {"a": [1, (2, None)], "b": State(3, {}), "c": []}
    assert tree.leaves(nested) == [1, 2, None, 3]
    assert tree.unflatten(nested, "wxyz") == {"a": ["w", ("x", "y")], "b": State("z", {}), "c": []}
    assert isinstance(tree.map(str, nested)["b"], State)
    assert [path for path, _ in tree.places(nested)] == [("a", 0), ("a", 1, 0), ("a", 1, 1), ("b", 0)]
    assert tree.map(lambda a, b: (a, b), 1, 2) == (1, 2)


@pytest.mark.parametrize(
    ("one", "other"), [(1, [1]), ([1], (1,)), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ({"a": 1}, 1), ([[1]], [1])]
)
def test_trees_of_other_structure_are_refused(one: Any, other: Any) -> None:
    with pytest.raises(ValueError, match="structure"):
        tree.map(lambda a, b: a, one, other)
