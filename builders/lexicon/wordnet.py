"""WordNet 3.0's own files: senses, and the words at distance 1 of one.

Read only when the lexicon is rebuilt: ``make lexicon WORDNET=DIR``, see CONTRIBUTING.md. The format is that of
WordNet's manual page ``wndb(5WN)``. NLTK's reader needs more than Debian's files: the list ``lexnames``, which they
lack, and a second WordNet, downloaded, to map synsets to.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...toolkit.errors import ConflictVLAError, InvalidInputError, NotFoundError

FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "r": "data.adv"}
VERSION = "WordNet 3.0"
VERSION_LINE = "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved."

POINTERS = {"@": "hypernym", "~": "hyponym"}
"""Pointers that count as one step, and what the other synset is; instances (``@i``, ``~i``) do not occur here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synset:
    """One sense, with the words that have it.

    Attributes:
        id: Offset in the file and part of speech, such as ``02880940-n``.
        lemmas: Its words, in WordNet's order and spelling, with spaces.
        pointers: Relation (``hypernym`` or ``hyponym``) and id of each neighbour.
        gloss: WordNet's definition, without its examples.
    """

    id: str
    lemmas: tuple[str, ...]
    pointers: tuple[tuple[str, str], ...]
    gloss: str


class WordNet:
    """The four data files of one folder.

    Args:
        folder: Where ``data.noun``, ``data.verb``, ``data.adj`` and ``data.adv`` lie.

    Raises:
        NotFoundError: A file is missing.
        InvalidInputError: The files are not WordNet 3.0's.
    """

    def __init__(self, folder: Path) -> None:
        self._data: dict[str, bytes] = {}
        for part, name in FILES.items():
            try:
                self._data[part] = (folder / name).read_bytes()
            except OSError as error:
                raise NotFoundError(
                    f"{folder / name}: cannot be read ({error.strerror}); name {VERSION}'s folder"
                ) from error
        self.licence = "\n".join(_head(self._data["n"]))
        if VERSION_LINE not in self.licence:
            raise InvalidInputError(f"{folder}: these are not the files of {VERSION}")

    def synset(self, synset_id: str) -> Synset:
        """One sense by its id.

        Raises:
            NotFoundError: There is none.
        """
        offset, _, part = synset_id.partition("-")
        data = self._data.get(part, b"")
        start = int(offset) if offset.isdigit() else len(data)
        line = data[start:].partition(b"\n")[0].decode("utf-8")
        if not line.startswith(f"{offset} "):
            raise NotFoundError(f"{VERSION} has no synset {synset_id}")
        body, _, gloss = line.partition(" | ")
        fields = body.split()
        words, rest = int(fields[3], 16), 4 + 2 * int(fields[3], 16)
        pointers = [fields[at : at + 4] for at in range(rest + 1, rest + 1 + 4 * int(fields[rest]), 4)]
        return Synset(
            id=synset_id,
            lemmas=tuple(_spelling(lemma) for lemma in fields[4 : 4 + 2 * words : 2]),
            pointers=tuple((POINTERS[kind], f"{to}-{of}") for kind, to, of, _ in pointers if kind in POINTERS),
            gloss=gloss.partition('; "')[0].strip(),
        )

    def neighbours(self, synset_id: str) -> Iterator[tuple[str, str, Synset]]:
        """Lemma, relation and synset of every word at distance 1: in the synset itself, or directly above or below."""
        own = self.synset(synset_id)
        for lemma in own.lemmas:
            yield lemma, "synonym", own
        for relation, other in own.pointers:
            synset = self.synset(other)
            for lemma in synset.lemmas:
                yield lemma, relation, synset


def _head(data: bytes) -> Iterator[str]:
    """The numbered lines before the entries: WordNet's licence."""
    for line in data.split(b"\n"):
        if not line.startswith(b"  "):
            return
        yield re.sub(r"^ *\d+ ", "", line.decode("utf-8")).rstrip()


