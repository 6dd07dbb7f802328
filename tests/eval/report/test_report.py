"""The report: one file that needs nothing else, safe whatever the data holds, the same bytes each time."""

from __future__ import annotations

import base64
import json
import re
import struct
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.eval.analyses.registry import analyses
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.video_files import video_path
from conflictvla.eval.report import write_figures, write_picture, write_report, write_tables
from conflictvla.eval.report.chosen_pair import FALLBACK_RULE, LAST_RULE, RULE, choose_pair
from conflictvla.eval.report.figures.picture import outcome_panels
from conflictvla.eval.report.figures.plot import Plot, nice_ticks, spread
from conflictvla.eval.report.figures.png import write_png
from conflictvla.eval.report.page.key_result import key_result
from conflictvla.eval.report.page.page import render_report
from conflictvla.eval.report.page.pairs import script_json
from conflictvla.eval.scores.scores import Scores, score
from conflictvla.toolkit.errors import DatasetError, NotFoundError
from conflictvla.toolkit.records import PROTOCOL_VERSION, Arm, Prompt

from ..in_process import conflictvla
from ..synthetic_rollouts import (
    make_record,
    reaching_rollout,
    sha256,
    small_evaluation,
    write_dataset,
    write_two_policies,
)

ATTACK = """<script>alert("x")</script>'"><img src=x onerror=alert(1)>&amp;{{ 7 * 7 }}</script><!--"""


