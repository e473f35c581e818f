"""Generation of text: prompts of several lengths in a batch, caches of keys and values, tokens drawn by our own bits.

Padding is on the left, so that all texts of a batch continue at the same place of the cache. A token is
``argmax(scores / temperature + noise)`` with Gumbel noise from the random bits of the seed and of the token's number in
its text: the same on every engine and in every batch. Engines, batches and compilers sum in other orders, and differ in
the last bits of the scores; a choice changes only if two tokens are that close, by estimate once in a million tokens
in float32. Rounding the scores first would not help: scores that round to different sides are as rare as close ones,
and then differ by more. In bfloat16 the scores differ much more, and texts of two engines may part.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import ReferenceType, ref

from ember_ml import ops, transform, tree
from ember_ml.backend import use_backend
from ember_ml.dtypes import written
from ember_ml.errors import warn
from ember_ml.extend import Recording, load_backend, unchecked
from ember_ml.models.files import absent
from ember_ml.ops import random

if TYPE_CHECKING:
    from ember_ml.models.decoder import Decoder

# Engines that compile every operation for every shape: they have caches of one size, and compile steps by default.
_COMPILED = ("jax",)

# Numbers of positions by which caches grow where nothing is compiled for their size, and the smallest size elsewhere.
_GROWTH = 64
_SMALLEST = 16


class Tokenizer(Protocol):
    """What turns texts into tokens and back."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: list[int]) -> str: ...


class Choice(NamedTuple):
    """How a token is chosen from scores."""

    temperature: float
    top_k: int | None
    top_p: float | None

    def __call__(self, scores: Any, keys: Any, number: Any) -> Any:
        """Token for each row of scores.

        Args:
            keys: one random key, or one for each row, as tensors or seeds.
            number: number of the token in its text, an integer or an integer tensor.
        """
        if self.temperature == 0:
            return ops.argmax(scores, axis=-1)
        scores = ops.multiply(ops.cast(scores, "float32"), 1 / self.temperature)
        size = scores.shape[-1]
        if self.top_k is not None and self.top_k < size:
            scores = _hide_below(scores, ops.top_k(scores, self.top_k)[0][..., -1:])
        if self.top_p is not None and self.top_p < 1:
            ordered = ops.flip(ops.sort(scores, axis=-1), axis=-1)
            weights = ops.softmax(ordered)
            before = ops.subtract(ops.cumsum(weights, axis=-1), weights)
            kept = ops.where(ops.less(before, self.top_p), ordered, float("inf"))
            scores = _hide_below(scores, ops.min(kept, axis=-1, keepdims=True))
        noise = [
            random.random_gumbel((size,), key=random.fold_in(key, number), device=ops.get_device(scores))
            for key in keys
        ]
        return ops.argmax(ops.add(scores, ops.stack(noise)), axis=-1)


def _hide_below(scores: Any, least: Any) -> Any:
    return ops.where(ops.less(scores, least), -float("inf"), scores)


def _begin(model: Any, choice: Choice, size: int, tokens: Any, pads: Any, keys: Any) -> tuple[Any, Any]:
    """First token after the prompts, and the caches."""
    mask = positions = None
    if pads is not None:
        places = ops.arange(tokens.shape[1], dtype="int64", device=ops.get_device(tokens))
        mask, positions = _padding(places, pads, model.max_positions)
    scores, caches = model(tokens, mask=mask, positions=positions, cache=size, last=True)
    return ops.expand_dims(choice(scores[:, -1], keys, 0), axis=-1), caches


def _step(
    model: Any, choice: Choice, token: Any, caches: Any, at: Any, pads: Any, keys: Any, number: Any
) -> tuple[Any, Any]:
    """Token after ``token``, which is at position ``at`` of the caches, and the caches with it."""
    mask = positions = None
    if pads is not None:
        on = ops.get_device(pads)
        mask, _ = _padding(ops.arange(caches[0][0].shape[1], dtype="int64", device=on), pads, model.max_positions)
        place = ops.reshape(ops.asarray(at, dtype="int64", device=on), (1,))
        _, positions = _padding(place, pads, model.max_positions)
    scores, caches = model(token, mask=mask, positions=positions, cache=caches, at=at, last=True)
    return ops.expand_dims(choice(scores[:, -1], keys, number), axis=-1), caches


