"""Scoring a full evaluation: 14,530 made-up rollouts of about 3 million frames, from parquet files to scores.

The loop that the vectorised measures are compared with is the plain way to write them: one pair at a time, NumPy within
a pair, the same numbers in the end.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

from conflictvla.builders.rollouts.lerobot_dataset import write_lerobot_dataset
from conflictvla.builders.rollouts.schema import Rollout
from conflictvla.builders.rollouts.shards import write_shard
from conflictvla.eval.recordings.reading import read_rollouts
from conflictvla.eval.recordings.rollout_set import RolloutSet
from conflictvla.eval.scoring.pair_table import score_pairs
from conflictvla.eval.scoring.pairs import Pairing, pair_rollouts
from conflictvla.toolkit.prompts import RELEASED
from conflictvla.toolkit.records import HORIZONS, Arm, Family, Level

from ..eval.synthetic_rollouts import make_record, reaching_rollout, write_dataset

CASES = 1413
TASKS_A_SUITE = 10
INIT_STATES = 5
SAMPLE = 1000
"""Pairs that the loop is timed on."""

SCORE_ALONE = """
import re, sys, time
from pathlib import Path
from conflictvla.eval.scores.scores import score
start = time.perf_counter()
scores = score(sys.argv[1])
scores.to_json()
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(time.perf_counter() - start, int(peak[1]) / 1024, scores.pairs.num_rows)
"""
"""What is read is the peak of this program alone: ``ru_maxrss`` counts that of the process that started it, too."""


def measure_scoring(folder: Path, policies: int = 1) -> dict[str, float]:
    """Wall time and peak memory of scoring full evaluations, and the speed-up over the loop.

    Args:
        folder: Where to write the rollouts.
        policies: How many full evaluations, each of a policy of its own.
    """
    for number in range(policies):
        policy = f"policy_{number}"
        # Files of about LeRobot's own size, so that no single one is unusually easy to read.
        write_dataset(folder / policy, [*_full_evaluation(policy)], episodes_a_file=2000)
    rollouts = 14_530 * policies
    seconds, peak_mb = _score_alone(folder)
    figures = {f"score_{rollouts}_rollouts_s": seconds, f"score_{rollouts}_rollouts_peak_mb": peak_mb}
    if policies == 1:
        read = read_rollouts(folder)
        figures["score_14530_rollouts_frames"] = float(read.offsets[-1])
        figures["score_speedup_vs_episode_loop"] = _speedup(read, pair_rollouts(read))
    return figures


def test_scoring_a_full_evaluation(figures: dict[str, float], tmp_path: Path) -> None:
    figures.update(measure_scoring(tmp_path))
    assert figures["score_14530_rollouts_peak_mb"] < 2000


def test_scoring_against_a_plain_loop_over_lerobots_own_reader(figures: dict[str, float], tmp_path: Path) -> None:
    """Seconds a frame of the loop that one would write first, over those of scoring; both from files to measures."""
    lerobot_dataset = pytest.importorskip("lerobot.datasets.lerobot_dataset")
    rollouts = list(islice(_full_evaluation("loop"), 40))
    shards = [write_shard(rollout, tmp_path / "shards") for rollout in rollouts]
    folder = tmp_path / "rollouts" / "loop"
    write_lerobot_dataset(shards, folder, repo_id="conflictvla/loop")
    start = time.perf_counter()
    dataset = lerobot_dataset.LeRobotDataset("conflictvla/loop", root=folder)
    episodes: dict[int, list[np.ndarray[tuple[int], np.dtype[np.float32]]]] = {}
    for index in range(dataset.num_frames):
        frame = dataset[index]
        parts = [frame[name].numpy() for name in ("action", "observation.eef_pos_m", "observation.target_pos_m")]
        episodes.setdefault(int(frame["episode_index"]), []).append(np.concatenate(parts))
    assert [len(frames) for frames in episodes.values()] == [len(rollout.frames["action"]) for rollout in rollouts]
    looped = (time.perf_counter() - start) / dataset.num_frames
    figures["lerobot_loop_ms_a_frame"] = 1e3 * looped
    if "score_14530_rollouts_s" in figures:
        frames = figures["score_14530_rollouts_frames"]
        figures["score_speedup_vs_lerobot_loop"] = looped / (figures["score_14530_rollouts_s"] / frames)


def test_scoring_eight_full_evaluations(figures: dict[str, float], tmp_path: Path) -> None:
    figures.update(measure_scoring(tmp_path, policies=8))
    # Policies are scored one at a time, so eight take no more memory than about two.
    assert figures["score_116240_rollouts_peak_mb"] < 2000


def _full_evaluation(policy: str) -> Iterator[Rollout]:
    """40 base tasks and 1,413 cases under two prompts from five initial states; lengths as a fair policy's would be."""
    rng = np.random.default_rng(0)
    tasks = [(suite, f"task_{number}") for suite in HORIZONS for number in range(TASKS_A_SUITE)]
    for prompt, init_state in product(RELEASED, range(INIT_STATES)):
        for suite, task in tasks:
            record = make_record(
                policy=policy, suite=suite, base_task=task, prompt=prompt, init_state=init_state, success=True, steps=1
            )
            yield reaching_rollout(record, rng, steps=HORIZONS[suite] // 2)
        for case in range(CASES):
            suite, task = tasks[case % len(tasks)]
            record = make_record(
                arm=Arm.CONFLICT,
                policy=policy,
                suite=suite,
                base_task=task,
                case=case,
                family=tuple(Family)[case % 4],
                level=tuple(Level)[case // 4 % 4],
                prompt=prompt,
                init_state=init_state,
            )
            yield reaching_rollout(record, rng, steps=int(HORIZONS[suite] * rng.uniform(0.3, 1.0)), reach=rng.random())


def _score_alone(folder: Path) -> tuple[float, float]:
    """Seconds and peak MiB of scoring in a process of its own; the better of two."""
    runs = []
    for _ in range(2):
        command = [sys.executable, "-c", SCORE_ALONE, str(folder)]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert int(out[2]) % 14_130 == 0, out
        runs.append((float(out[0]), float(out[1])))
    return min(runs)


def _speedup(rollouts: RolloutSet, pairing: Pairing) -> float:
    start = time.perf_counter()
    fast = score_pairs(rollouts, pairing)
    per_pair = (time.perf_counter() - start) / len(pairing)
    sample = np.random.default_rng(0).choice(len(pairing), SAMPLE, replace=False)
    start = time.perf_counter()
    slow = np.array([_one_pair(rollouts, pairing, int(pair)) for pair in sample])
    looped = (time.perf_counter() - start) / SAMPLE
    same = np.stack([fast[name].to_numpy()[sample] for name in ("TAR", "TS", "Early20_TS", "AMS")], axis=1)
    np.testing.assert_allclose(same, slow, atol=1e-12)
    return looped / per_pair


def _one_pair(rollouts: RolloutSet, pairing: Pairing, pair: int) -> tuple[float, float, float, float]:
    """TAR, TS, Early20 TS and AMS of one pair, as one would write them for two episodes."""
    approach, arm = [], []
    for row in (int(pairing.reference[pair]), int(pairing.conflict[pair])):
        eef = rollouts.rollout_feature("observation.eef_pos_m", row).astype(np.float64)
        target = rollouts.rollout_feature("observation.target_pos_m", row).astype(np.float64)
        gap = [
            np.r_[
                np.linalg.norm(target[:, 3 * k : 3 * k + 3] - eef, axis=1),
                np.linalg.norm(rollouts.final_target_pos_m[row, k] - rollouts.final_eef_pos_m[row]),
            ]
            for k in range(rollouts.target_count[row])
        ]
        approach.append([max(0.0, d[0] - d.min()) for d in gap])
        arm.append(rollouts.rollout_feature("action", row)[:, :6].astype(np.float64))
    ratios = [min(1.0, less / (most + 1e-8)) for most, less in zip(*approach, strict=True) if most >= 0.02]
    norms = [np.linalg.norm(u, axis=1) for u in arm]
    steps = min(map(len, arm))
    u, v, u_norm, v_norm = arm[0][:steps], arm[1][:steps], norms[0][:steps], norms[1][:steps]
    similarity = np.clip((u * v).sum(axis=1) / (u_norm * v_norm + 1e-8), 0.0, 1.0)
    similarity[(u_norm < 1e-4) != (v_norm < 1e-4)] = 0.0
    similarity[(u_norm < 1e-4) & (v_norm < 1e-4)] = 1.0
    suppression = float(np.clip(1 - norms[1].mean() / (norms[0].mean() + 1e-8), 0.0, 1.0))
    return float(np.mean(ratios)), float(similarity.mean()), float(similarity[:20].mean()), suppression
