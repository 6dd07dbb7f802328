"""The lexicon is what WordNet says, and every substitute can be told apart from every other word."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from conflictvla.builders.lexicon.wordnet import VERSION_LINE, WordNet, as_text, build_lexicon
from conflictvla.toolkit.errors import InvalidInputError, NotFoundError
from conflictvla.toolkit.language.lexicon import Part, WordRelation, load_lexicon, widened_vocabulary
from conflictvla.toolkit.language.vocabulary import load_vocabulary

DEBIAN = Path(os.environ.get("WORDNET", "/usr/share/wordnet"))
CHOICES = resources.files("conflictvla.builders.lexicon").joinpath("choices.json")
LEXICON = resources.files("conflictvla.toolkit.language").joinpath("lexicon.json")
SYNSETS = {
    "dish": ("n", ["dish"], "a container for food"),
    "bowl": ("n", ["bowl"], 'a dish that is round; "a wooden bowl"'),
    "soup": ("n", ["soup_bowl"], "a bowl for soup"),
    "center": ("a", ["center(a)", "middle(a)"], "equally distant"),
}
UP_AND_DOWN = [("bowl", "@", "dish"), ("bowl", "~", "soup"), ("bowl", "+", "center")]


@pytest.fixture
def wordnet(tmp_path: Path) -> tuple[WordNet, dict[str, str]]:
    """A WordNet of four synsets in WordNet's own format, and their ids."""
    head = f"  1 Some licence  \n  2 {VERSION_LINE}  \n".encode()
    ids: dict[str, str] = {}
    for _ in range(2):  # offsets are of one width, so that the second time they are right
        texts = dict.fromkeys("nvar", head)
        for name, (part, lemmas, gloss) in SYNSETS.items():
            offset = f"{len(texts[part]):08d}"
            ids[name] = f"{offset}-{part}"
            words = " ".join(f"{lemma} 0" for lemma in lemmas)
            pointers = [
                f"{kind} {ids.get(to, '00000000-n')[:8]} {ids.get(to, '00000000-n')[-1]} 0000"
                for of, kind, to in UP_AND_DOWN if of == name
            ]  # fmt: skip
            fields = [offset, "06", part, f"{len(lemmas):02x}", words, f"{len(pointers):03d}", *pointers]
            texts[part] += f"{' '.join(fields)} | {gloss}  \n".encode()
    for part, file in (("n", "noun"), ("v", "verb"), ("a", "adj"), ("r", "adv")):
        (tmp_path / f"data.{file}").write_bytes(texts[part])
    return WordNet(tmp_path), ids


def _choices(word: str, *offers: dict[str, Any]) -> dict[str, Any]:
    return {"schema_version": "1.0", "words": {word: {"part": "noun", "offers": list(offers)}}}


@pytest.mark.skipif(not (DEBIAN / "data.noun").is_file(), reason="WordNet 3.0 is not installed (WORDNET=DIR names it)")
def test_shipped_lexicon_is_exactly_what_wordnet_gives() -> None:
    choices = json.loads(CHOICES.read_text(encoding="utf-8"))

    assert as_text(build_lexicon(choices, WordNet(DEBIAN))) == LEXICON.read_text(encoding="utf-8")


def test_neighbours_are_the_synset_and_what_is_directly_above_or_below(wordnet: tuple[WordNet, dict[str, str]]) -> None:
    found, ids = wordnet

    assert [(lemma, relation, synset.id) for lemma, relation, synset in found.neighbours(ids["bowl"])] == [
        ("bowl", "synonym", ids["bowl"]),
        ("dish", "hypernym", ids["dish"]),
        ("soup bowl", "hyponym", ids["soup"]),
    ]
    assert found.synset(ids["center"]).lemmas == ("center", "middle")
    assert found.synset(ids["bowl"]).gloss == "a dish that is round"
    assert VERSION_LINE in found.licence


def test_choice_comes_with_its_relation_and_both_synsets(wordnet: tuple[WordNet, dict[str, str]]) -> None:
    found, ids = wordnet
    lexicon = build_lexicon(_choices("bowl", {"say": "soup bowl", "sense": ids["bowl"], "why": "seen"}), found)

    (offer,) = lexicon["words"]["bowl"]["substitutes"]
    assert (offer["relation"], offer["sense"], offer["synset"]) == ("hyponym", ids["bowl"], ids["soup"])
    assert set(lexicon["glosses"]) == {ids["bowl"], ids["soup"]}
    assert json.loads(as_text(lexicon)) == lexicon


def test_choice_further_away_or_of_another_sense_is_refused(wordnet: tuple[WordNet, dict[str, str]]) -> None:
    found, ids = wordnet

    with pytest.raises(InvalidInputError, match="'middle' is not at distance 1 of bowl"):
        build_lexicon(_choices("bowl", {"say": "middle", "sense": ids["bowl"]}), found)
    with pytest.raises(InvalidInputError, match="'plate' has no sense"):
        build_lexicon(_choices("plate", {"say": "dish", "sense": ids["bowl"]}), found)
    with pytest.raises(NotFoundError, match="no synset 00000001-n"):
        build_lexicon(_choices("bowl", {"say": "dish", "sense": "00000001-n"}), found)


def test_two_words_cannot_share_a_substitute(wordnet: tuple[WordNet, dict[str, str]]) -> None:
    found, ids = wordnet
    both = _choices("bowl", {"say": "dish", "sense": ids["bowl"]})
    both["words"]["soup bowl"] = {
        "part": "noun",
        "offers": [{"say": "dish", "sense": ids["soup"], "lemma": "soup bowl"}],
    }

    with pytest.raises(InvalidInputError, match="'dish' stands for 'soup bowl' and for 'bowl'"):
        build_lexicon(both, found)


def test_folder_that_is_not_wordnet_3_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"data\.noun: cannot be read"):
        WordNet(tmp_path)
    for file in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{file}").write_text("  1 WordNet 9.9\n")
    with pytest.raises(InvalidInputError, match=r"not the files of WordNet 3\.0"):
        WordNet(tmp_path)


def test_every_noun_with_substitutes_is_one_that_cases_use() -> None:
    words = load_vocabulary()
    nouns = {noun for word in words.present.values() for noun in (word.noun, word.count_noun)} | set(words.absent)

    assert [word for part, word in load_lexicon().substitutes if part is Part.NOUN and word not in nouns] == []


def test_substitutes_name_things_of_the_vocabulary() -> None:
    categories = set(load_vocabulary().present)
    offered = [s for found in load_lexicon().substitutes.values() for s in found]

    assert [s.say for s in offered if s.names is not None and not s.names <= categories] == []
    assert {s.relation for s in offered} == set(WordRelation)
    assert all((s.sense == s.synset) == (s.relation is WordRelation.SYNONYM) for s in offered)


def test_widened_vocabulary_calls_everything_that_the_new_word_fits() -> None:
    words, widened = load_vocabulary(), widened_vocabulary()

    def called(noun: str) -> set[str]:
        return {category for category, word in widened.present.items() if noun in word.names}

    assert called("dinner plate") == {"plate"}
    assert called("dish") == {"akita_black_bowl", "plate", "glazed_rim_porcelain_ramekin"}
    assert {"wine_bottle", "ketchup"} <= called("bottle")
    assert widened.absent["eating apple"].names >= words.absent["apple"].names
    assert all(words.present[category].names <= widened.present[category].names for category in words.present)
