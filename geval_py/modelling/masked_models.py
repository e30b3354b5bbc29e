"""Masked language models of transformers, such as BERT, in a gap: a word is one to four tokens, with a mask for each.

The tokens of a word are predicted from left to right, each with masks in the place of those that follow, as Kauf and
Ivanova (2023, https://aclanthology.org/2023.acl-short.80/) advise. How many tokens a word has is known from train, so
that the probabilities of the words of each length sum to its share at most.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from geval_py.modelling.baselines import leaving_a_rest, likeliest
from geval_py.modelling.corpus import Flags
from geval_py.modelling.language_models import Logits, ids_of, loaded, max_length, token_texts, uncased_note
from geval_py.modelling.word_search import Tokens, learnt_answers
from geval_py.reading.items import Item
from geval_py.reading.wordprobs import is_listable

LENGTHS = (0.7, 0.2, 0.07, 0.03)  # shares of words of one token, of two and so on, before a train is seen
BEAM = 20  # beginnings of a word that are continued
MAX_AROUND = 200  # tokens on either side


class Masked:
    """A masked model by its name or folder; ``count`` words are wanted. Raises ModelError."""

    def __init__(self, name: str, count: int, dtype: str | None = None, device: str = "auto") -> None:
        self._torch, self._tokenizer, self._model = loaded(name, dtype, device)
        self._count = count
        self._around = min(MAX_AROUND, (max_length(self._model) - 2 * len(LENGTHS)) // 2)
        self._shares: tuple[float, ...] = LENGTHS
        tokenizer = self._tokenizer.backend_tokenizer
        self._mark = (getattr(tokenizer.model, "continuing_subword_prefix", None) or "").encode()  # WordPiece's ##
        self._texts, begin, go_on = [], [], []  # the last two: whether a token begins a word, or goes on with one
        for text in token_texts(tokenizer):
            if self._mark:
                is_piece = text.startswith(self._mark) and text != self._mark
                signs = text.decode(errors="ignore")  # WordPiece marks no punctuation
                is_punctuation = text != b"" and all(unicodedata.category(sign)[0] == "P" for sign in signs)
                begin.append(text != b"" and not is_piece)
                go_on.append(is_piece or is_punctuation)
            else:
                is_piece, one_word = False, len(text.split()) == 1
                begin.append(one_word and text[:1] == b" ")
                go_on.append(one_word and not text[:1].isspace())
            self._texts.append(text.removeprefix(self._mark) if is_piece else text)
        self._begin: Flags = np.array(begin)
        self._go_on: Flags = np.array(go_on)

    def notes(self) -> Iterator[str]:
        """Yield what makes the model's predictions worse than need be."""
        return uncased_note(self._tokenizer)

    def fit(self, items: Iterable[Item]) -> None:
        """Learn how many tokens the answers have. Tokens of punctuation after words are in none."""
        words, after = learnt_answers(items)
        others = np.array([text.decode(errors="replace").strip(f" {after}") != "" for text in self._texts])
        self._begin, self._go_on = self._begin & others, self._go_on & others
        sizes = [min(len(self._spelt(word)), len(LENGTHS)) for word in words]
        total = len(sizes) + len(LENGTHS)
        self._shares = tuple((sizes.count(size) + 1) / total for size in range(1, len(LENGTHS) + 1))

    def words(self, left: str, right: str = "", candidates: Sequence[str] = ()) -> dict[str, float]:
        """Return the likeliest words between two texts and their probabilities; ``candidates`` are tried as well."""
        start = [self._tokenizer.cls_token_id, *ids_of(self._tokenizer, left)[-self._around :]]
        end = [*ids_of(self._tokenizer, right)[: self._around], self._tokenizer.sep_token_id]
        spelt = dict.fromkeys(map(self._spelt, candidates))
        shares: dict[str, float] = {}
        for size, share in enumerate(self._shares, 1):
            candidates_of_size = [tokens for tokens in spelt if len(tokens) == size]
            for tokens, probability in self._of_size(start, end, size, candidates_of_size):
                word = b"".join(self._texts[token] for token in tokens).strip().decode(errors="replace")
                if is_listable(word):
                    shares[word] = shares.get(word, 0.0) + share * probability
        return leaving_a_rest(likeliest(shares, self._count))

    def _spelt(self, word: str) -> Tokens:
        return tuple(ids_of(self._tokenizer, word if self._mark else f" {word}"))

    def _of_size(
        self, start: list[int], end: list[int], size: int, candidates: Sequence[Tokens]
    ) -> list[tuple[Tokens, float]]:
        """Return the likeliest words of so many tokens, and the candidates, with their probabilities among these."""
        beams: list[tuple[Tokens, float]] = [((), 1.0)]
        for place in range(size):
            masks = [self._tokenizer.mask_token_id] * (size - place)
            rows = [[*start, *tokens, *masks, *end] for tokens, _ in beams]
            grown: dict[Tokens, float] = {}
            most = self._count if place == size - 1 else BEAM
            wanted = {tokens[: place + 1] for tokens in candidates}
            with self._torch.inference_mode():
                ids = self._torch.tensor(rows, device=self._model.device)
                scores = self._model(input_ids=ids).logits[:, len(start) + place, : len(self._texts)]
            known: Iterable[Logits] = scores.float().cpu().numpy()
            for (tokens, so_far), logits in zip(beams, known, strict=True):
                flags = self._go_on if place else self._begin
                shares = np.where(flags, np.exp(logits - logits[flags].max()), 0.0).astype(np.float64)
                shares /= shares.sum()
                for token in np.argsort(-shares, kind="stable")[:most].tolist():
                    grown[*tokens, token] = so_far * float(shares[token])
                for path in wanted:
                    if path[:place] == tokens:
                        grown[path] = so_far * float(shares[path[-1]])
            chosen = sorted(grown, key=lambda path: (-grown[path], path))[:most]
            beams = [(path, grown[path]) for path in dict.fromkeys((*chosen, *sorted(wanted & grown.keys())))]
        return [(path, share) for path, share in beams if share > 0]
