"""Generation of text: prompts of several lengths in a batch, caches of keys and values, sampling with our random bits.

Padding is on the left, so that all texts of a batch continue at the same place of the cache. A token is
``argmax(scores / temperature + noise)`` with Gumbel noise from the random bits of the seed and of the token's index in
its text: the same on every engine and in every batch. Engines, batches and compilers sum in different orders, so scores
differ in the last bits, and a token changes only where two are that close: by estimate one in a million in float32.
Rounding the scores first would not help: scores that round to different sides are as rare as close ones, and then
differ by more. In bfloat16 the scores differ much more, and texts of two engines may diverge.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ReferenceType, ref

from ember_ml import ops, transform, tree
from ember_ml.backend import use_backend
from ember_ml.dtypes import written
from ember_ml.errors import warn
from ember_ml.extend import Recording, load_backend, unchecked
from ember_ml.models.tokenizer import Continuation, Tokenizer, is_hidden
from ember_ml.ops import random

if TYPE_CHECKING:
    from ember_ml.models.decoder import Decoder

# Engines that compile every operation for every shape: they have caches of one size, and compile steps by default.
_COMPILED_ENGINES = ("jax",)

# Numbers of positions by which caches grow where nothing is compiled for their size, and the smallest size elsewhere.
_CACHE_GROWTH = 64
_MIN_CACHE_SIZE = 16

# Below this temperature, the greatest score is always chosen: scores divided by it may not be finite in float32.
_MIN_TEMPERATURE = 1e-30


class SamplerInputs(NamedTuple):
    """Values with which tokens are chosen: numbers, or tensors, which one compiled program takes for all values.

    Args:
        keys: one random key, or one for each row of scores, as tensors or seeds.
        scale: factor of the scores.
        excluded: greatest probability of the least probable tokens together that are not chosen.
    """

    keys: Any
    scale: Any
    excluded: Any


class Sampler(NamedTuple):
    """How a token is chosen from scores. A program is compiled for each sampler."""

    is_greedy: bool = False
    top_k: int | None = None
    has_top_p: bool = False

    def __call__(self, scores: Any, inputs: SamplerInputs, number: Any) -> Any:
        """Token for each row of scores.

        Args:
            number: number of the token in its text, an integer or an integer tensor.
        """
        if self.is_greedy:
            return ops.argmax(scores, axis=-1)
        scores = ops.multiply(ops.cast(scores, "float32"), inputs.scale)
        size = scores.shape[-1]
        if self.top_k is not None:
            scores = _hide_below(scores, ops.top_k(scores, self.top_k)[0][..., -1:])
        if self.has_top_p:
            scores = _hide_improbable(scores, inputs.excluded)
        noise = [
            random.random_gumbel((size,), key=random.fold_in(key, number), device=ops.get_device(scores))
            for key in inputs.keys
        ]
        return ops.argmax(ops.add(scores, ops.stack(noise)), axis=-1)


def _hide_below(scores: Any, least: Any) -> Any:
    return ops.where(ops.less(scores, least), -float("inf"), scores)


def _hide_improbable(scores: Any, excluded: Any) -> Any:
    """Scores without those of the least probable tokens, whose probabilities sum to at most ``excluded``."""
    ordered = ops.sort(scores, axis=-1)
    # The smallest probabilities come first, so that rounding errors are small where the sum is.
    sums = ops.cumsum(ops.softmax(ordered), axis=-1)
    kept = ops.where(ops.greater(sums, excluded), ordered, float("inf"))
    return _hide_below(scores, ops.minimum(ops.min(kept, axis=-1, keepdims=True), ordered[..., -1:]))


def _prefill(model: Any, sampler: Sampler, size: int, tokens: Any, pads: Any, inputs: Any) -> tuple[Any, Any]:
    """First token after the prompts, and the caches."""
    mask = positions = None
    if pads is not None:
        places = ops.arange(tokens.shape[1], dtype="int64", device=ops.get_device(tokens))
        mask, positions = _padding(places, pads, model.max_positions)
    scores, caches = model(tokens, mask=mask, positions=positions, cache=size, last=True)
    return ops.expand_dims(sampler(scores[:, -1], inputs, 0), axis=-1), caches


def _decode_step(
    model: Any, sampler: Sampler, token: Any, caches: Any, at: Any, pads: Any, inputs: Any, number: Any
) -> tuple[Any, Any]:
    """Token after ``token``, which is at position ``at`` of the caches, and the caches with it."""
    mask = positions = None
    if pads is not None:
        on = ops.get_device(pads)
        mask, _ = _padding(ops.arange(caches[0][0].shape[1], dtype="int64", device=on), pads, model.max_positions)
        place = ops.reshape(ops.asarray(at, dtype="int64", device=on), (1,))
        _, positions = _padding(place, pads, model.max_positions)
    scores, caches = model(token, mask=mask, positions=positions, cache=caches, at=at, last=True)
    return ops.expand_dims(sampler(scores[:, -1], inputs, number), axis=-1), caches


def _padding(places: Any, pads: Any, limit: int) -> tuple[Any, Any]:
    """Whether a place of each row is not padding, and its position in the text, which ends at the limit."""
    shifted = ops.subtract(ops.expand_dims(places, axis=0), ops.expand_dims(pads, axis=-1))
    return ops.greater_equal(shifted, 0), ops.clip(shifted, 0, limit - 1)


def _prefill_program(sampler: Sampler, size: int) -> Callable[..., Any]:
    return lambda model, tokens, pads, inputs: _prefill(model, sampler, size, tokens, pads, inputs)


def _decode_program(sampler: Sampler) -> Callable[..., Any]:
    def step(model: Any, token: Any, caches: Any, at: Any, pads: Any, inputs: Any, number: Any) -> Any:
        token, caches = _decode_step(model, sampler, token, caches, at, pads, inputs, number)
        return token, caches, ops.add(at, 1), pads, inputs, ops.add(number, 1)

    return step


class Programs:
    """Compiled functions of one model, kept so that a later call of the same kind finds its program.

    A program refers to its model, so the model has to hold it: an entry of any other table would keep both alive.
    """

    def __init__(self) -> None:
        self.prefill = lru_cache(maxsize=64)(lambda sampler, size: transform.compile(_prefill_program(sampler, size)))
        self.decode_step = lru_cache(maxsize=64)(lambda sampler: transform.compile(_decode_program(sampler)))
        # Recordings by sampler and shapes, for the tensors of the model that they read.
        self._recordings: dict[Hashable, Recording] = {}
        self._read: list[ReferenceType[Any]] = []

    @contextmanager
    def recording(self, model: Decoder, sampler: Sampler, state: Any, is_compiled: bool) -> Iterator[Recording]:
        """Recording of the steps of the model from a state, which nothing else uses meanwhile."""
        tensors = list(model.tensors().values())
        if len(tensors) != len(self._read) or any(one() is not x for one, x in zip(self._read, tensors, strict=True)):
            self._recordings.clear()
            self._read = [ref(x) for x in tensors]
        read = self._read
        key = sampler, is_compiled, tuple(tuple(x.shape) for x in tree.leaves(state))
        step = self.decode_step(sampler) if is_compiled else _decode_program(sampler)
        recording = self._recordings.pop(key, None) or Recording(lambda state: step(model, *state), state)
        try:
            yield recording
        finally:
            if self._read is read:
                self._recordings[key] = recording


@contextmanager
def _computing(model: Decoder) -> Iterator[None]:
    """Computation on the engine of the model, in evaluation mode. Between tokens, modules are in their own modes.

    Compiled functions take a key from the random stream, so they get one of their own: the user's stays where it is.
    """
    training = [module for module in model.modules() if module.training]
    with use_backend(model.backend), unchecked(), random.stream(0):
        try:
            for module in training:
                module.__dict__["training"] = False
            yield
        finally:
            for module in training:
                module.__dict__["training"] = True


def _tokens(model: Decoder, request: _Request, count: int) -> Generator[list[int]]:
    """So many tokens that follow the prompts, a list of one for each prompt at a time."""
    is_fixed = request.is_compiled or model.backend in _COMPILED_ENGINES
    with closing((_fixed_steps if is_fixed else _growing_steps)(model, request, count)) as tensors:
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


def _growing_steps(model: Decoder, request: _Request, count: int) -> Generator[Any]:
    """Tokens with a cache of which only the part in use is computed with."""
    prompts, sampler, inputs = request.prompts, request.sampler, request.inputs
    length = max(map(len, prompts))
    with _computing(model):
        tokens, pads = _inputs(model, prompts, length)
        if all(len(prompt) == length for prompt in prompts):
            pads = None
        size = length + min(_CACHE_GROWTH, count)
        token, caches = _prefill(model, sampler, size, tokens, pads, inputs)
    yield token
    for number in range(1, count):
        at = length + number - 1
        with _computing(model):
            if at == size:
                widths = ((0, 0), (0, _CACHE_GROWTH), (0, 0), (0, 0))
                caches = [tuple(ops.pad(x, widths) for x in cache) for cache in caches]
                size += _CACHE_GROWTH
            token, caches = _decode_step(model, sampler, token, caches, at, pads, inputs, number)
        yield token


def _fixed_steps(model: Decoder, request: _Request, count: int) -> Generator[Any]:
    """Tokens with a cache of one size, so that one program computes all of them."""
    prompts, sampler, inputs, is_compiled = request.prompts, request.sampler, request.inputs, request.is_compiled
    length = min(_bucket(max(map(len, prompts))), model.max_positions)
    size = _bucket(length + count)
    prefill = model.programs.prefill(sampler, size) if is_compiled else _prefill_program(sampler, size)
    with _computing(model):
        tokens, pads = _inputs(model, prompts, length)
        on = ops.get_device(tokens)
        keys = [ops.to_device(random.key(seed), on) for seed in inputs.keys]
        inputs = SamplerInputs(keys, *(ops.asarray(x, dtype="float32", device=on) for x in inputs[1:]))
        token, caches = prefill(model, tokens, pads, inputs)
        at, number = (ops.asarray(n, dtype="int64", device=on) for n in (length, 1))
    yield token
    if count == 1:
        return
    state = token, caches, at, pads, inputs, number
    with ExitStack() as stack:
        with _computing(model):
            steps = stack.enter_context(model.programs.recording(model, sampler, state, is_compiled)).states(state)
        for _ in range(1, count):
            with _computing(model):
                # The next state may be written to the same memory.
                token = ops.copy(next(steps)[0])
            yield token


def _bucket(size: int) -> int:
    """The next power of two, so that few programs are compiled."""
    return max(_MIN_CACHE_SIZE, 1 << (size - 1).bit_length())


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
    sampler: Sampler
    inputs: SamplerInputs
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
    max_tokens = _integer("max_tokens", max_tokens, 0)
    top_k = None if top_k is None else _integer("top_k", top_k, 1)
    temperature = _number("temperature", temperature, ">= 0", lambda x: 0 <= x < float("inf"))
    top_p = None if top_p is None else _number("top_p", top_p, "> 0 and <= 1", lambda x: 0 < x <= 1)
    prompts, is_batch = _prompts(model, prompt, tokenizer)
    tokens, texts = _stops(model, stop, tokenizer)
    if seed is None:
        with use_backend("numpy"):
            seed = int(random.random_randint((), 0, 2**31 - 1))  # emberlint: ignore[EMB201] drawn on the host
    seed = _listed(seed)
    several = seed if isinstance(seed, Sequence) and not isinstance(seed, str) else [seed]
    seeds = [_integer("seed", one, 0) for one in several]
    if len(seeds) not in (1, len(prompts)):
        raise ValueError(
            f"generate: seed must be one number or one for each prompt, got {len(seeds)} for {len(prompts)}"
        )
    is_compiled = model.backend in _COMPILED_ENGINES if compile is None else compile
    if temperature < _MIN_TEMPERATURE:
        sampler, inputs = Sampler(is_greedy=True), SamplerInputs(seeds, 1.0, 0.0)
    else:
        excluded = 0.0 if top_p is None else 1 - top_p
        is_limited = top_k is not None and top_k < model.config.vocab_size
        sampler = Sampler(False, top_k if is_limited else None, excluded > 0)
        inputs = SamplerInputs(seeds, 1 / temperature, excluded)
    return _Request(prompts, is_batch, max_tokens, sampler, inputs, tokens, texts, is_compiled)


def _integer(name: str, value: Any, least: int) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"generate: {name} must be an integer >= {least}, got {written(value)}") from None
    if found < least:
        raise ValueError(f"generate: {name} must be an integer >= {least}, got {found}")
    return found


def _number(name: str, value: Any, condition: str, holds: Callable[[float], bool]) -> float:
    if not hasattr(type(value), "__float__"):
        raise TypeError(f"generate: {name} must be a number {condition}, got {written(value)}")
    found = float(value)
    if not holds(found):
        raise ValueError(f"generate: {name} must be {condition}, got {found}")
    return found


def _listed(value: Any) -> Any:
    """``value`` with lists and numbers in place of arrays and tensors, if it is one or a list of them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_listed(one) for one in value] if isinstance(value, (list, tuple)) else value


