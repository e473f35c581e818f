"""The counter-based generator: the words that its authors publish, every way they are made, and the streams of keys."""

from __future__ import annotations

import doctest
import json
import os
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from ember_ml import backend as backends
from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.random import threefry

ONES = 0xFFFFFFFF

# Random123, kat_vectors: threefry2x32 with 20 rounds.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def host(backend: Backend, x: Any) -> np.ndarray:
    return np.asarray(backend.to_host(x), np.int64)


def forms(backend: Backend, key: tuple[int, int]) -> list[Any]:
    """A key as integers, and as tensors on engines that may not know its values."""
    xp = backend.module.random
    return [key] if backend.is_host else [key, xp.pair_of(xp.tensor(list(key), "uint32", backend.device))]


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_published_words(backend: Backend, key: tuple[int, int], counter: tuple[int, int], expected: object) -> None:
    assert threefry.block(key, *counter) == expected
    xp = backend.module.random
    number = counter[0] << 32 | counter[1]
    if number < 2**63:
        for words in forms(backend, key):
            assert tuple(int(word[0]) for word in xp.pairs(words, number, 1, backend.device)) == expected
    high, low = (xp.word(xp.tensor([word], "int64", backend.device)) for word in counter)
    assert tuple(int(word[0]) for word in threefry.block(key, high, low)) == expected


@pytest.mark.parametrize("start", [0, 3, 2**32 - 5, 2**33 - 3, 2**33 - 40_000, 2**40 + 1, 2**61])
def test_words_beyond_32_bits_of_counter(backend: Backend, start: int) -> None:
    key, count = (5, ONES - 2), 70_001 if start == 2**33 - 40_000 else 21
    xp = backend.module.random
    expected = [threefry.block(key, i // 2 >> 32, i // 2 & ONES)[i & 1] for i in range(start, start + min(count, 21))]
    reference = backends.load("numpy").module.random.words(key, start, count)
    assert reference[:21].tolist() == expected
    for words in forms(backend, key):
        np.testing.assert_array_equal(host(backend, xp.words(words, start, count, backend.device)), reference)
    first, second = xp.pairs(key, start // 2, 5, backend.device)
    both = [threefry.block(key, i >> 32, i & ONES) for i in range(start // 2, start // 2 + 5)]
    assert list(zip(host(backend, first).tolist(), host(backend, second).tolist(), strict=True)) == both


@pytest.mark.parametrize("key", [-1, 2**64, (1,), (1, 2, 3), (0, 2**32), (0.5, 1)])
def test_a_key_is_64_bits(key: Any) -> None:
    with pytest.raises(ValueError, match="key"):
        threefry.words(key)


def test_parts_of_the_counter_do_not_meet() -> None:
    parts = [threefry.DRAWS, threefry.SPLITS, threefry.FOLDS, threefry.THREADS, threefry.TURNS]
    children = {threefry.child((1, 2), part, number) for part in parts for number in range(100)}
    assert len(children) == 500
    with pytest.raises(ValueError, match="numbered"):
        threefry.child((1, 2), threefry.FOLDS, -1)


def test_streams_of_threads_differ_and_that_of_the_first_does_not() -> None:
    found: dict[str, list[Any]] = {}

    def draw(name: str) -> None:
        found[name] = [threefry.draw() for _ in range(50)]

    threefry.set_seed(11)
    draw("first")
    threads = [threading.Thread(target=draw, args=(f"thread {i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({key for keys in found.values() for key in keys}) == 250
    threefry.set_seed(11)
    assert [threefry.draw() for _ in range(50)] == found["first"]


def test_a_shared_stream_hands_out_every_key_once() -> None:
    stream = threefry.Stream((1, 2))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.extend([stream.next() for _ in range(500)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(threefry.child((1, 2), threefry.FOLDS, i) for i in range(2000))
    again = pickle.loads(pickle.dumps(stream))
    assert again.next() == stream.next()


def test_state_goes_on_exactly_where_it_was() -> None:
    threefry.set_seed(2**63 + 5)
    for _ in range(3):
        threefry.draw()
    state = json.loads(json.dumps(threefry.state()))
    expected = [threefry.draw() for _ in range(4)]
    threefry.set_seed(1)
    threefry.restore(**state)
    assert [threefry.draw() for _ in range(4)] == expected
    assert threefry.seed() == 2**63 + 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_that_was_not_seeded_draws_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threefry, "_process", threefry._Process())
    monkeypatch.setattr(threefry, "here", threefry.Here())
    threefry.draw()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, json.dumps(threefry.draw()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert tuple(json.loads(os.read(reader, 100))) != threefry.draw()


def test_examples() -> None:
    assert doctest.testmod(threefry).failed == 0
    names = {name: value for name, value in vars(ops).items() if hasattr(value, "__operation__")}
    finder = doctest.DocTestFinder(recurse=True)
    runner = doctest.DocTestRunner()
    for name in ("key", "split", "fold_in", "get_state", "stream", "native", "Generator"):
        for example in finder.find(getattr(ops.random, name), name, globs={**names, **vars(ops.random)}):
            runner.run(example)
    assert runner.failures == 0
