"""Reading rollout datasets: what is read is what was written, and every damage is one clear line."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conflictvla.builders.rollouts.episode_record import EPISODE_COLUMNS, OPTIONAL_COLUMNS
from conflictvla.builders.rollouts.schema import FRAME_FEATURES, OPTIONAL_FEATURES, Rollout
from conflictvla.eval.recordings.reading import SCORED_FEATURES, find_datasets, read_rollouts, read_rollouts_by_policy
from conflictvla.toolkit.errors import DatasetError
from conflictvla.toolkit.records import Arm

from ..synthetic_rollouts import (
    make_record,
    make_rollout,
    reaching_rollout,
    write_dataset,
    write_parquet,
)

EPISODES = "meta/episodes/chunk-000/file-000.parquet"
DATA = "data/chunk-000/file-000.parquet"


def two_rollouts(policy: str = "persist") -> list[Rollout]:
    rng = np.random.default_rng(5)
    reference = reaching_rollout(make_record(policy=policy), rng, steps=12)
    conflict = reaching_rollout(make_record(policy=policy, arm=Arm.CONFLICT), rng, steps=9)
    return [reference, conflict]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "persist", two_rollouts())


def refusal(path: Path) -> str:
    """The one line that reading a damaged dataset gives, without the machine's folder."""
    with pytest.raises(DatasetError) as caught:
        read_rollouts(path)
    message = str(caught.value)
    assert "\n" not in message
    return message


def change_column(file: Path, name: str, change: Callable[[list[Any]], list[Any]]) -> None:
    table = pq.read_table(file)
    index = table.column_names.index(name)
    values = pa.array(change(table[name].to_pylist()), table.schema.field(name).type)
    write_parquet(file, table.set_column(index, name, values))


def set_value(file: Path, name: str, row: int, value: object) -> None:
    change_column(file, name, lambda values: [*values[:row], value, *values[row + 1 :]])


def set_component(file: Path, name: str, row: int, part: int, value: float) -> None:
    def change(frames: list[list[float]]) -> list[list[float]]:
        frames[row][part] = value
        return frames

    change_column(file, name, change)


@pytest.mark.parametrize("fixed_size", [True, False], ids=["fixed-size lists", "variable lists"])
@pytest.mark.parametrize("rows_a_group", [None, 5], ids=["one row group", "many row groups"])
def test_what_is_read_is_what_was_written(tmp_path: Path, *, fixed_size: bool, rows_a_group: int | None) -> None:
    written = two_rollouts()
    folder = write_dataset(tmp_path / "a", written, fixed_size=fixed_size, rows_a_group=rows_a_group)
    read = read_rollouts(folder, features=tuple(FRAME_FEATURES))
    assert len(read) == 2
    assert read.lengths.tolist() == [12, 9]
    assert read.episodes.column_names == list(EPISODE_COLUMNS)
    for row, rollout in enumerate(written):
        for name, values in rollout.frames.items():
            assert np.array_equal(read.rollout_feature(name, row), values)
        assert read.episodes.to_pylist()[row]["rollout_id"] == rollout.episode.rollout_id
        assert read.final_eef_pos_m[row] == pytest.approx(rollout.episode.final_eef_pos_m)
        assert read.final_target_pos_m[row].ravel() == pytest.approx(rollout.episode.final_target_pos_m)
    assert read.target_count.tolist() == [1, 1]


def test_final_targets_may_be_given_for_the_used_slots_only(dataset: Path) -> None:
    before = read_rollouts(dataset)
    change_column(dataset / EPISODES, "final_target_pos_m", lambda rows: [row[:3] for row in rows])
    assert np.array_equal(read_rollouts(dataset).final_target_pos_m, before.final_target_pos_m)