def _prompts(model: Decoder, prompt: Any, tokenizer: Tokenizer | None) -> tuple[list[list[int]], bool]:
    """Prompts as lists of tokens, and whether there were several."""
    given = _unpadded(prompt) if isinstance(prompt, Mapping) else _listed(prompt)
    has_text = isinstance(given, str) or (isinstance(given, (list, tuple)) and any(isinstance(x, str) for x in given))
    if has_text and tokenizer is None:
        raise TypeError("generate: prompt must be tokens unless a tokenizer is given, got text")
    is_batch = isinstance(given, (list, tuple)) and bool(given) and isinstance(given[0], (list, tuple, str))
    found = []
    for one in given if is_batch else [given]:
        tokens = _listed(tokenizer.encode(one)) if isinstance(one, str) and tokenizer is not None else one
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


def _unpadded(batch: Mapping[str, Any]) -> Any:
    """Tokens in what a tokenizer of ``transformers`` returned, without padding."""
    if "input_ids" not in batch:
        raise TypeError(
            f"generate: prompt must have input_ids if it is a dictionary, got {', '.join(map(repr, batch))}"
        )
    tokens, mask = (_listed(batch.get(name)) for name in ("input_ids", "attention_mask"))
    if mask is None:
        return tokens
    if tokens and isinstance(tokens[0], list):
        return [list(compress(*pair)) for pair in zip(tokens, mask, strict=True)]
    return list(compress(tokens, mask))


