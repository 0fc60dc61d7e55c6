"""Tokens and their names: one face for the tokenizers of the course, and for a list of names."""

from collections.abc import Sequence
from typing import Any

import torch

STARTS, STOPS = ("start", "<start>", "<s>", "[CLS]"), ("stop", "<stop>", "</s>", "[SEP]")
SIGNS = {" ": "▁", "\n": "↵", "\t": "⇥"}


class Vocabulary:
    """Turn a text into tokens, and a token into a name that can be shown.

    `words` is a `tokenizers.Tokenizer`, a `Characters`, or the list of all tokens' names: then a
    text is read by the character where each character is a token, and otherwise by the word.
    """

    def __init__(self, words: Any):
        self._words = words
        names = getattr(words, "symbols", words)
        self._names = list(names) if isinstance(names, Sequence) else None

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text. Raises ValueError for what is not in the vocabulary."""
        if self._names is None or hasattr(self._words, "symbols"):
            tokens = self._words.encode(text)
            return torch.as_tensor(getattr(tokens, "ids", tokens)).tolist()
        pieces = list(text) if set(text) <= set(self._names) else text.split()
        numbers = {name: number for number, name in enumerate(self._names)}
        if unknown := [piece for piece in pieces if piece not in numbers]:
            raise ValueError(
                f"{unknown[0]!r} is not among the {len(self._names)} tokens of `words`: write in "
                "tokens that the model was trained on"
            )
        return [numbers[piece] for piece in pieces]

    def name(self, token: int) -> str:
        """Return the name of a token, its white space as visible signs."""
        if self._names is not None:
            name = str(self._names[token]) if token < len(self._names) else f"token {token}"
        else:
            plain = self._words.id_to_token(token) or "start"
            decoded = self._words.decode([token])
            # a byte-level name is unreadable, and what joins words at "▁" is not
            name = decoded if "Ġ" in plain or "Ċ" in plain else plain
        return "".join(SIGNS.get(sign, sign) for sign in name)

    def text(self, tokens: list[int]) -> str:
        """Return the text that tokens stand for."""
        if self._names is None:
            return self._words.decode(tokens)
        names = [str(self._names[token]) for token in tokens]
        return ("" if all(len(name) == 1 for name in names) else " ").join(names)

    def find(self, names: Sequence[str]) -> int | None:
        """Return the first of these tokens that the vocabulary has, or None."""
        if self._names is not None:
            return next((self._names.index(name) for name in names if name in self._names), None)
        find = getattr(self._words, "token_to_id", lambda _: None)
        return next((token for name in names if (token := find(name)) is not None), None)