def test_episodes_follow_their_frames_whatever_the_order_of_the_episode_rows(dataset: Path) -> None:
    before = read_rollouts(dataset)
    write_parquet(dataset / EPISODES, pq.read_table(dataset / EPISODES).take([1, 0]))
    after = read_rollouts(dataset)
    assert after.column("rollout_id").tolist() == before.column("rollout_id").tolist()


def test_several_files_are_one_dataset(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "a", two_rollouts())
    frames, episodes = pq.read_table(folder / DATA), pq.read_table(folder / EPISODES)
    write_parquet(folder / DATA, frames.slice(0, 12))
    write_parquet(folder / "data/chunk-000/file-001.parquet", frames.slice(12))
    write_parquet(folder / EPISODES, episodes.slice(0, 1))
    # A file of references alone has nothing but nulls in the conflicts' columns, hence a null type.
    reference = episodes.slice(0, 1)
    untyped = reference.set_column(reference.column_names.index("family"), "family", pa.nulls(1))
    write_parquet(folder / EPISODES, untyped)
    write_parquet(folder / "meta/episodes/chunk-000/file-001.parquet", episodes.slice(1))
    assert read_rollouts(folder).lengths.tolist() == [12, 9]


@pytest.mark.parametrize("given", ["", "rollouts", "rollouts/persist"])
def test_a_run_folder_its_rollouts_or_one_dataset_may_be_given(tmp_path: Path, given: str) -> None:
    write_dataset(tmp_path / "rollouts/persist", two_rollouts())
    write_dataset(tmp_path / "rollouts/stop", two_rollouts("stop"))
    (tmp_path / "rollouts/notes").mkdir()
    read = read_rollouts(tmp_path / given)
    assert len(read) == (2 if given.endswith("persist") else 4)


def test_datasets_are_found_at_any_depth(tmp_path: Path) -> None:
    """Also beside folders that are called data and meta, but not in hidden ones, nor through links."""
    first = write_dataset(tmp_path / "runs/data/mine/gpu0/rollouts/persist", two_rollouts())
    second = write_dataset(tmp_path / "runs/meta/stop", two_rollouts("stop"))
    write_dataset(tmp_path / "runs/.hidden/refuse", two_rollouts("refuse"))
    outside = write_dataset(tmp_path / "outside/fumble", two_rollouts("fumble"))
    (tmp_path / "runs/linked").symlink_to(outside.parent)
    assert find_datasets(tmp_path / "runs") == (first, second)
    assert len(read_rollouts(tmp_path / "runs")) == 4
    assert find_datasets(tmp_path / "runs/linked") == (tmp_path / "runs/linked/fumble",)  # given by its name
    (tmp_path / "links").mkdir()
    (tmp_path / "links/linked").symlink_to(outside.parent)
    assert "links to folders are not followed" in refusal(tmp_path / "links")


def test_policies_are_read_one_at_a_time_but_never_torn_apart(tmp_path: Path) -> None:
    reference, conflict = two_rollouts()
    write_dataset(tmp_path / "a", [reference])
    write_dataset(tmp_path / "b", two_rollouts("stop"))
    write_dataset(tmp_path / "c", [conflict])
    parts = {frozenset(part.column("policy_name")): len(part) for part in read_rollouts_by_policy(tmp_path)}
    assert parts == {frozenset({"persist"}): 2, frozenset({"stop"}): 2}


def test_digests_do_not_depend_on_the_order_of_rollouts(tmp_path: Path) -> None:
    forwards = read_rollouts(write_dataset(tmp_path / "a", two_rollouts()))
    backwards = read_rollouts(write_dataset(tmp_path / "b", two_rollouts()[::-1], fixed_size=False))
    assert forwards.digests(SCORED_FEATURES) == backwards.digests(SCORED_FEATURES)[::-1]


def test_rows_are_found_by_rollout_id(dataset: Path) -> None:
    read = read_rollouts(dataset)
    ids = read.column("rollout_id").tolist()
    assert read.rows_of([ids[1], ids[0]]).tolist() == [1, 0]
    with pytest.raises(DatasetError, match="'nobody' is not among these 2 rollouts"):
        read.rows_of([ids[0], "nobody"])


