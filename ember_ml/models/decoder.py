"""Base class of decoders: the pass over the layers, with or without a cache, and generation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.extend import activate, load_backend
from ember_ml.models.encoder import text_inputs
from ember_ml.models.generation import Programs, generate, stream
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.tokenizer import Tokenizer
from ember_ml.nn.modules.decoding import is_integer


class Decoder(PretrainedModel):
    """Base class of models that compute scores of the next token from those before it.

    A subclass assigns ``embedding``, ``layers``, ``norm`` and ``head`` (``None`` if it is the embedding), and defines
    ``embed`` and ``max_positions``.
    """

    embedding: Any
    layers: Any
    norm: Any
    head: Any
    # Neither copied nor pickled, nor part of the cache key of compiled programs.
    _programs: Programs | None = None
    # Entries of generation_config.json, which are not part of the cache key either.
    _generation_config: Mapping[str, Any] | None = None
    _not_in_cache_key = PretrainedModel._not_in_cache_key | {"_programs", "_generation_config"}

    @property
    def programs(self) -> Programs:
        """Compiled functions that generation with this model uses."""
        if self._programs is None:
            object.__setattr__(self, "_programs", Programs())
        return self._programs  # type: ignore[return-value]

    @property
    def stop_tokens(self) -> tuple[int, ...]:
        """Tokens that end a text by default: the ``eos_token_id`` of ``generation_config.json``, or of the config."""
        given = (self._generation_config or {}).get("eos_token_id")
        if given is None:
            given = self.config.extra.get("eos_token_id")
        tokens = given if isinstance(given, (list, tuple)) else () if given is None else (given,)
        if not all(type(token) is int for token in tokens):
            raise ValueError(
                f"{type(self).__name__}: eos_token_id must be an integer or a list of integers, got {given!r}"
            )
        return tuple(tokens)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_programs"}

    @property
    def max_positions(self) -> int:
        """Greatest length of a sequence."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Decoder must define max_positions")

    def embed(self, tokens: Any, positions: Any) -> tuple[Any, dict[str, Any]]:
        """Input of the first layer, and options for all layers, such as rotations."""
        raise NotImplementedError(f"{type(self).__name__}: a subclass of Decoder must define embed")

    def score(self, x: Any) -> Any:
        """Scores of all tokens, from the output of the last layer."""
        return self.embedding.attend(x) if self.head is None else self.head(x)

    def forward(
        self,
        tokens: Any,
        *,
        mask: Any = None,
        positions: Any = None,
        cache: Any = None,
        at: Any = None,
        last: bool = False,
        hidden_states: bool = False,
    ) -> Any:
        """Scores of the next token for each position, of the shape (batch, length, tokens).

        With ``hidden_states`` or ``cache``, the result is a tuple of the scores and of what was asked for, in this
        order.

        Args:
            tokens: integers of the shape (batch, length), or a dictionary that a tokenizer returned, with ``input_ids``
                and optionally ``attention_mask``.
            mask: false or 0 for padding, of the shape (batch, length); with a cache that the last call returned, of the
                shape (batch, size of the cache).
            positions: of the shape (length) or (batch, length), by default 0, 1, 2 and so on, or ``at``.
            cache: as in ``CausalSelfAttention``, a size or a list of caches, one for each layer.
            at: position in the cache of the only token of each sequence, an integer or an integer tensor.
            last: compute the scores of the last position alone.
            hidden_states: return the input of the first layer and the output of each, the last one normalized.
        """
        tokens, mask, _ = text_inputs(tokens, mask, None, self.embedding.weight)
        if len(tokens.shape) != 2:
            raise ValueError(
                f"{type(self).__name__}: tokens must have the shape (batch, length), got {list(tokens.shape)}"
            )
        is_step = cache is not None and not is_integer(cache)
        if not is_step and tokens.shape[1] > self.max_positions:
            raise ValueError(
                f"{type(self).__name__}: tokens must have a length of at most {self.max_positions}, the number of "
                f"positions of the model, got {tokens.shape[1]}"
            )
        # Positions and masks are created on the engine of the weights, whichever is active.
        with activate(load_backend(self.backend)):
            on = ops.get_device(self.embedding.weight)
            if positions is None:
                if is_step:
                    positions = ops.reshape(ops.asarray(at, dtype="int64", device=on), (1,))
                else:
                    positions = ops.arange(tokens.shape[1], dtype="int64", device=on)
            if mask is not None:
                mask = ops.reshape(ops.not_equal(mask, 0), (mask.shape[0], 1, 1, mask.shape[1]))
            x, options = self.embed(tokens, positions)
            # Without hidden_states, none is kept, so that a long prompt takes the memory of one layer.
            states, caches = [x] if hidden_states else [], []
            for index, layer in enumerate(self.layers):
                if cache is None:
                    x = layer(x, mask=mask, **options)
                else:
                    x, kept = layer(x, mask=mask, cache=cache[index] if is_step else cache, at=at, **options)
                    caches.append(kept)
                if hidden_states:
                    states.append(x)
            x = self.norm(x[:, -1:] if last and not hidden_states else x)
            states[-1:] = [x] if hidden_states else []
            scores = self.score(x[:, -1:] if last else x)
            asked = ([states] if hidden_states else []) + ([caches] if cache is not None else [])
            return (scores, *asked) if asked else scores

    def duplicates(self) -> dict[str, str]:
        return {"lm_head.weight": f"{self.names['embedding']}.weight"} if self.head is None else {}

    def generate(
        self,
        prompt: Any,
        max_tokens: int = 128,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: Any = None,
        seed: int | Sequence[int] | None = None,
        tokenizer: Tokenizer | None = None,
        compile: bool | None = None,
    ) -> Any:
        """Continuation of a prompt, or a list of those of several prompts.

        A prompt is a list of tokens, and so is the result; with a tokenizer, both are texts. What follows a prompt does
        not depend on the others of a batch, nor on the engine: the random bits of a token are those of the seed and of
        its number in the text. So equal prompts give equal texts, unless ``seed`` has one number for each.

        Args:
            prompt: tokens, or text if there is a tokenizer; or a list of such; or the dictionary of a tokenizer of
                ``transformers``, with ``input_ids`` and optionally ``attention_mask``.
            max_tokens: greatest number of tokens to add. A text that reaches the last position of the model
                (``max_position_embeddings`` of most configurations) ends there, with a warning.
            temperature: divides the scores; at 0 the token with the greatest score is chosen.
            top_k: choose among the tokens with the greatest scores, as many as this.
            top_p: choose among the most probable tokens whose probabilities sum to this.
            stop: token or tokens that end a text and are not part of it; with a tokenizer, also texts. By default
                ``stop_tokens``.
            seed: seed of the random bits, or one for each prompt; by default a new one.
            tokenizer: object with ``encode`` and ``decode``, such as ``models.load_tokenizer(folder)``.
            compile: compile the computation of a token, with a cache of fixed size; by default on JAX alone.
        """
        return generate(
            self, prompt, max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, stop=stop, seed=seed,
            tokenizer=tokenizer, compile=compile,
        )  # fmt: skip

    def stream(
        self,
        prompt: Any,
        max_tokens: int = 128,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: Any = None,
        seed: int | None = None,
        tokenizer: Tokenizer | None = None,
        compile: bool | None = None,
    ) -> Iterator[Any]:
        """Tokens that ``generate`` adds to one prompt, or with a tokenizer pieces of text, each when it is known."""
        return stream(
            self, prompt, max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, stop=stop, seed=seed,
            tokenizer=tokenizer, compile=compile,
        )  # fmt: skip