class Elements(HTMLParser):
    """Collects the page's elements, their attributes and its text, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_two_policies(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def scores(folder: Path) -> Scores:
    return score(folder)


@pytest.fixture(scope="module")
def page(scores: Scores, folder: Path) -> str:
    return render_report(scores, folder)


def pair_of(*, reach: float, reference_reach: float = 1.0, reference_success: bool = True) -> list[Rollout]:
    rng = np.random.default_rng(0)
    reference = make_record(success=reference_success, steps=30)
    return [
        reaching_rollout(reference, rng, steps=30, reach=reference_reach),
        reaching_rollout(make_record(arm=Arm.CONFLICT), rng, steps=40, reach=reach),
    ]


def page_of(folder: Path, rollouts: list[Rollout]) -> str:
    write_dataset(folder, rollouts)
    return render_report(score(folder), folder)


def test_the_page_asks_nothing_of_the_network(page: str) -> None:
    assert re.findall(r"https?://|//cdn|@import|url\(", page) == []
    for tag, attributes in Elements(page).found:
        assert "src" not in attributes
        if "href" in attributes:
            assert attributes["href"] == "data:,"
        assert tag not in ("iframe", "object", "embed", "img")


def test_text_from_the_data_stays_text(tmp_path: Path) -> None:
    reference, conflict = pair_of(reach=0.8)
    refused = make_record(arm=Arm.CONFLICT, case=5, mujoco_version=ATTACK, policy=ATTACK)
    rollouts = [
        replace(made, episode=replace(made.episode, **changes))
        for made, changes in (
            (reference, {"instruction": ATTACK, "targets": (ATTACK,)}),
            (
                conflict,
                {"instruction": ATTACK, "targets": (ATTACK,), "prompt_text": ATTACK, "prompt_sha256": sha256(ATTACK)},
            ),
            (reaching_rollout(refused, np.random.default_rng(0)), {}),
            (reference, {"policy_name": ATTACK, "rollout_id": ATTACK}),
        )
    ]
    page = page_of(tmp_path / "a", rollouts)
    elements = Elements(page)
    # The page's own two script elements, and nothing that the data brought.
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert all("onerror" not in attributes for _, attributes in elements.found)
    assert "img" not in {tag for tag, _ in elements.found}
    assert ATTACK in "".join(elements.text)


def test_data_inside_the_script_element_cannot_end_it() -> None:
    written = script_json({"instruction": ATTACK})
    assert "<" not in written
    assert json.loads(str(written)) == {"instruction": ATTACK}


def test_the_same_scores_give_the_same_bytes(scores: Scores, folder: Path, tmp_path: Path) -> None:
    paths = [
        write_report(scores, given, tmp_path / name)
        for given, name in ((folder, "a.html"), (read_rollouts(folder), "b.html"))
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.html", "b.html"]
    assert str(folder).encode() not in paths[0].read_bytes()


def test_the_page_has_its_parts(page: str) -> None:
    sections = [attributes["id"] for tag, attributes in Elements(page).found if tag == "section"]
    assert sections == ["overall", "picture", "families", "failures", "prompt", "pair", "pairs", "method"]
    text = " ".join("".join(Elements(page).text).split())
    for words in (
        "With invalid premises all 2 policies still reach the reference goal in 12.5% of rollouts",
        "96 pairs from 120 rollouts (24 with valid premises, 96 with a conflict)",
        f"protocol {PROTOCOL_VERSION}",
        "Every conflict rollout has its reference rollout; none was refused.",
        "83.3",
        RULE,
    ):
        assert words in text


def test_every_plot_is_well_formed_and_names_itself(page: str) -> None:
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    # Three panels, four by family, four by level, three distributions, the curve, then two maps, one figure of the
    # prompt and two of the pair.
    assert len(plots) == 3 + 4 + 4 + 3 + 1 + 2 + 1 + 2
    for plot in plots:
        root = ElementTree.fromstring(plot)
        title = root.find("title")
        assert title is not None
        assert title.text
        assert "nan" not in plot.lower().replace("nance", "")


def test_the_list_of_pairs_holds_every_pair(page: str, scores: Scores) -> None:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    columns = json.loads(data)
    assert len(columns["TAR"]["rows"]) == scores.pairs.num_rows
    texts = [columns["instruction"]["texts"][index] for index in columns["instruction"]["rows"]]
    assert texts == scores.pairs["instruction"].to_pylist()
    assert columns["AMS"]["rows"][0] == round(1000 * scores.pairs["AMS"][0].as_py())


def test_the_clearest_failed_persistence_is_shown(scores: Scores) -> None:
    chosen = choose_pair(scores.pairs)
    assert chosen is not None
    assert chosen.rule == RULE
    assert chosen.policy == "persist"
    assert chosen.reference_success
    assert not chosen.conflict_success


def test_without_a_qualified_failure_another_pair_is_shown(tmp_path: Path) -> None:
    page = page_of(tmp_path / "a", pair_of(reach=0.8, reference_success=False))
    assert FALLBACK_RULE in page
    assert "no qualified failure" in page


def test_without_a_defined_approach_the_first_pair_is_shown(tmp_path: Path) -> None:
    page = page_of(tmp_path / "a", pair_of(reach=0.8, reference_reach=0.01))
    assert LAST_RULE in page
    assert "TAR is undefined for 1 pair" in page


def test_two_arms_that_never_move_can_be_drawn(tmp_path: Path) -> None:
    rollouts = pair_of(reach=0.0, reference_reach=0.0)
    for rollout in rollouts:
        rollout.frames["action"][:] = 0.0
    assert "<svg" in page_of(tmp_path / "a", rollouts)


def test_nothing_but_refusals_still_makes_a_page(tmp_path: Path) -> None:
    page = page_of(tmp_path / "a", pair_of(reach=0.5)[1:])
    assert "No pair could be scored" in page
    assert "no reference rollout" in page


def test_one_policy_is_named_in_the_key_result(tmp_path: Path) -> None:
    found = key_result(score(write_dataset(tmp_path / "a", small_evaluation(prompts=[Prompt.P0]))))
    assert found.outcome == (
        "With invalid premises persist still reaches the reference goal in 12.5% of rollouts, "
        "against 83.3% with valid ones"
    )
    assert "its gripper still covers 56.5% (persist) of the reference rollout's approach" in found.process


def test_the_extremes_of_several_policies_are_named_in_the_key_result(tmp_path: Path) -> None:
    never = [
        replace(made, episode=replace(made.episode, success=False, success_step=None, end="horizon"))
        for made in small_evaluation("never", reach=0.1)
        if made.episode.arm is Arm.CONFLICT
    ]
    references = [made for made in small_evaluation("never") if made.episode.arm is Arm.REFERENCE]
    write_dataset(tmp_path / "never", [*references, *never])
    write_dataset(tmp_path / "persist", small_evaluation())
    found = key_result(score(tmp_path))
    assert found.outcome.endswith("is still reached in 0.0% (never) to 12.5% (persist) of rollouts")
    assert "covers 7.5% (never) to 56.5% (persist)" in found.process


def test_rollouts_that_were_not_scored_are_refused(scores: Scores, tmp_path: Path) -> None:
    other = write_dataset(tmp_path / "other", small_evaluation("other"))
    with pytest.raises(DatasetError, match="give those that were scored"):
        write_report(scores, other, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_names_on_a_plot_are_moved_apart() -> None:
    moved = spread([10.0, 11.0, 50.0], 12.0)
    assert moved[1] - moved[0] == pytest.approx(12.0)
    assert sum(moved[:2]) == pytest.approx(21.0)
    assert moved[2] == 50.0


@pytest.mark.parametrize(
    ("low", "high", "ticks"), [(0, 1, [0, 0.5, 1]), (-0.07, 0.26, [0, 0.1, 0.2]), (0, 15, [0, 5, 10, 15])]
)
def test_ticks_are_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high, most=4) == ticks


def test_the_picture_is_one_svg_file_that_needs_nothing_else(scores: Scores, tmp_path: Path) -> None:
    paths = [write_picture(scores, tmp_path / "figures" / name) for name in ("a.svg", "b.svg")]
    text = paths[0].read_text(encoding="utf-8")
    assert text.encode() == paths[1].read_bytes()
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert [panel.tag for panel in root].count(root.tag) == 3
    assert re.findall(r"url\(|href|<style|class=\"(?!plot)|nan", text) == []
    assert "font-family" in root.attrib
    # What lies behind is white, so that the ink also reads on a dark page.
    assert root[1].attrib["fill"] == "white"


def test_names_of_policies_keep_clear_of_the_corner_words(scores: Scores) -> None:
    (panel,) = [panel for panel in outcome_panels(scores) if "target approach" in panel.title]
    root = ElementTree.fromstring(panel.render())
    heights = {element.text: float(element.attrib["y"]) for element in root.iter("text") if element.text}
    assert heights["stays away"] - heights["stop"] >= 13


def test_many_policies_have_a_legend_in_the_picture(tmp_path: Path) -> None:
    for number in range(6):
        write_dataset(tmp_path / f"{number}", small_evaluation(f"policy {number}", prompts=[Prompt.P0]))
    text = write_picture(score(tmp_path), tmp_path / "a.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert [element.text for element in root if element.text and element.text.startswith("policy")] == [
        f"policy {number}" for number in range(6)
    ]


def test_few_base_tasks_are_named(page: str) -> None:
    text = " ".join("".join(Elements(page).text).split())
    assert "Fewer than ten base tasks: persist 3" in text


def test_supplementary_tables_are_on_the_page_where_they_were_taken(folder: Path, page: str) -> None:
    assert 'id="further"' not in page
    with_them = render_report(score(folder, supplementary=True), folder)
    text = " ".join("".join(Elements(with_them).text).split())
    for words in (
        "Supplementary measures",
        "Approach, contact and grasp",
        "Noise floor",
        "Behaviour of successful rollouts",
        "mean Cartesian jerk",
    ):
        assert words in text


def test_tables_are_written_in_four_formats_that_agree(scores: Scores, tmp_path: Path) -> None:
    files = write_tables(scores, tmp_path / "tables")
    assert {file.suffix for file in files} == {".md", ".tex", ".csv", ".json"}
    table = scores.table("family")
    rows = json.loads((tmp_path / "tables/family.json").read_text())["rows"]
    assert rows == [{k: None if v != v else v for k, v in row.items()} for row in table.to_pylist()]
    lines = (tmp_path / "tables/family.csv").read_text().splitlines()
    assert lines[0].split(",")[:4] == ['"policy"', '"prompt"', '"family"', '"PCSR"']
    assert len(lines) == table.num_rows + 1
    assert float(lines[1].split(",")[3]) == table["PCSR"][0].as_py()
    assert "\\underline{0.0} (0.0--0.0)" in (tmp_path / "tables/overall.tex").read_text()
    assert "| **0.0** (0.0–0.0) |" in (tmp_path / "tables/overall.md").read_text()
    overall = json.loads((tmp_path / "tables/overall.json").read_text())
    assert [1, "TAR", "best"] in overall["marks"]
    assert overall["means"][0]["policy"] == "mean of 2 policies"


def test_figures_are_written_as_svg_and_png(scores: Scores, tmp_path: Path) -> None:
    files = write_figures(scores, tmp_path / "a")
    again = write_figures(scores, tmp_path / "b")
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]
    assert {file.stem for file in files if file.suffix == ".svg"} == {
        file.stem for file in files if file.suffix == ".png"
    }
    assert {"outcome-1", "failures-tar", "level-rgsr", "prompt-P1", "failed-persistence"} <= {f.stem for f in files}
    for file in files:
        if file.suffix == ".svg":
            ElementTree.fromstring(file.read_text(encoding="utf-8"))
        else:
            width, height = struct.unpack(">II", file.read_bytes()[16:24])
            svg = ElementTree.fromstring(file.with_suffix(".svg").read_text(encoding="utf-8"))
            assert [width, height] == pytest.approx([3 * float(svg.attrib[n]) for n in ("width", "height")], abs=2)


def test_a_png_shows_what_the_svg_says(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    plot = Plot(width=100, height=50, x_range=(0, 1), y_range=(0, 1), margin=(0, 0, 0, 0), title="t")
    plot.element("rect", x=0, y=0, width=50, height=50, fill="#ff0000")
    plot.mark((0.75, 0.5), "circle", 10, "a disc", fill="#0000ff")
    write_png(plot, tmp_path / "a.png")
    pixels = image.imread(tmp_path / "a.png")
    assert pixels.shape[:2] == (150, 300)
    assert pixels[75, 60, :3].tolist() == [1.0, 0.0, 0.0]
    assert pixels[75, 225, :3].tolist() == [0.0, 0.0, 1.0]
    assert pixels[10, 290, :3].tolist() == [1.0, 1.0, 1.0]


def tables_with_rows(folder: Path) -> set[str]:
    """Those of the registry's tables that a report of a folder has and that are not empty."""
    scores = score(folder, supplementary=True)
    listed = [one for one in analyses() if one in scores.analyses() and not (one.probes and not scores.probed.num_rows)]
    return {one.slug for one in listed if scores.table(one.name).num_rows}