def _spelling(lemma: str) -> str:
    """Without the underscores, and without the marker that an adjective carries, as in ``center(a)``."""
    return re.sub(r"\([a-z]+\)$", "", lemma).replace("_", " ")


def build_lexicon(choices: dict[str, Any], wordnet: WordNet) -> dict[str, Any]:
    """The lexicon: every chosen substitute with its relation to the word and both synsets.

    Args:
        choices: What ``choices.json`` holds.
        wordnet: Where each choice is looked up.

    Raises:
        InvalidInputError: A choice is not at distance 1 of the sense that it names, or stands for two words.
    """
    words: dict[str, Any] = {}
    glosses: dict[str, str] = {}
    for word, entry in choices["words"].items():
        offers = [_offer(word, offer, wordnet) for offer in entry["offers"]]
        words[word] = {"part": entry["part"], "substitutes": offers}
        for offer in offers:
            for synset_id in (offer["sense"], offer["synset"]):
                glosses[synset_id] = wordnet.synset(synset_id).gloss
    _check_unambiguous(words)
    return {
        "schema_version": choices["schema_version"],
        "source": VERSION,
        "licence": wordnet.licence,
        "glosses": dict(sorted(glosses.items())),
        "words": words,
    }


def _offer(word: str, offer: dict[str, Any], wordnet: WordNet) -> dict[str, Any]:
    of, lemma = offer.get("of", word), offer.get("lemma", offer["say"]).replace("_", " ")
    if of not in wordnet.synset(offer["sense"]).lemmas:
        raise InvalidInputError(f"choices.json: '{of}' has no sense {offer['sense']}")
    for found, relation, synset in wordnet.neighbours(offer["sense"]):
        if found.lower() == lemma:
            return {
                "say": offer["say"],
                "relation": relation,
                "sense": offer["sense"],
                "synset": synset.id,
                **({"of": of} if of != word else {}),
                **({"lemma": lemma} if lemma != offer["say"] else {}),
                **{key: offer[key] for key in ("names", "why") if key in offer},
            }
    raise InvalidInputError(f"choices.json: '{lemma}' is not at distance 1 of {of} ({offer['sense']})")


def _check_unambiguous(words: dict[str, Any]) -> None:
    """A reader must know from the substitute alone which noun it stands for."""
    stands_for: dict[str, str] = {word: word for word, entry in words.items() if entry["part"] == "noun"}
    for word, entry in words.items():
        for offer in entry["substitutes"] if entry["part"] == "noun" else ():
            other = stands_for.setdefault(offer["say"], word)
            if other != word:
                raise InvalidInputError(f"choices.json: '{offer['say']}' stands for '{word}' and for '{other}'")


def as_text(lexicon: dict[str, Any]) -> str:
    """The lexicon as its file holds it: a substitute a line."""
    glosses = ",\n".join(f"  {_json(key)}: {_json(gloss)}" for key, gloss in lexicon["glosses"].items())
    words = ",\n".join(_word_text(word, entry) for word, entry in lexicon["words"].items())
    head = "".join(f" {_json(key)}: {_json(lexicon[key])},\n" for key in ("schema_version", "source", "licence"))
    return f'{{\n{head} "glosses": {{\n{glosses}\n }},\n "words": {{\n{words}\n }}\n}}\n'


def _word_text(word: str, entry: dict[str, Any]) -> str:
    offers = ",".join(f"\n    {_json(offer)}" for offer in entry["substitutes"])
    return f'  {_json(word)}: {{"part": {_json(entry["part"])}, "substitutes": [{offers}]}}'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Print the lexicon made of the choices beside this file and the WordNet folder named on the command line."""
    choices = json.loads(Path(__file__).with_name("choices.json").read_text(encoding="utf-8"))
    try:
        sys.stdout.write(as_text(build_lexicon(choices, WordNet(Path(sys.argv[1])))))
    except ConflictVLAError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
