"""Generation: one seed is one text on every engine, in every batch, compiled or not."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import sys
import warnings
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from weakref import ref

import numpy as np
import pytest
from decoders import reference

import ember_ml
from ember_ml import models, ops
from ember_ml.backend import Backend
from ember_ml.cli import main
from ember_ml.models.generation import Sampler, SamplerInputs, _hide_improbable
from ember_ml.models.llama import Llama, LlamaConfig
from ember_ml.models.tokenizer import Continuation, _Adapter
from ember_ml.nn import tensor

SAMPLING = {"seed": 7, "temperature": 0.8, "top_k": 60, "top_p": 0.97, "stop": ()}
PROMPTS = [[5, 9, 1], [4, 8, 15, 16, 23, 42, 7, 7, 3, 99, 0, 50, 61], [77]]


def model(name: str = "llama-plain") -> Any:
    return models.load(reference(name).folder)


@cache
def long_folder() -> Path:
    """A model of 256 positions."""
    from tempfile import mkdtemp

    folder = Path(mkdtemp(prefix="ember-ml-models-"))
    with ember_ml.use_backend("numpy"):
        models.save(model(), folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_position_embeddings": 256}))
    return folder


@cache
def texts() -> list[list[int]]:
    """200 tokens after each of the prompts, on NumPy, one at a time."""
    with ember_ml.use_backend("numpy"):
        found = models.load(long_folder())
        return [found.generate(prompt, 200, **SAMPLING) for prompt in PROMPTS]


def test_one_seed_is_one_text_alone_and_in_a_batch(backend: Backend) -> None:
    found = models.load(long_folder())
    assert all(len(text) == 200 for text in texts())
    assert len({tuple(text) for text in texts()}) == 3
    assert found.generate(PROMPTS, 200, **SAMPLING) == texts()
    assert found.generate(PROMPTS[0], 200, **SAMPLING) == texts()[0]


@pytest.mark.parametrize("engine", ["mlx", "jax"])
def test_one_seed_is_one_text_compiled_or_not(engine: str) -> None:
    """What torch compiles is tested on fewer tokens below, since its compiler takes longest."""
    pytest.importorskip(engine)
    with ember_ml.use_backend(engine):
        found = models.load(long_folder())
        assert found.generate(PROMPTS, 200, compile=True, **SAMPLING) == texts()
        if engine == "jax":
            assert found.generate(PROMPTS[:1], 8, compile=False, **SAMPLING) == [texts()[0][:8]]


def tiny() -> Any:
    """One layer with random weights: what is quickest to compile."""
    sizes = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": 16}
    counts = {"num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1}
    return Llama(LlamaConfig.from_dict({**sizes, **counts}))


@pytest.mark.parametrize("engine", ["mlx", "jax"])
def test_programs_belong_to_their_model(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function warns if it is compiled for more models than this limit, so no two models may share one."""
    pytest.importorskip(engine)
    monkeypatch.setattr("ember_ml.transform.compilation._PROGRAMS", 1)
    with ember_ml.use_backend(engine):
        first, second = tiny(), tiny()
        names, text = set(first.state_dict()), repr(first)
        for found in (first, second):
            assert found.generate([1], 3, compile=True, **SAMPLING) == found.generate([1], 3, **SAMPLING)
        assert (set(first.state_dict()), repr(first)) == (names, text)
        assert first.programs is not second.programs
        for copied in (copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
            assert "_programs" not in vars(copied)
            assert copied.programs is not first.programs
        programs = [ref(one) for one in (first, first.programs, first.programs.decode_step(Sampler(has_top_p=True)))]
        del first, found, copied
        gc.collect()
        assert [one() for one in programs] == [None] * 3
        assert second.programs.decode_step.cache_info().currsize == 1


@pytest.mark.parametrize("engine", ["torch", "mlx", "jax"])
@pytest.mark.usefixtures("traced_only")
def test_one_program_serves_all_temperatures(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(engine)
    traces: list[int] = []
    choose = Sampler.__call__

    def traced(*args: Any) -> Any:
        traces.append(1)
        return choose(*args)

    def count() -> int:
        if engine == "torch":  # where what a traced function changes is changed by its program too
            return int(sys.modules["torch._dynamo.utils"].counters["stats"]["unique_graphs"])
        return len(traces)

    with ember_ml.use_backend(engine):
        found, counts = tiny(), []
        for number, temperature in enumerate((0.5, 1.0, 3.0)):
            options: dict[str, Any] = {"temperature": temperature, "top_p": 0.9 - number / 10, "seed": number}
            expected = found.generate([1], 6, compile=False, **options)
            with monkeypatch.context() as patch:
                if engine != "torch":
                    patch.setattr(Sampler, "__call__", traced)
                assert found.generate([1], 6, compile=True, **options) == expected
            counts.append(count())
    assert 0 < counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize("compile", [None, True])
@pytest.mark.usefixtures("traced_only")
def test_the_random_stream_stays_where_it_was(backend: Backend, compile: bool | None) -> None:
    found, state = tiny(), ops.random.get_state()
    found.generate([1], 4, seed=3, compile=compile)
    assert ops.random.get_state() == state


def test_seeds_for_each_prompt(backend: Backend) -> None:
    found = model()
    options = {**SAMPLING, "seed": [7, 8, 7]}
    first, second, third = found.generate([[5, 9]] * 3, 12, **options)
    assert first == third == found.generate([5, 9], 12, **SAMPLING)
    assert second == found.generate([5, 9], 12, **{**SAMPLING, "seed": 8}) != first


def test_the_seed_of_the_process_is_used_without_one(backend: Backend) -> None:
    found = model()
    ops.set_seed(3)
    first = found.generate([5], 12)
    ops.set_seed(3)
    assert found.generate([5], 12) == first
    assert found.generate([5], 12) != first


def test_a_stream_has_the_tokens_of_generate_one_at_a_time(backend: Backend) -> None:
    found = model()
    stream = found.stream([5, 9, 1], 10, **SAMPLING)
    first = next(stream)
    assert type(first) is int
    assert [first, *stream] == found.generate([5, 9, 1], 10, **SAMPLING)


def test_stop_tokens_end_a_text_and_are_not_in_it(backend: Backend) -> None:
    found = model()
    text = found.generate([5, 9, 1], 10, temperature=0)
    stop = text[4]
    short = text[: text.index(stop)]
    assert found.generate([5, 9, 1], 10, temperature=0, stop=stop) == short
    assert found.generate([[5, 9, 1], [2]], 10, temperature=0, stop=[stop])[0] == short
    assert list(found.stream([5, 9, 1], 10, temperature=0, stop=[stop, 1000])) == short


def test_the_tokens_of_the_configuration_stop_by_default(tmp_path: Path) -> None:
    with ember_ml.use_backend("numpy"):
        text = model().generate([5, 9, 1], 10, temperature=0)
        models.save(model(), tmp_path)
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "eos_token_id": text[3]}))
        found = models.load(tmp_path)
        assert found.generate([5, 9, 1], 10, temperature=0) == text[: text.index(text[3])]
        assert found.generate([5, 9, 1], 10, temperature=0, stop=()) == text