@pytest.mark.parametrize("arms", [{Arm.REFERENCE}, {Arm.REFERENCE, Arm.CONFLICT}])
def test_tables_without_rows_are_not_written(arms: set[Arm], tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "run", [r for r in small_evaluation() if r.episode.arm in arms])
    done = conflictvla("report", folder, "--out", tmp_path / "report.html", "--tables", tmp_path / "tables")
    assert done.returncode == 0, done.stderr
    written = sorted((tmp_path / "tables").iterdir())
    assert {file.stem for file in written} == tables_with_rows(folder)
    assert f"{tmp_path / 'tables'}  {len(written)} files" in done.stdout.splitlines()
    assert all(json.loads(file.read_text())["rows"] for file in written if file.suffix == ".json")


def test_the_command_writes_report_picture_tables_and_figures(folder: Path, tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("report.html", "picture.svg", "tables", "figures")}
    options = ("--out", "--picture", "--tables", "--figures")
    arguments = [part for option, place in zip(options, places.values(), strict=True) for part in (option, place)]
    done = conflictvla("report", folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert 'id="further"' in places["report.html"].read_text(encoding="utf-8")
    assert f"{places['tables']}  {4 * len(tables_with_rows(folder))} files" in done.stdout.splitlines()
    assert (places["figures"] / "level-tar.png").is_file()


def test_videos_of_the_pair_shown_are_put_into_the_page(scores: Scores, folder: Path, tmp_path: Path) -> None:
    chosen = choose_pair(scores.pairs)
    assert chosen is not None
    for arm, rollout_id in (("reference", chosen.reference_rollout), ("conflict", chosen.conflict_rollout)):
        video_path(tmp_path, rollout_id, "agentview").write_bytes(f"{arm} film".encode())
    videos = [
        dict(attrs) for tag, attrs in Elements(render_report(scores, folder, videos=tmp_path)).found if tag == "video"
    ]
    contents = [base64.b64decode(str(video["src"]).removeprefix("data:video/mp4;base64,")) for video in videos]
    assert contents == [b"reference film", b"conflict film"]


def test_a_missing_video_is_named_with_the_command_that_makes_it(scores: Scores, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="conflictvla render ROLLOUTS --rollout"):
        render_report(scores, folder, videos=tmp_path)