def _stops(model: Decoder, stop: Any, tokenizer: Tokenizer | None) -> tuple[frozenset[int], tuple[str, ...]]:
    """Tokens and texts that end a text."""
    if stop is None:
        stop = model.stop_tokens
    stop = _listed(stop)
    each = stop if isinstance(stop, (list, tuple, set, frozenset)) else (stop,)
    texts = tuple(one for one in each if isinstance(one, str))
    tokens = [one for one in each if not isinstance(one, str)]
    if texts and tokenizer is None:
        raise TypeError(f"generate: stop must be tokens unless a tokenizer is given, got {texts[0]!r}")
    if "" in texts or not all(hasattr(type(token), "__index__") for token in tokens):
        raise ValueError(f"generate: stop must be tokens or texts that are not empty, got {stop!r}")
    find = getattr(tokenizer, "token_to_id", None)
    if tokenizer is not None and find is not None:
        # A special token does not appear in the text.
        tokens += [token for token in map(find, texts) if token is not None and is_hidden(tokenizer, token)]
    return frozenset(int(token) for token in tokens), texts


class _Text:
    """Text that is being generated."""

    def __init__(self, request: _Request, prompt: list[int], limit: int, tokenizer: Tokenizer | None) -> None:
        self.request = request
        self.length, self.limit = len(prompt), limit
        self.left = min(request.max_tokens, limit - self.length)
        self.tokens: list[int] = []
        # Text after each token, as far as it cannot be the beginning of a text that ends this one, and the rest.
        self.pieces: list[str] = []
        self.held = ""
        self.is_done = self.left <= 0
        # Whether the text ends because the model has no position for another token.
        self.is_cut = self.is_done and request.max_tokens > 0
        self.continuation = None if tokenizer is None or self.is_done else Continuation(tokenizer, prompt)

    def add(self, token: int) -> None:
        """Add a token, and note whether the text ends."""
        if self.is_done:
            return
        is_stop = token in self.request.stop_tokens
        if not is_stop:
            self.tokens.append(token)
        is_full = len(self.tokens) >= self.left
        self.is_done = is_stop or is_full
        self.is_cut = is_full and self.left < self.request.max_tokens
        if self.continuation is None:
            return
        text = self.held + ("" if is_stop else self.continuation.add(token))
        if self.is_done:
            text += self.continuation.rest()
        found = [place for place in map(text.find, self.request.stop_texts) if place >= 0]
        if found:
            text = text[: min(found)]
            self.is_done, self.is_cut = True, False
        end = len(text)
        if not self.is_done:
            starts = [stop[:size] for stop in self.request.stop_texts for size in range(1, len(stop))]
            end -= max((len(start) for start in starts if text.endswith(start)), default=0)
        self.pieces.append(text[:end])
        self.held = text[end:]


def _extend(model: Decoder, request: _Request, texts: list[_Text]) -> Iterator[None]:
    """Add a token to each of the texts of a request at a time, until all are done."""
    if all(text.is_done for text in texts):
        _warn_if_cut(texts)
        return
    with closing(_tokens(model, request, max(text.left for text in texts))) as rows:
        for row in rows:
            for text, token in zip(texts, row, strict=True):
                text.add(token)
            yield
            if all(text.is_done for text in texts):
                _warn_if_cut(texts)
                return


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
    texts = [_Text(request, prompt, model.max_positions, tokenizer) for prompt in request.prompts]
    for _ in _extend(model, request, texts):
        pass
    found = [text.tokens if tokenizer is None else "".join(text.pieces) for text in texts]
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
    text = _Text(request, request.prompts[0], model.max_positions, tokenizer)
    count = 0
    for _ in _extend(model, request, [text]):
        if tokenizer is None:
            yield from text.tokens[count:]
            count = len(text.tokens)
        elif text.pieces[-1]:
            yield text.pieces[-1]