def test_the_tokens_of_generation_config_stop_before_those_of_the_configuration() -> None:
    found = model()
    assert found.stop_tokens == ()
    for eos, expected in ((5, (5,)), ([5, 6], (5, 6)), (None, ())):
        object.__setattr__(found, "_generation_config", {"eos_token_id": eos})
        assert found.stop_tokens == expected
    object.__setattr__(found.config, "extra", {"eos_token_id": 3})
    assert found.stop_tokens == (3,)
    object.__setattr__(found, "_generation_config", {"eos_token_id": [5]})
    assert copy.deepcopy(found).stop_tokens == pickle.loads(pickle.dumps(found)).stop_tokens == found.stop_tokens
    assert "_generation_config" not in found.state_dict()
    object.__setattr__(found, "_generation_config", {"eos_token_id": ["x"]})
    with pytest.raises(ValueError, match=r"Llama: eos_token_id must be an integer or a list of integers, got \['x'\]"):
        found.generate([1], 1)


def test_texts_end_at_the_last_position(backend: Backend) -> None:
    found = model()
    prompt = [1] * 90
    cut = "a text ends after 6 of max_tokens=20 tokens, since its prompt has 90 and the model has 96 positions"
    with pytest.warns(UserWarning, match=cut) as caught:
        text = found.generate(prompt, 20, temperature=0)
    assert caught[0].filename == __file__
    assert len(text) == 6
    with pytest.warns(UserWarning, match=cut):
        short, long = found.generate([[2, 3], prompt], 20, temperature=0)
    assert short == found.generate([2, 3], 20, temperature=0)
    assert long == text
    with pytest.warns(UserWarning, match=cut):
        assert list(found.stream(prompt, 20, temperature=0)) == text
    with pytest.warns(UserWarning, match="a text ends after 0 of max_tokens=20 tokens"):
        assert found.generate([1] * 96, 20, temperature=0) == []


