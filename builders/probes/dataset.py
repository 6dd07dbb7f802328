"""Language probes as a config of a task release, beside its own files, which stay as they are byte by byte."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from ...toolkit.errors import DatasetError
from ...toolkit.language.lexicon import LEXICON_VERSION
from ...toolkit.markdown import markdown_table
from ...toolkit.probes.substitution import Substitution
from ...toolkit.records import Arm, LanguageProbe, Prompt
from ..record_fields import field_values
from ..release_folder import new_release
from ..review.ledger import UNREVIEWED
from ..tasks_dataset.columns import CONFIGS, CONTROLS, PROBES, SPLIT, ProbeRow, SubstitutionRow
from ..tasks_dataset.reading import has_controls, load_lite_cases, packaged_tasks
from ..tasks_dataset.writing import instance_row, write_config
from .instances import LEVELS, PROBES_VERSION, ProbeInstance

CONFIG_BLOCK = f"""- config_name: {PROBES}
  data_files:
  - split: {SPLIT}
    path: {PROBES}/{SPLIT}.parquet
"""
TITLE = re.compile(r"^(# ConflictVLA tasks ).*$", re.MULTILINE)
HEADER_END = re.compile(r"^---$(?=\n\n# ConflictVLA tasks )", re.MULTILINE)
BEFORE = "\n## Licence"
SECTION = re.compile(rf"\n## Language probes\n.*?(?={BEFORE}\n)", re.DOTALL)


def write_probes(probes: Sequence[ProbeInstance], release: Path | None, out: Path) -> None:
    """Write a release with its probes to a new folder, atomically.

    Args:
        probes: The instances under probes.
        release: The release that they are of; the packaged one where it is None.
        out: The new folder.

    Raises:
        InvalidInputError: The folder exists and is not empty, or cannot be written.
        DatasetError: The release has no card that a section could be put into.
    """
    source = release or packaged_tasks()
    card = card_with_probes(_read_card(source / "README.md"), probes)
    with new_release(out) as aside:
        for config in (*CONFIGS, *([CONTROLS] if has_controls(source) else [])):
            shutil.copytree(source / config, aside / config)
        lite = load_lite_cases(source)
        write_config(PROBES, [_probe_row(probe, lite) for probe in probes], aside)
        (aside / "README.md").write_text(card, encoding="utf-8")


def _probe_row(probe: ProbeInstance, lite: frozenset[str]) -> ProbeRow:
    """The review of a case was of its own words: nobody has read it in these."""
    instance = probe.instance
    return ProbeRow(
        **field_values(instance_row(instance, UNREVIEWED, lite=instance.case_id is None or instance.case_id in lite)),
        substitutions=tuple(_substitution_row(one) for one in probe.substitutions),
        lexicon_version=LEXICON_VERSION,
    )


def _substitution_row(substitution: Substitution) -> SubstitutionRow:
    slot, substitute = substitution.slot, substitution.substitute
    return SubstitutionRow(
        slot=slot.role,
        word=slot.word,
        substitute=substitute.say,
        relation=str(substitute.relation),
        synset=substitute.sense,
        substitute_synset=substitute.synset,
    )


def _read_card(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{file}: cannot be read ({error!r:.80}); build the tasks again") from error


def card_with_probes(card: str, probes: Sequence[ProbeInstance]) -> str:
    """The card with the config in its header, its version in the title, and a section before the licence.

    Raises:
        DatasetError: It is not the card of a task release.
    """
    bare = SECTION.sub("", card.replace(CONFIG_BLOCK, ""))
    header, licence = HEADER_END.search(bare), bare.find(BEFORE)
    if header is None or licence < header.end():
        raise DatasetError("README.md: not the card of a task release; build the tasks again")
    template = resources.files("conflictvla.dataset_cards").joinpath("probes_section.md").read_text(encoding="utf-8")
    section = template.format(counts=_count_table(probes))
    extended = bare[: header.start()] + CONFIG_BLOCK + bare[header.start() : licence] + "\n" + section + bare[licence:]
    return TITLE.sub(rf"\g<1>{PROBES_VERSION}", extended, count=1)


def level_counts(probes: Sequence[ProbeInstance]) -> list[tuple[LanguageProbe, int, int]]:
    """How many references and how many cases each level has, a prompt condition apart."""
    alone = [probe.instance for probe in probes if probe.instance.prompt == Prompt.P0]
    counted = Counter((instance.language_probe, instance.arm) for instance in alone)
    return [(level, counted[level, Arm.REFERENCE], counted[level, Arm.CONFLICT]) for level in LEVELS]


def _count_table(probes: Sequence[ProbeInstance]) -> str:
    rows = [
        (level, words, references, cases)
        for words, (level, references, cases) in enumerate(level_counts(probes), start=1)
    ]
    return markdown_table(("level", "words replaced", "references", "cases"), rows)