def test_a_feature_that_was_not_read_is_named(dataset: Path) -> None:
    with pytest.raises(DatasetError, match=re.escape("'observation.state' was not read")):
        read_rollouts(dataset).feature("observation.state")
    with pytest.raises(DatasetError, match=re.escape("no frame feature 'observation.image'")):
        read_rollouts(dataset, features=["observation.image"])


def test_no_such_folder(tmp_path: Path) -> None:
    assert "nothing_here: no such folder" in refusal(tmp_path / "nothing_here")


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text("{}")
    assert "is a file, not a folder" in refusal(tmp_path / "scores.json")


def test_a_folder_without_datasets(tmp_path: Path) -> None:
    assert "not a LeRobot dataset (no meta/info.json), nor does it contain one" in refusal(tmp_path)


def test_a_dataset_without_info(dataset: Path) -> None:
    (dataset / "meta/info.json").unlink()
    assert "meta/info.json is missing" in refusal(dataset)
    assert "left half written" in refusal(dataset.parent)
    assert find_datasets(write_dataset(dataset, two_rollouts())) == (dataset,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "unreadable"),
        ("[]", "unreadable"),
        ("{}", "'codebase_version' is missing"),
    ],
)
def test_damaged_info(dataset: Path, text: str, message: str) -> None:
    (dataset / "meta/info.json").write_text(text)
    assert message in refusal(dataset)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("codebase_version", "v2.1", "codebase_version is v2.1, not v3.x"),
        ("fps", 10, "fps is 10, but the protocol's control rate is 20"),
        ("total_episodes", 3, "total_episodes is 3, but meta/episodes holds 2"),
        ("total_frames", 40, "total_frames is 40, but data holds 21"),
    ],
)
def test_info_that_does_not_fit(dataset: Path, name: str, value: object, message: str) -> None:
    file = dataset / "meta/info.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), name: value}))
    assert message in refusal(dataset)