def test_texts_that_end_as_they_were_asked_to_give_no_warning(backend: Backend) -> None:
    found = model()
    assert found.generate([1] * 96, 0) == []
    text = found.generate([1] * 90, 6, temperature=0)
    assert len(text) == 6
    assert found.generate([1] * 90, 20, temperature=0, stop=text[-1]) == text[: text.index(text[-1])]


def test_a_model_in_training_mode_is_back_in_it(backend: Backend) -> None:
    found = model("gpt2-plain").train()
    assert found.generate([1, 2], 4, temperature=0) == found.eval().generate([1, 2], 4, temperature=0)
    found.train()
    list(found.stream([1, 2], 4))
    assert found.training


@pytest.mark.parametrize("compile", [False, True])
def test_modules_keep_their_modes_between_tokens(backend: Backend, compile: bool) -> None:
    found = model("gpt2-plain")
    options = {"temperature": 0, "compile": compile and backend.name != "torch"}
    expected = [found.generate([token], 4, **options) for token in (1, 2)]
    found.train().layers[0].eval()
    modes = [module.training for module in found.modules()]
    first, second = (found.stream([token], 4, **options) for token in (1, 2))
    texts = [[next(first)], [next(second)]]
    assert [module.training for module in found.modules()] == modes
    texts[0] += first
    texts[1] += second
    assert texts == expected
    assert [module.training for module in found.modules()] == modes


def test_the_backend_is_that_of_the_model() -> None:
    with ember_ml.use_backend("torch"):
        found = model()
    with ember_ml.use_backend("numpy"):
        assert found.generate([5, 9, 1], 6, **SAMPLING) == model().generate([5, 9, 1], 6, **SAMPLING)
        stream = found.stream([5], 3)
        next(stream)
        assert ember_ml.get_backend() == "numpy"


def test_choices_are_among_the_best(backend: Backend) -> None:
    scores = ops.asarray([[0.0, 3.0, 1.0, 2.0, -1.0]] * 2)

    def drawn(sampler: Sampler, excluded: float, count: int) -> set[int]:
        inputs = SamplerInputs([1, 2], 1.0, excluded)
        return {choice for number in range(count) for choice in sampler(scores, inputs, number).tolist()}

    assert drawn(Sampler(top_k=2), 0.0, 40) == {1, 3}
    # The probabilities are 0.03, 0.64, 0.09, 0.24, 0.01.
    assert drawn(Sampler(has_top_p=True), 1 - 0.7, 60) == {1, 3}
    for excluded in (1 - 1e-6, 1.0):
        assert drawn(Sampler(has_top_p=True), excluded, 9) == {1}


@pytest.mark.parametrize(("spread", "top_p"), [(2.0, 0.9), (2.0, 0.999), (0.01, 0.9)])
def test_a_large_vocabulary_is_cut_where_its_probabilities_say(backend: Backend, spread: float, top_p: float) -> None:
    scores = np.random.default_rng(0).normal(scale=spread, size=150_000).astype(np.float32)
    weights = np.sort(np.exp(scores.astype(np.float64)))
    exact = np.count_nonzero(np.cumsum(weights / weights.sum()) > 1 - top_p)
    kept = np.isfinite(ops.to_numpy(_hide_improbable(ops.asarray(scores[None]), 1 - top_p))).sum()
    assert abs(kept - exact) <= 15