def _padding(places: Any, pads: Any, limit: int) -> tuple[Any, Any]:
    """Whether a place of each row is not padding, and its position in the text, which ends at the limit."""
    shifted = ops.subtract(ops.expand_dims(places, axis=0), ops.expand_dims(pads, axis=-1))
    return ops.greater_equal(shifted, 0), ops.clip(shifted, 0, limit - 1)


def _begin_program(choice: Choice, size: int) -> Callable[..., Any]:
    return lambda model, tokens, pads, keys: _begin(model, choice, size, tokens, pads, keys)


def _step_program(choice: Choice) -> Callable[..., Any]:
    def step(model: Any, token: Any, caches: Any, at: Any, pads: Any, keys: Any, number: Any) -> Any:
        token, caches = _step(model, choice, token, caches, at, pads, keys, number)
        return token, caches, ops.add(at, 1), pads, keys, ops.add(number, 1)

    return step


class Programs:
    """Compiled functions of one model, kept so that a later call of the same kind finds its program.

    A program refers to its model, so the model has to hold it: an entry of any other table would keep both alive.
    """

    def __init__(self) -> None:
        self.begin = lru_cache(maxsize=64)(lambda choice, size: transform.compile(_begin_program(choice, size)))
        self.step = lru_cache(maxsize=64)(lambda choice: transform.compile(_step_program(choice)))
        # Recordings by choice and shapes, for the tensors of the model that they read.
        self._recordings: dict[Hashable, Recording] = {}
        self._read: list[ReferenceType[Any]] = []

    @contextmanager
    def recording(self, model: Decoder, choice: Choice, state: Any, is_compiled: bool) -> Iterator[Recording]:
        """Recording of the steps of the model from a state, which nothing else uses meanwhile."""
        tensors = list(model.tensors().values())
        if len(tensors) != len(self._read) or any(one() is not x for one, x in zip(self._read, tensors, strict=True)):
            self._recordings.clear()
            self._read = [ref(x) for x in tensors]
        read = self._read
        key = choice, is_compiled, tuple(tuple(x.shape) for x in tree.leaves(state))
        step = self.step(choice) if is_compiled else _step_program(choice)
        recording = self._recordings.pop(key, None) or Recording(lambda state: step(model, *state), state)
        try:
            yield recording
        finally:
            if self._read is read:
                self._recordings[key] = recording


def _tokens(
    model: Decoder, prompts: list[list[int]], max_tokens: int, choice: Choice, seeds: list[int], is_compiled: bool
) -> Generator[list[int]]:
    """Tokens that follow the prompts, a list of one for each prompt at a time."""
    arguments = model, prompts, max_tokens, choice, seeds
    is_fixed = is_compiled or model.backend in _COMPILED
    with closing(_fixed_steps(*arguments, is_compiled) if is_fixed else _growing_steps(*arguments)) as tensors:
        waiting: Any = None
        engine = load_backend(model.backend)
        # The next step is on its way while the tokens of the last are read, where the engine is asynchronous.
        for tensor in tensors:
            engine.start(tensor)
            if waiting is not None:
                yield _read(waiting)
            waiting = tensor
        if waiting is not None:
            yield _read(waiting)


def _read(tensor: Any) -> list[int]:
    return [row[0] for row in tensor.tolist()]


def _growing_steps(
    model: Decoder, prompts: list[list[int]], max_tokens: int, choice: Choice, seeds: list[int]
) -> Generator[Any]:
    """Tokens with a cache of which only the part in use is computed with."""
    length = max(map(len, prompts))
    with use_backend(model.backend), unchecked():
        tokens, pads = _inputs(model, prompts, length)
        if all(len(prompt) == length for prompt in prompts):
            pads = None
        size = length + min(_GROWTH, max_tokens)
        token, caches = _begin(model, choice, size, tokens, pads, seeds)
    yield token
    for number in range(1, max_tokens):
        at = length + number - 1
        with use_backend(model.backend), unchecked():
            if at == size:
                widths = ((0, 0), (0, _GROWTH), (0, 0), (0, 0))
                caches = [tuple(ops.pad(x, widths) for x in cache) for cache in caches]
                size += _GROWTH
            token, caches = _step(model, choice, token, caches, at, pads, seeds, number)
        yield token