@pytest.mark.parametrize("file", [EPISODES, DATA])
def test_a_parquet_file_cut_short_before_its_footer(dataset: Path, file: str) -> None:
    content = (dataset / file).read_bytes()
    (dataset / file).write_bytes(content[: len(content) // 2])
    message = refusal(dataset)
    assert file in message
    assert "not a complete parquet file" in message


def test_damaged_pages_inside_a_file_with_a_footer(dataset: Path) -> None:
    content = bytearray((dataset / DATA).read_bytes())
    content[4:400] = b"\xff" * 396
    (dataset / DATA).write_bytes(content)
    assert f"{DATA}: damaged data pages" in refusal(dataset)


@pytest.mark.parametrize("part", ["meta/episodes", "data"])
def test_a_missing_part(dataset: Path, part: str) -> None:
    for file in (dataset / part).glob("**/*.parquet"):
        file.unlink()
    assert f"{part}: holds no parquet file" in refusal(dataset)


@pytest.mark.parametrize("name", ["length", *(name for name in EPISODE_COLUMNS if name not in OPTIONAL_COLUMNS)])
def test_a_missing_episode_column(dataset: Path, name: str) -> None:
    write_parquet(dataset / EPISODES, pq.read_table(dataset / EPISODES).drop_columns([name]))
    assert f"{EPISODES}: column '{name}' is missing" in refusal(dataset)


def test_a_recording_of_other_software_is_read_without_what_it_may_lack(dataset: Path) -> None:
    write_parquet(dataset / EPISODES, pq.read_table(dataset / EPISODES).drop_columns(list(OPTIONAL_COLUMNS)))
    write_parquet(dataset / DATA, pq.read_table(dataset / DATA).drop_columns(list(OPTIONAL_FEATURES)))
    read = read_rollouts(dataset, optional=OPTIONAL_FEATURES)
    assert list(read.frames) == list(SCORED_FEATURES)
    assert read.episodes.column_names == list(EPISODE_COLUMNS)
    for name, read_as in OPTIONAL_COLUMNS.items():
        assert read.episodes[name].to_pylist() == [read_as, read_as]


def test_objects_without_their_final_places(dataset: Path) -> None:
    write_parquet(dataset / EPISODES, pq.read_table(dataset / EPISODES).drop_columns(["final_object_pos_m"]))
    assert "field 'final_object_pos_m': 'None' contradicts the field 'objects'" in refusal(dataset)


@pytest.mark.parametrize("name", ["episode_index", "frame_index", *SCORED_FEATURES])
def test_a_missing_frame_column(dataset: Path, name: str) -> None:
    write_parquet(dataset / DATA, pq.read_table(dataset / DATA).drop_columns([name]))
    assert f"{DATA}: column '{name}' is missing" in refusal(dataset)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["action", "observation.eef_pos_m", "observation.target_pos_m"])
def test_a_frame_that_is_not_finite(dataset: Path, name: str, value: float) -> None:
    set_component(dataset / DATA, name, 14, 1, value)
    message = refusal(dataset)
    assert f"{DATA}: episode 1, frame 2, field '{name}'" in message
    assert "is not a finite number" in message


@pytest.mark.parametrize("value", [1.5, -1.001])
def test_an_action_outside_its_range(dataset: Path, value: float) -> None:
    set_component(dataset / DATA, "action", 3, 6, value)
    message = refusal(dataset)
    assert "episode 0, frame 3, field 'action', component gripper" in message
    assert "is outside [-1, 1]" in message


def test_an_episode_with_fewer_frames_than_its_length(dataset: Path) -> None:
    write_parquet(dataset / DATA, pq.read_table(dataset / DATA).slice(0, 20))
    assert "episode 1 has 8 frames, but its length in meta/episodes is 9" in refusal(dataset)


def test_an_episode_without_frames(dataset: Path) -> None:
    write_parquet(dataset / DATA, pq.read_table(dataset / DATA).slice(0, 12))
    assert "episode 1 has a row in meta/episodes but no frames" in refusal(dataset)


def test_frames_without_an_episode(dataset: Path) -> None:
    set_value(dataset / EPISODES, "episode_index", 1, 7)
    assert "episode 1 has frames but no row in meta/episodes" in refusal(dataset)


def test_an_episode_number_given_twice(dataset: Path) -> None:
    set_value(dataset / EPISODES, "episode_index", 1, 0)
    assert "field 'episode_index': '0' occurs twice" in refusal(dataset)


def test_frames_out_of_order(dataset: Path) -> None:
    order = [0, 2, 1, *range(3, 21)]
    write_parquet(dataset / DATA, pq.read_table(dataset / DATA).take(order))
    assert "episode 0, field 'frame_index': 2 where 1 should follow" in refusal(dataset)


def test_frames_that_are_not_contiguous(dataset: Path) -> None:
    order = [*range(6), *range(12, 21), *range(6, 12)]
    write_parquet(dataset / DATA, pq.read_table(dataset / DATA).take(order))
    assert "the frames of episode 0 are not contiguous" in refusal(dataset)


def test_a_frame_of_the_wrong_width(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "a", two_rollouts(), fixed_size=False)
    change_column(folder / DATA, "action", lambda frames: [frames[0][:5], *frames[1:]])
    assert "episode 0, field 'action'" in refusal(folder)


def test_a_frame_column_of_another_kind(dataset: Path) -> None:
    table = pq.read_table(dataset / DATA)
    index = table.column_names.index("action")
    write_parquet(dataset / DATA, table.set_column(index, "action", pa.array(["x"] * table.num_rows)))
    assert "column 'action' is string, not lists of 7 floats" in refusal(dataset)


@pytest.mark.parametrize("name", ["scene_sha256", "policy_name", "prompt_text", "final_eef_pos_m", "init_state"])
def test_an_empty_episode_field(dataset: Path, name: str) -> None:
    set_value(dataset / EPISODES, name, 1, None)
    message = refusal(dataset)
    assert "episode 1 (persist/libero_goal/put_the_bowl_on_the_plate" in message
    assert f"field '{name}': 'None' is empty" in message


@pytest.mark.parametrize(
    ("name", "row", "value", "rule"),
    [
        ("arm", 0, "base", "is none of reference, conflict, control"),
        ("prompt", 1, "my prompt", "is no name of a prompt condition"),
        ("family", 1, "lexical", "is none of instruction, grounding, spatial, physical"),
        ("level", 1, "L5", "is none of L1, L2, L3, L4"),
        ("end", 1, "crash", "is none of success, refused, horizon, policy_error"),
        ("end", 1, "success", "contradicts the field 'success'"),
        ("success_step", 1, 3, "contradicts the field 'success'"),
        ("clipped_actions", 0, -1, "is not between 0 and the episode's length"),
        ("clipped_actions", 0, 100, "is not between 0 and the episode's length"),
        ("step_goal_met", 0, [-2], "holds a step that the episode does not have"),
        ("step_goal_met", 0, [100], "holds a step that the episode does not have"),
        ("end", 1, "refused", "contradicts the field 'end'"),
        ("refusal_kind", 1, "question", "contradicts the field 'end'"),
        ("refusal_kind", 1, "shrug", "is none of refusal, question"),
        ("refusal_text", 1, "no", "contradicts the field 'end'"),
        ("refusal_step", 1, 3, "contradicts the field 'end'"),
        ("family", 1, None, "contradicts the field 'arm'"),
        ("case_id", 0, "c", "contradicts the field 'arm'"),
        ("horizon", 0, 5, "is more than the horizon"),
        ("targets", 0, ["a", "b", "c", "d", "e"], "names more than 4 targets"),
        ("objects", 0, [f"mug_{k}" for k in range(11)], "names more than 10 objects"),
        ("fixtures", 1, list("abcde"), "names more than 4 fixtures"),
        ("final_object_pos_m", 0, [0.0] * 29, "does not hold 30 numbers"),
        ("final_gripper_contact", 1, [float("nan")] * 14, "is not finite"),
        ("schema_version", 0, "1.3", "is not 2.x"),
        ("final_eef_pos_m", 1, [0.0, 0.0], "does not hold the positions after the last action"),
        ("final_target_pos_m", 1, [], "does not hold the positions after the last action"),
        ("final_eef_pos_m", 1, [0.0, float("nan"), 0.0], "is not finite"),
        ("prompt_text", 1, "put the bowl on the moon", "is not the hash of prompt_text"),
        ("prompt_sha256", 0, "00", "is not the hash of prompt_text"),
    ],
)
def test_an_episode_field_that_cannot_be(dataset: Path, name: str, row: int, value: object, rule: str) -> None:
    set_value(dataset / EPISODES, name, row, value)
    message = refusal(dataset)
    assert f"episode {row} (" in message
    assert "record this episode again" in message or "the version that recorded it" in message
    assert rule in message


def test_a_repeated_rollout_id_within_one_dataset(dataset: Path) -> None:
    change_column(dataset / EPISODES, "rollout_id", lambda ids: [ids[0], ids[0]])
    assert "occurs 2 times" in refusal(dataset)


def test_a_repeated_rollout_id_across_datasets(tmp_path: Path) -> None:
    write_dataset(tmp_path / "a", two_rollouts())
    write_dataset(tmp_path / "b", two_rollouts())
    message = refusal(tmp_path)
    assert "occurs 2 times (2 such ids): keep one dataset of each run" in message


def test_an_episode_column_of_another_kind(dataset: Path) -> None:
    table = pq.read_table(dataset / EPISODES)
    index = table.column_names.index("success")
    write_parquet(dataset / EPISODES, table.set_column(index, "success", pa.array(["perhaps", "not"])))
    assert "column 'success' is string, not bool" in refusal(dataset)


def test_the_repr_shows_shapes(dataset: Path) -> None:
    assert repr(read_rollouts(dataset)) == (
        "RolloutSet(2 rollouts, 21 frames: action 7, observation.eef_pos_m 3, observation.target_pos_m 12)"
    )


def test_text_that_is_not_utf8_is_refused(dataset: Path) -> None:
    table = pq.read_table(dataset / EPISODES)
    index = table.column_names.index("instruction")
    text = pa.array([b"put \xf6"] * table.num_rows, pa.binary()).view(pa.string())
    write_parquet(dataset / EPISODES, table.set_column(index, "instruction", text))
    assert "damaged" in refusal(dataset)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("refusal_kind", None, "contradicts the field 'end'"),
        ("refusal_text", None, "contradicts the field 'end'"),
        ("refusal_text", "", "is not one line"),
        ("refusal_text", "no\x1b[31m", "is not one line"),
        ("refusal_text", "no\nmug", "is not one line"),
        ("refusal_text", "n" * 2001, "is not one line"),
        ("refusal_step", None, "contradicts the field 'end'"),
        ("refusal_step", 3, "does not fit the episode's length"),
        ("success", True, "contradicts the field 'success'"),
        ("end", "horizon", "contradicts the field 'end'"),
    ],
)
def test_a_refusal_that_cannot_be(tmp_path: Path, name: str, value: object, rule: str) -> None:
    plain, other = two_rollouts()
    steps = len(other.frames["action"])
    failed = dataclasses.replace(other.episode, success=False, success_step=None, end="refused")
    episode = dataclasses.replace(failed, refusal_kind="refusal", refusal_text="No mug here.", refusal_step=steps - 2)
    dataset = write_dataset(tmp_path / "set", [plain, dataclasses.replace(other, episode=episode)])
    assert read_rollouts(dataset).steps_to_end.tolist() == [len(plain.frames["action"]), episode.horizon]
    set_value(dataset / EPISODES, name, 1, value)
    assert rule in refusal(dataset)