def test_choices_have_the_probabilities_of_the_scores() -> None:
    with ember_ml.use_backend("numpy"):
        scores = ops.log(ops.asarray([[0.1, 0.2, 0.7]]))
        inputs = SamplerInputs([4], 1.0, 0.0)
        drawn = [Sampler()(scores, inputs, number).tolist()[0] for number in range(3000)]
    for token, expected in enumerate((0.1, 0.2, 0.7)):
        assert abs(drawn.count(token) / 3000 - expected) < 0.03


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        (([],), {}, ValueError, "prompt must have at least 1 token, got none"),
        (([100],), {}, ValueError, "tokens must be >= 0 and < 100, got 100"),
        (([1.5],), {}, TypeError, "prompt must be a list of integers"),
        (({"ids": [1]},), {}, TypeError, "prompt must have input_ids if it is a dictionary, got 'ids'"),
        (("text",), {}, TypeError, "prompt must be tokens unless a tokenizer is given, got text"),
        (([1] * 97,), {}, ValueError, "at most 96 tokens, the number of positions of the model, got 97"),
        (([1], -1), {}, ValueError, "max_tokens must be an integer >= 0, got -1"),
        (([1],), {"temperature": -1.0}, ValueError, "temperature must be >= 0, got -1.0"),
        (([1],), {"top_k": 0}, ValueError, "top_k must be an integer >= 1, got 0"),
        (([1],), {"top_p": 0.0}, ValueError, "top_p must be > 0 and <= 1, got 0.0"),
        (([1], None), {}, TypeError, "max_tokens must be an integer >= 0, got None"),
        (([1], 1.5), {}, TypeError, "max_tokens must be an integer >= 0, got 1.5"),
        (([1],), {"temperature": "1"}, TypeError, "temperature must be a number >= 0, got '1'"),
        (([1],), {"temperature": None}, TypeError, "temperature must be a number >= 0, got None"),
        (([1],), {"temperature": float("nan")}, ValueError, "temperature must be >= 0, got nan"),
        (([1],), {"top_p": "a"}, TypeError, "top_p must be a number > 0 and <= 1, got 'a'"),
        (([1],), {"seed": "a"}, TypeError, "seed must be an integer >= 0, got 'a'"),
        (([1],), {"seed": [1.5]}, TypeError, "seed must be an integer >= 0, got 1.5"),
        (([1],), {"seed": -1}, ValueError, "seed must be an integer >= 0, got -1"),
        (([1],), {"stop": "x"}, TypeError, "stop must be tokens unless a tokenizer is given, got 'x'"),
        (([1],), {"seed": [1, 2]}, ValueError, "seed must be one number or one for each prompt, got 2 for 1"),
    ],
)
def test_bad_arguments(arguments: Any, options: Any, kind: type[Exception], message: str) -> None:
    with ember_ml.use_backend("numpy"), pytest.raises(kind, match=f"generate: .*{message}"):
        model().generate(*arguments, **options)


def test_prompts_and_options_may_be_arrays_and_tensors(backend: Backend) -> None:
    found = model()
    prompts = [[5, 9, 1], [77]]
    text, other = found.generate(prompts, 6, temperature=0.8, seed=[1, 2])
    arrays, tensors = [np.array(prompt) for prompt in prompts], [ops.asarray(prompt) for prompt in prompts]
    for batch in (arrays, tensors, tuple(tensors), [prompts[0], tensors[1]], tensor.asarray([prompts[0]] * 2)):
        seeds = np.array([1, 2]) if batch is not tensors else ops.asarray([1, 2])
        expected = [text, other if len(batch[1]) == 1 else found.generate(prompts[0], 6, temperature=0.8, seed=2)]
        assert found.generate(batch, np.int64(6), temperature=np.float32(0.8), seed=seeds) == expected
    assert found.generate(list(arrays[0]), 6, temperature=0.8, seed=np.array(1)) == text
    padded = {"input_ids": np.array([[5, 9, 1], [0, 0, 77]]), "attention_mask": [[1, 1, 1], [0, 0, 1]]}
    assert found.generate(padded, 6, temperature=0.8, seed=[1, 2]) == [text, other]
    for one in ({"input_ids": prompts[0]}, {"input_ids": [0, 5, 9, 1], "attention_mask": [0, 1, 1, 1]}):
        assert found.generate(one, 6, temperature=0.8, seed=1) == text
    cut = text[: text.index(text[3])]
    for stop in (np.array([text[3]]), ops.asarray([text[3], 1000]), [np.int64(text[3])], np.array(text[3])):
        assert found.generate(prompts[0], 6, temperature=0.8, seed=range(1, 2), stop=stop) == cut


@pytest.mark.parametrize("temperature", [1e-20, 1e-36, 1e-39, 1e-310])
def test_the_greatest_score_is_chosen_at_tiny_temperatures(backend: Backend, temperature: float) -> None:
    found = model()
    assert found.generate([5, 9, 1], 6, temperature=temperature) == found.generate([5, 9, 1], 6, temperature=0)


