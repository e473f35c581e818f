"""Tokenizers: what generation needs of them, the one in the folder of a model, and text that grows by tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ember_ml.models.files import absent

# What decoders write for bytes that are no character, or none yet.
_UNKNOWN = "\ufffd"

# Number of tokens of a prompt that are decoded with what follows, if they have a character.
_CONTEXT = 8


class Tokenizer(Protocol):
    """What turns texts into tokens and back.

    It may have ``token_to_id``, a function from the text of a token to its number, or ``None`` if there is no such
    token. Then the text of a token that ``decode`` leaves out can end a generated text.
    """

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: list[int]) -> str: ...


def is_hidden(tokenizer: Tokenizer, token: int) -> bool:
    """Whether ``decode`` leaves out a token, as it does with special ones."""
    # One space may be left out at the beginning of a text, but not two.
    return not tokenizer.decode([token, token])


class Continuation:
    """Text of tokens that follow a prompt, decoded as they come, in linear time.

    A decoder may drop the space before the first word of a text, so a token is decoded together with those of the
    text before it, and their part of the result is cut off.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: list[int]) -> None:
        self.tokenizer = tokenizer
        size = _CONTEXT
        while True:
            self._start(prompt[-size:])
            if size >= len(prompt) or self.text.strip(_UNKNOWN):
                return
            size *= 2

    def _start(self, tokens: list[int]) -> None:
        """Decode what follows together with these tokens, whose text is known."""
        self.tokens, self.text = tokens, self.tokenizer.decode(tokens)
        self.known_tokens, self.known_text = len(self.tokens), len(self.text)

    def add(self, token: int) -> str:
        """Add a token, and return the text that it completes."""
        tokens = [*self.tokens, token]
        text = self.tokenizer.decode(tokens)
        is_complete = not text.endswith(_UNKNOWN)
        if is_complete and text == self.text and is_hidden(self.tokenizer, token):
            # It would separate a word from the one before it.
            return ""
        self.tokens, self.text = tokens, text
        found = self.rest() if is_complete else ""
        if found:
            self._start(tokens[self.known_tokens :])
        return found

    def rest(self) -> str:
        """Text that ``add`` did not return, because a character is incomplete."""
        return self.text[self.known_text :]


class _Adapter:
    """Tokenizer of the ``tokenizers`` package, with the methods of ``Tokenizer``."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def encode(self, text: str) -> list[int]:
        return list(self.inner.encode(text).ids)

    def decode(self, tokens: list[int]) -> str:
        return str(self.inner.decode(tokens))

    def token_to_id(self, text: str) -> int | None:
        found: int | None = self.inner.token_to_id(text)
        return found


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
            "are tokens (ember-ml generate --tokens) need none"
        )
    try:
        from tokenizers import Tokenizer as Inner
    except ImportError:
        raise ImportError(
            "load_tokenizer: the package tokenizers must be installed: pip install 'ember-ml[models]'"
        ) from None
    try:
        inner = Inner.from_file(str(path))
    except Exception as error:
        raise ValueError(f"{path} must be a file of the tokenizers package, got {error}") from error
    # Options of batches, which some published files have: a prompt has the tokens of its text alone, and all of them.
    inner.no_padding()
    inner.no_truncation()
    return _Adapter(inner)