def _fixed_steps(
    model: Decoder,
    prompts: list[list[int]],
    max_tokens: int,
    choice: Choice,
    seeds: list[int],
    is_compiled: bool,
) -> Generator[Any]:
    """Tokens with a cache of one size, so that one program computes all of them."""
    length = min(_bucket(max(map(len, prompts))), model.max_positions)
    size = _bucket(length + max_tokens)
    begin = model.programs.begin(choice, size) if is_compiled else _begin_program(choice, size)
    with use_backend(model.backend), unchecked():
        tokens, pads = _inputs(model, prompts, length)
        on = ops.get_device(tokens)
        keys = [ops.to_device(random.key(seed), on) for seed in seeds]
        token, caches = begin(model, tokens, pads, keys)
        at, number = (ops.asarray(n, dtype="int64", device=on) for n in (length, 1))
    yield token
    if max_tokens == 1:
        return
    state = token, caches, at, pads, keys, number
    with ExitStack() as stack:
        with use_backend(model.backend), unchecked():
            steps = stack.enter_context(model.programs.recording(model, choice, state, is_compiled)).states(state)
        for _ in range(1, max_tokens):
            with use_backend(model.backend), unchecked():
                # The next state may be written to the same memory.
                token = ops.copy(next(steps)[0])
            yield token


def _bucket(size: int) -> int:
    """The next power of two, so that few programs are compiled."""
    return max(_SMALLEST, 1 << (size - 1).bit_length())


def _inputs(model: Decoder, prompts: list[list[int]], length: int) -> tuple[Any, Any]:
    """Prompts with padding to ``length``, and the amounts of padding."""
    on = ops.get_device(model.embedding.weight)
    pads = [length - len(prompt) for prompt in prompts]
    rows = [[0] * pad + prompt for pad, prompt in zip(pads, prompts, strict=True)]
    return tuple(ops.asarray(x, dtype="int64", device=on) for x in (rows, pads))  # type: ignore[return-value]


class _Request(NamedTuple):
    """Checked arguments of a call."""

    prompts: list[list[int]]
    is_batch: bool
    max_tokens: int
    choice: Choice
    seeds: list[int]
    stop_tokens: frozenset[int]
    stop_texts: tuple[str, ...]
    is_compiled: bool


