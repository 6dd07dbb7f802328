"""Two policies side by side: paired by case, prompt and initial state, whatever else either was rolled out on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conflictvla.eval.scores.comparison import compare_policies, comparison_table, load_scores
from conflictvla.eval.scores.scores import score
from conflictvla.toolkit.errors import InvalidInputError
from conflictvla.toolkit.records import Arm, Prompt

from ..in_process import conflictvla
from ..synthetic_rollouts import small_evaluation, write_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run")
    write_dataset(root / "persist", small_evaluation("persist", reach=0.9))
    write_dataset(root / "stop", small_evaluation("stop", reach=0.0, prompts=[Prompt.P0])[:-5])
    return root


def test_differences_are_second_minus_first_on_shared_pairs(folder: Path) -> None:
    found = compare_policies(score(folder / "persist"), score(folder / "stop"))
    assert (found.a, found.b) == ("persist", "stop")
    # The last base task and initial state (4 pairs) and all of P1 (24) are on one side alone.
    assert (found.only_a, found.only_b) == (28, 0)
    rows = {row["measure"]: row for row in found.table.to_pylist()}
    assert set(found.table["prompt"].to_pylist()) == {"P0"}
    assert (rows["TAR"]["n"], rows["TAR"]["b"]) == (20, pytest.approx(0.0))
    assert rows["TAR"]["difference"] == pytest.approx(-0.75 * 0.9, abs=1e-5)
    assert rows["PCSR"]["difference"] == 0.0
    assert (rows["PCSR"]["difference_lo"], rows["PCSR"]["p"]) == (0.0, 1.0)
    # Three base tasks: the least that a sign-flip test can say is 2 / 8.
    assert rows["TAR"]["p"] == 0.25


def test_the_other_way_round_it_is_the_negative(folder: Path) -> None:
    a, b = score(folder / "persist"), score(folder / "stop")
    there, back = (compare_policies(*sides).table.to_pylist() for sides in ((a, b), (b, a)))
    for one, other in zip(there, back, strict=True):
        assert one["difference"] == pytest.approx(-other["difference"], abs=1e-12)
        assert one["difference_lo"] == pytest.approx(-other["difference_hi"], abs=1e-9)
        assert one["p"] == other["p"]


def test_a_policy_with_itself_differs_in_nothing(folder: Path) -> None:
    scores = score(folder / "persist")
    found = compare_policies(scores, scores)
    assert set(found.table["difference"].to_pylist()) == {0.0}
    assert found.table.num_rows == 2 * 9


def test_costs_are_compared_where_both_sides_recorded_them(tmp_path: Path) -> None:
    sides = []
    for policy, cost in (("careless", 48.0), ("careful", 0.0)):
        rollouts = small_evaluation(policy, prompts=[Prompt.P0])
        paid = [replace(r, episode=replace(r.episode, cost=cost, cost_amounts=(cost,))) for r in rollouts]
        sides.append(score(write_dataset(tmp_path / policy, paid)))
    found = compare_policies(*sides)
    (row,) = (row for row in found.table.to_pylist() if row["measure"] == "CC")
    assert (row["a"], row["b"], row["difference"], row["n"]) == (48.0, 0.0, -48.0, 24)
    assert ("P0", "CC", "48.0", "0.0") in [row[:4] for row in comparison_table(found).rows]


def test_failure_rates_are_over_each_policys_own_qualified_pairs(tmp_path: Path) -> None:
    rollouts = small_evaluation("able", prompts=[Prompt.P0])
    weak = [
        replace(rollout, episode=replace(rollout.episode, policy_name="weak", rollout_id=f"w{number}"))
        for number, rollout in enumerate(rollouts)
    ]
    # The weak policy cannot do the first base task from its first initial state: its 4 pairs leave D_Q.
    assert weak[0].episode.success
    weak[0] = replace(weak[0], episode=replace(weak[0].episode, success=False, success_step=None, end="horizon"))
    sides = [score(write_dataset(tmp_path / name, part)) for name, part in (("able", rollouts), ("weak", weak))]
    (row,) = (row for row in compare_policies(*sides).table.to_pylist() if row["measure"] == "FR")
    # Able: 20 qualified pairs, of which 3 conflicts succeed. Weak: 16, of which 2 do.
    assert (row["a"], row["b"], row["n"]) == (pytest.approx(17 / 20), pytest.approx(14 / 16), 20)
    assert row["difference"] == pytest.approx(14 / 16 - 17 / 20)
    # The policies differ in one base task alone, and swapping its sides changes the sign of the difference alone.
    assert row["p"] == 1.0
    assert [sides[0].table("overall")["FR"][0].as_py(), sides[1].table("overall")["FR"][0].as_py()] == [
        row["a"],
        row["b"],
    ]


def test_a_side_with_several_policies_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="A holds persist, stop: give its own folder"):
        compare_policies(score(folder), score(folder / "stop"))


@pytest.mark.parametrize(
    ("arm", "why"),
    [
        (Arm.REFERENCE, "references alone show plain success, see  conflictvla score; run conflicts too"),
        (Arm.CONFLICT, "all are refused; conflictvla score --strict  lists why"),
    ],
)
def test_a_side_without_pairs_is_named_with_the_reason(folder: Path, tmp_path: Path, arm: Arm, why: str) -> None:
    half = [rollout for rollout in small_evaluation("half") if rollout.episode.arm is arm]
    alone = score(write_dataset(tmp_path / "half", half))
    other = score(folder / "stop")
    for side, scores in (("A", (alone, other)), ("B", (other, alone))):
        with pytest.raises(InvalidInputError) as refused:
            compare_policies(*scores)
        assert str(refused.value) == f"a comparison is over pairs, and {side} has none: {why}"


def test_policies_without_a_shared_pair_are_refused(folder: Path, tmp_path: Path) -> None:
    other = score(write_dataset(tmp_path / "other", small_evaluation("other", prompts=[Prompt.P1])))
    with pytest.raises(InvalidInputError, match="stop and other share no case"):
        compare_policies(score(folder / "stop"), other)


def test_scores_files_are_compared_as_rollouts_are(folder: Path, tmp_path: Path) -> None:
    file = score(folder / "stop").write(tmp_path / "stop.json")
    found = compare_policies(score(folder / "persist"), load_scores(file))
    assert found.table.equals(compare_policies(score(folder / "persist"), score(folder / "stop")).table)
    text = comparison_table(found)
    assert text.header[2:5] == ("A", "B", "B − A")
    assert "28 of A, 0 of B" in text.note


def test_the_command_prints_both_sides(folder: Path) -> None:
    sides = (folder / "persist", folder / "stop")
    assert "A: persist, B: stop" in conflictvla("compare", *sides).stdout
    rows = json.loads(conflictvla("compare", *sides, "--json").stdout)
    assert [row["measure"] for row in rows] == ["PCSR", "RGSR", "dSR", "FR", "TAR", "TS", "Early20_TS", "AMS", "CC"]