def test_a_stream_is_of_one_prompt() -> None:
    with ember_ml.use_backend("numpy"), pytest.raises(ValueError, match="stream: prompt must be one, got 2"):
        model().stream([[1], [2]])


@cache
def folder_with_tokenizer() -> Path:
    """The long model, and a tokenizer with a word for each token."""
    tokenizers = pytest.importorskip("tokenizers")
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(100)}, unk_token="w0"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    inner.save(str(long_folder() / "tokenizer.json"))
    return long_folder()


def test_texts_with_a_tokenizer(backend: Backend) -> None:
    tokenizer = models.load_tokenizer(folder_with_tokenizer())
    found = model()
    tokens = found.generate([5, 9], 8, **SAMPLING)
    words = "".join(f" w{token}" for token in tokens)
    assert found.generate("w5 w9", 8, tokenizer=tokenizer, **SAMPLING) == words
    assert found.generate(["w5 w9"], 8, tokenizer=tokenizer, **SAMPLING) == [words]
    pieces = list(found.stream("w5 w9", 8, tokenizer=tokenizer, **SAMPLING))
    assert len(pieces) > 1
    assert "".join(pieces) == words
    stop = f" w{tokens[3]}"
    cut = words[: words.index(stop)] if stop in words else words
    assert found.generate("w5 w9", 8, tokenizer=tokenizer, **{**SAMPLING, "stop": stop}) == cut
    assert "".join(found.stream("w5 w9", 8, tokenizer=tokenizer, **{**SAMPLING, "stop": [stop]})) == cut


WORDS = ["<unk>", "<s>", "<|end|>", "▁", "▁▁", "▁Once", "▁upon", "▁a", "ly", "s", "!"]


def tokenizer_of_llama(decoder: str = "strip") -> Any:
    """Words, special tokens and a token for each byte; the decoders drop the first space of a text."""
    tokenizers = pytest.importorskip("tokenizers")
    names = [*WORDS, *(f"<0x{byte:02X}>" for byte in range(256))]
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel({name: i for i, name in enumerate(names)}, "<unk>"))
    inner.add_special_tokens(WORDS[1:3])
    decoders = tokenizers.decoders
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    inner.decoder = decoders.Sequence(steps) if decoder == "strip" else decoders.Metaspace()
    return _Adapter(inner)


def words_and_bytes(draw: Random) -> list[int]:
    found: list[int] = []
    for _ in range(draw.randrange(1, 9)):
        character = "é日😀\n"[draw.randrange(4)].encode()
        found += [draw.randrange(len(WORDS))] if draw.random() < 0.6 else [len(WORDS) + byte for byte in character]
    return found


@pytest.mark.parametrize("decoder", ["strip", "metaspace"])
def test_a_continuation_is_what_tokens_add_to_the_text_of_the_prompt(decoder: str) -> None:
    draw, tokenizer = Random(1), tokenizer_of_llama(decoder)
    for _ in range(300):
        prompt, tokens = words_and_bytes(draw), words_and_bytes(draw)
        text = Continuation(tokenizer, prompt)
        found = "".join(map(text.add, tokens)) + text.rest()
        assert found == tokenizer.decode(prompt + tokens)[len(tokenizer.decode(prompt)) :]


def test_the_cost_of_texts_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = tokenizer_of_llama()
    decode, counts = tokenizer.decode, []
    monkeypatch.setattr(tokenizer, "decode", lambda tokens: counts.append(len(tokens)) or decode(tokens))
    text = Continuation(tokenizer, [6] * 1000)
    for number in range(500):
        # Special tokens have no text, which would complete another.
        text.add(2 if number < 250 else 6)
    assert sum(counts) < 8 * 500