def _request(
    model: Decoder,
    prompt: Any,
    max_tokens: int,
    *,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    stop: Any,
    seed: Any,
    tokenizer: Tokenizer | None,
    compile: bool | None,
) -> _Request:
    for name, value, least in (("max_tokens", max_tokens, 0), ("top_k", top_k, 1)):
        if value is not None and (not hasattr(type(value), "__index__") or value < least):
            raise ValueError(f"generate: {name} must be an integer >= {least}, got {value!r}")
    if not 0 <= temperature < float("inf"):
        raise ValueError(f"generate: temperature must be >= 0, got {temperature}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"generate: top_p must be > 0 and <= 1, got {top_p}")
    prompts, is_batch = _prompts(model, prompt, tokenizer)
    tokens, texts = _stops(model, stop, tokenizer)
    if seed is None:
        with use_backend("numpy"):
            seed = int(random.random_randint((), 0, 2**31 - 1))  # emberlint: ignore[EMB201] drawn on the host
    seeds = list(seed) if isinstance(seed, (list, tuple)) else [seed]
    if len(seeds) not in (1, len(prompts)):
        raise ValueError(
            f"generate: seed must be one number or one for each prompt, got {len(seeds)} for {len(prompts)}"
        )
    is_compiled = model.backend in _COMPILED if compile is None else compile
    choice = Choice(float(temperature), top_k, top_p) if temperature else Choice(0.0, None, None)
    return _Request(prompts, is_batch, max_tokens, choice, seeds, tokens, texts, is_compiled)


def _prompts(model: Decoder, prompt: Any, tokenizer: Tokenizer | None) -> tuple[list[list[int]], bool]:
    """Prompts as lists of tokens, and whether there were several."""
    given = prompt.tolist() if hasattr(prompt, "tolist") else prompt
    has_text = isinstance(given, str) or (isinstance(given, (list, tuple)) and any(isinstance(x, str) for x in given))
    if has_text and tokenizer is None:
        raise TypeError("generate: prompt must be tokens unless a tokenizer is given, got text")
    is_batch = isinstance(given, (list, tuple)) and bool(given) and isinstance(given[0], (list, tuple, str))
    found = []
    for one in given if is_batch else [given]:
        tokens = tokenizer.encode(one) if isinstance(one, str) and tokenizer is not None else one
        tokens = tokens.tolist() if hasattr(tokens, "tolist") else tokens
        if not isinstance(tokens, (list, tuple)) or not all(hasattr(type(token), "__index__") for token in tokens):
            raise TypeError(f"generate: prompt must be a list of integers, or several of them, got {written(one)}")
        if not tokens:
            raise ValueError("generate: prompt must have at least 1 token, got none")
        if len(tokens) > model.max_positions:
            raise ValueError(
                f"generate: prompt must have at most {model.max_positions} tokens, the number of positions of the "
                f"model, got {len(tokens)}"
            )
        size = model.config.vocab_size
        wrong = [token for token in tokens if not 0 <= token < size]
        if wrong:
            raise ValueError(f"generate: tokens must be >= 0 and < {size}, got {wrong[0]}")
        found.append([int(token) for token in tokens])
    return found, is_batch


def _stops(model: Decoder, stop: Any, tokenizer: Tokenizer | None) -> tuple[frozenset[int], tuple[str, ...]]:
    """Tokens and texts that end a text."""
    if stop is None:
        stop = model.stop_tokens
    each = stop if isinstance(stop, (list, tuple, set, frozenset)) else (stop,)
    texts = tuple(one for one in each if isinstance(one, str))
    tokens = [one for one in each if not isinstance(one, str)]
    if texts and tokenizer is None:
        raise TypeError(f"generate: stop must be tokens unless a tokenizer is given, got {texts[0]!r}")
    if "" in texts or not all(hasattr(type(token), "__index__") for token in tokens):
        raise ValueError(f"generate: stop must be tokens or texts that are not empty, got {stop!r}")
    return frozenset(int(token) for token in tokens), texts


class _Text:
    """Text that is being generated: its tokens, and what of it has been given away."""

    def __init__(self, request: _Request, length: int, limit: int, tokenizer: Tokenizer | None) -> None:
        self.request, self.tokenizer = request, tokenizer
        self.length, self.limit = length, limit
        self.left = min(request.max_tokens, limit - length)
        self.tokens: list[int] = []
        self.text = ""
        self.given = 0
        self.is_done = self.left <= 0
        # Whether the text ends because the model has no position for another token.
        self.is_cut = self.is_done and request.max_tokens > 0

    def add(self, token: int) -> None:
        """Add a token, and note whether the text ends."""
        if self.is_done:
            return
        if token in self.request.stop_tokens:
            self.is_done = True
            return
        self.tokens.append(token)
        self.is_done = len(self.tokens) >= self.left
        self.is_cut = self.is_done and self.left < self.request.max_tokens
        if self.tokenizer is None:
            return
        self.text = self.tokenizer.decode(self.tokens)
        found = [place for place in map(self.text.find, self.request.stop_texts) if place >= 0]
        if found:
            self.text = self.text[: min(found)]
            self.is_done, self.is_cut = True, False

    def piece(self) -> str:
        """Text that is certain, and was not given away before."""
        end = len(self.text)
        if not self.is_done:
            # A character may need more tokens, and so may the text that ends the text.
            end = len(self.text.rstrip("\ufffd"))
            starts = [
                end - size
                for stop in self.request.stop_texts
                for size in range(1, len(stop))
                if self.text[:end].endswith(stop[:size])
            ]
            end = min([end, *starts])
        found = self.text[self.given : end]
        self.given = max(self.given, end)
        return found


def _texts(model: Decoder, request: _Request, tokenizer: Tokenizer | None) -> Iterator[list[_Text]]:
    """The texts, after each step."""
    texts = [_Text(request, len(prompt), model.max_positions, tokenizer) for prompt in request.prompts]
    if all(text.is_done for text in texts):
        _warn_if_cut(texts)
        return
    was_training = model.training
    model.eval()
    try:
        steps = max(text.left for text in texts)
        arguments = request.prompts, steps, request.choice, request.seeds, request.is_compiled
        with closing(_tokens(model, *arguments)) as rows:
            for row in rows:
                for text, token in zip(texts, row, strict=True):
                    text.add(token)
                yield texts
                if all(text.is_done for text in texts):
                    _warn_if_cut(texts)
                    return
    finally:
        model.train(was_training)


def _warn_if_cut(texts: list[_Text]) -> None:
    """Warn about the first text that ends because the model has no more positions."""
    cut = next((text for text in texts if text.is_cut), None)
    if cut is not None:
        warn(
            f"generate: a text ends after {len(cut.tokens)} of max_tokens={cut.request.max_tokens} tokens, since its "
            f"prompt has {cut.length} and the model has {cut.limit} positions"
        )


def generate(model: Decoder, prompt: Any, max_tokens: int, *, tokenizer: Tokenizer | None, **options: Any) -> Any:
    """Implementation of ``Decoder.generate``."""
    request = _request(model, prompt, max_tokens, tokenizer=tokenizer, **options)
    found: list[Any] = [[] if tokenizer is None else "" for _ in request.prompts]
    for texts in _texts(model, request, tokenizer):
        found = [text.tokens if tokenizer is None else text.text for text in texts]
    return found if request.is_batch else found[0]


def stream(
    model: Decoder, prompt: Any, max_tokens: int, *, tokenizer: Tokenizer | None, **options: Any
) -> Iterator[Any]:
    """Implementation of ``Decoder.stream``."""
    request = _request(model, prompt, max_tokens, tokenizer=tokenizer, **options)
    if request.is_batch:
        raise ValueError(f"stream: prompt must be one, got {len(request.prompts)}; generate takes several")
    return _pieces(model, request, tokenizer)


def _pieces(model: Decoder, request: _Request, tokenizer: Tokenizer | None) -> Iterator[Any]:
    count = 0
    for (text,) in _texts(model, request, tokenizer):
        if tokenizer is None:
            yield from text.tokens[count:]
            count = len(text.tokens)
        else:
            piece = text.piece()
            if piece:
                yield piece


class _Adapter:
    """Tokenizer of the ``tokenizers`` package, with the methods of ``Tokenizer``."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text).ids)

    def decode(self, tokens: list[int]) -> str:
        return str(self.inner.decode(tokens))


def load_tokenizer(folder: Any) -> Tokenizer:
    """Tokenizer of a model, from the ``tokenizer.json`` in its folder; needs the package ``tokenizers``.

    Args:
        folder: the folder, or a file in it, as for ``load``.
    """
    place = Path(folder)
    if not place.exists():
        raise absent("load_tokenizer: folder", place)
    path = (place if place.is_dir() else place.parent) / "tokenizer.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"load_tokenizer: {path.parent} must have tokenizer.json for prompts that are text, got none; prompts that "
            "are tokens need none"
        )
    try:
        from tokenizers import Tokenizer as Inner
    except ImportError:
        raise ImportError(
            "load_tokenizer: the package tokenizers must be installed: pip install 'ember-ml[models]'"
        ) from None
    try:
        return _Adapter(Inner.from_file(str(path)))
    except Exception as error:
        raise ValueError(f"{path} must be a file of the tokenizers package, got {error}") from error