def refused_at(step: int, length: int) -> Rollout:
    """A rollout of this many actions, of at most 40, that is recorded as refused at a step."""
    refusal: dict[str, Any] = {"end": "refused", "refusal_kind": "refusal", "refusal_text": "No.", "refusal_step": step}
    record = make_record(horizon=40, moving_at_end=False, step_goal_met=(-1,), **refusal)
    return make_rollout(record, np.zeros((length, 7)), np.zeros((length + 1, 3)), np.ones((length + 1, 1, 3)))


@pytest.mark.parametrize(("length", "step"), [(1, -1), (2, -1), (40, 40), (39, 40)])
def test_a_refusal_outside_the_steps_in_which_a_policy_is_asked(tmp_path: Path, length: int, step: int) -> None:
    message = refusal(write_dataset(tmp_path / "set", [refused_at(step, length)]))
    assert f"field 'refusal_step': '{step}' is a step that the episode does not have" in message


@pytest.mark.parametrize(("length", "step"), [(2, 0), (40, 38), (40, 39)])
def test_the_first_and_the_last_refusal_that_a_run_can_record_are_read(tmp_path: Path, length: int, step: int) -> None:
    assert len(read_rollouts(write_dataset(tmp_path / "set", [refused_at(step, length)]))) == 1


@pytest.mark.parametrize("step", [-3, 0, 41])
def test_a_success_outside_the_steps_of_its_episode(tmp_path: Path, step: int) -> None:
    record = make_record(success=True, steps=40, success_step=step)
    dataset = write_dataset(tmp_path / "set", [reaching_rollout(record, np.random.default_rng(0))])
    assert f"field 'success_step': '{step}' is a step that the episode does not have" in refusal(dataset)