def test_a_stop_text_may_be_a_special_token() -> None:
    """Which the text does not show. Other tokenizers need not know the token IDs."""

    class Own:
        def __init__(self) -> None:
            self.decode = tokenizer_of_llama().decode

        def encode(self, text: str) -> list[int]:
            return [5, 6]

    class Full(Own):
        token_to_id = staticmethod(tokenizer_of_llama().token_to_id)

    with ember_ml.use_backend("numpy"):
        found = model()
        seed = next(seed for seed in range(99) if 2 in found.generate([5, 6], 40, seed=seed)[1:])
        tokens = found.generate([5, 6], 40, seed=seed)
        options = {"seed": seed, "stop": "<|end|>"}
        text = Own().decode([5, 6, *tokens])[len("Once upon") :]
        assert found.generate("Once upon", 40, tokenizer=Own(), **options) == text
        cut = Own().decode([5, 6, *tokens[: tokens.index(2)]])[len("Once upon") :]
        assert found.generate("Once upon", 40, tokenizer=Full(), **options) == cut
        assert "".join(found.stream("Once upon", 40, tokenizer=Full(), **options)) == cut
        assert found.generate([5, 6], 40, tokenizer=Full(), **{**options, "stop": "▁"}) == text


def test_stop_texts_of_several_tokens() -> None:
    tokenizer = tokenizer_of_llama()
    with ember_ml.use_backend("numpy"):
        found = model()
        options = {"seed": 3, "tokenizer": tokenizer}
        text = found.generate([5, 6], 16, **options)
        for start in range(0, len(text) - 3, 5):
            for size in (1, 2, 5):
                stop = text[start : start + size]
                cut = text[: text.index(stop)]
                assert found.generate([5, 6], 16, stop=["never", stop], **options) == cut
                assert "".join(found.stream([5, 6], 16, stop=["never", stop], **options)) == cut


def test_characters_of_several_tokens_are_streamed_whole() -> None:
    class Bytes:
        def encode(self, text: str) -> list[int]:
            return list(text.encode())

        def decode(self, tokens: list[int]) -> str:
            return bytes([0xC3, 0xA9, 0x61][token % 3] for token in tokens).decode(errors="replace")

    with ember_ml.use_backend("numpy"):
        found = model()
        pieces = list(found.stream([5], 40, tokenizer=Bytes(), **SAMPLING))
        assert "".join(pieces) == found.generate([5], 40, tokenizer=Bytes(), **SAMPLING)
        # An incomplete character is shown only where the text goes on without completing it.
        assert all(not piece.endswith("\ufffd") for piece in pieces[:-1])


