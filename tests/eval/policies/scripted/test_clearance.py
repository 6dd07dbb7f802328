"""Which points lie within objects: as every box by itself gives, though most boxes are not computed."""

import numpy as np
import pytest

from conflictvla.eval.policies.scripted.clearance import inside_geoms
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.records import SUITES
from conflictvla.toolkit.simulation.scene import Scene


@pytest.mark.parametrize("suite", SUITES)
def test_points_are_within_what_holds_them(suite: str) -> None:
    scene = Scene(base_tasks(suite)[1])
    scene.reset(3)
    data, rng = scene.data, np.random.default_rng(0)
    geoms = list(range(scene.model.ngeom))
    seen = np.zeros(2, int)
    for size_m in (0.05, 0.3, 2.0):
        for margin_m in (0.0, 0.02):
            for geom in rng.choice(geoms, 10):
                points = data.geom_xpos[geom] + rng.uniform(-size_m, size_m, (200, 3))
                held = np.zeros(len(points), bool)
                for g in geoms:
                    local = (points - data.geom_xpos[g]) @ data.geom_xmat[g].reshape(3, 3)
                    centre, half = np.split(scene.model.geom_aabb[g], 2)
                    held |= (np.abs(local - centre) <= half + margin_m).all(axis=1)
                assert np.array_equal(inside_geoms(scene, geoms, points, margin_m), held)
                seen += held.sum(), (~held).sum()
    assert seen.min() > 100
    assert not inside_geoms(scene, geoms, np.array([[0.0, 0.0, 50.0]])).any()