def test_the_command_streams_a_text(backend: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(folder_with_tokenizer())
    arguments = ["generate", folder, "w5 w9", "--max-tokens", "6", "--seed", "7", "--top-k", "60"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith(" w")
    assert len(text.split()) == 6
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {"backend": backend.name, "prompt": "w5 w9", "text": text.rstrip("\n"), "seed": 7}
    stop = text.split()[2]
    assert main([*arguments, "--stop", stop]) == 0
    assert capsys.readouterr().out == text[: text.index(stop)] + "\n"


def test_the_command_takes_tokens(
    backend: Backend, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a tokenizer, and without the package."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    found = model()
    models.save(found, tmp_path)
    tokens = found.generate([5, 9, 1], 6, seed=7)
    options = ["--tokens", "--max-tokens", "6", "--seed", "7"]
    for folder, prompt in ((tmp_path, "5 9 1"), (tmp_path, "5,9,1"), (tmp_path / "model.safetensors", " 5, 9, 1 ")):
        assert main(["generate", str(folder), prompt, *options]) == 0
        assert capsys.readouterr().out == " ".join(map(str, tokens)) + "\n"
    assert main(["generate", str(tmp_path), "5 9 1", *options, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {"backend": backend.name, "prompt": [5, 9, 1], "tokens": tokens, "seed": 7}
    assert main(["generate", str(tmp_path), "5 9 1", *options, "--stop", str(tokens[2])]) == 0
    assert capsys.readouterr().out.split() == [str(token) for token in tokens[: tokens.index(tokens[2])]]


def test_the_command_shows_the_seed_that_it_drew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ember_ml.use_backend("numpy"):
        models.save(model(), tmp_path)
        arguments = ["generate", str(tmp_path), "5", "--tokens", "--max-tokens", "9", "--json"]
        first, second = [(main(arguments), json.loads(capsys.readouterr().out))[1] for _ in range(2)]
        assert first != second
        assert main([*arguments, "--seed", str(first["seed"])]) == 0
        assert json.loads(capsys.readouterr().out) == first


def test_the_command_notes_that_a_text_was_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ember_ml.use_backend("numpy"), warnings.catch_warnings():
        warnings.simplefilter("always")
        models.save(model(), tmp_path)
        assert main(["generate", str(tmp_path), ",".join(["1"] * 95), "--tokens", "--seed", "7"]) == 0
    out, err = capsys.readouterr()
    assert len(out.split()) == 1
    assert err.startswith("ember-ml: note: generate: a text ends after 1 of max_tokens=128 tokens")
    assert err.count("\n") == 1


def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def complaint(*arguments: str) -> str:
        assert main(["generate", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("ember-ml: error: ")
        assert err.count("\n") == 1
        return err

    with ember_ml.use_backend("numpy"):
        for options in ((), ("--tokens",)):
            assert "must be a folder or file that exists, got 'nofolder'" in complaint("nofolder", "1", *options)
        weights = tmp_path / "model.safetensors"
        weights.write_bytes(b"")
        for place in (tmp_path, weights):
            err = complaint(str(place), "text")
            assert f"load_tokenizer: {tmp_path} must have tokenizer.json for" in err
            assert "prompts that are tokens (ember-ml generate --tokens) need none" in err
        assert "must have config.json" in complaint(str(tmp_path), "1", "--tokens")
        (tmp_path / "tokenizer.json").write_text("{}")
        assert "must be a file of the tokenizers package" in complaint(str(tmp_path), "text")
        folder = str(folder_with_tokenizer())
        assert "top_p must be > 0 and <= 1, got 2.0" in complaint(folder, "w1", "--top-p", "2")
        for prompt in ("w1", "", "1 -2", "1.5"):
            assert f"PROMPT must be token IDs for --tokens, such as '5 9 1' or 5,9,1, got {prompt!r}" in complaint(
                folder, prompt, "--tokens"
            )
        assert "--stop must be token IDs" in complaint(folder, "1", "--tokens", "--stop", "end")
        assert "tokens must be >= 0 and < 100, got 100" in complaint(folder, "100", "--tokens")
        monkeypatch.setitem(sys.modules, "tokenizers", None)
        assert "pip install 'ember-ml[models]'" in complaint(folder, "w1")


@pytest.mark.parametrize("load", [models.load, models.load_tokenizer])
def test_a_model_that_is_not_there_has_to_be_downloaded(load: Any, tmp_path: Path) -> None:
    expected = rf"^{load.__name__}: folder.* must be a folder or file that exists, .*: hf download \S+ config"
    with pytest.raises(FileNotFoundError, match=expected):
        load(tmp_path / "gpt2")


class Kept:
    """Recorded kernels of an engine without them: the function is called, and its results take the same places."""

    made = 0

    def __init__(self, f: Any, tensors: Any) -> None:
        type(self).made += 1
        self.f, self.tensors = f, [ops.copy(x) for x in tensors]

    def set(self, tensors: Any) -> None:
        for held, x in zip(self.tensors, tensors, strict=True):
            held[...] = x

    def launch(self) -> None:
        self.set(self.f(*self.tensors))


def test_recorded_steps_serve_later_texts_and_follow_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CUDA, tried on NumPy: one for a kind of text, another while that is in use or for new weights."""
    from ember_ml.backend.numpy import transform as engine

    prompts = [[5, 9, 1], [1, 9, 5]]
    with ember_ml.use_backend("numpy"):
        found = model()
        expected = [found.generate(prompt, 6, **SAMPLING) for prompt in prompts]
        monkeypatch.setattr(engine, "recorded", Kept, raising=False)
        monkeypatch.setattr(Kept, "made", 0)
        assert [found.generate(prompt, 6, compile=True, **SAMPLING) for prompt in prompts] == expected
        assert Kept.made == 1
        streams = [found.stream(prompt, 6, compile=True, **SAMPLING) for prompt in prompts]
        assert [list(text) for text in zip(*zip(*streams, strict=True), strict=True)] == expected
        assert Kept.made == 2
        found.assign({path: ops.negative(x) for path, x in found.tensors().items()})
        changed = found.generate(prompts[0], 6, **SAMPLING)
        assert changed != expected[0]
        assert found.generate(prompts[0], 6, compile=True, **SAMPLING) == changed
        assert Kept.made == 3


@pytest.mark.device
def test_recorded_kernels_give_the_same_texts(backend: Backend) -> None:
    """On CUDA, compiled steps are one launch; the second text uses the recording of the first."""
    found = tiny()
    for prompt in ([1, 2, 3], [7, 5, 3]):
        text = found.generate(prompt, 10, **SAMPLING)
        assert found.generate(prompt, 10, compile=True, **SAMPLING) == text
