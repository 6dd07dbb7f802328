"""Facts read off the real simulator agree with the meshes and with what anybody can see."""

from __future__ import annotations

import numpy as np
import pytest

from conflictvla.toolkit.errors import NotFoundError
from conflictvla.toolkit.facts import Entity, SceneFacts
from conflictvla.toolkit.libero.base_tasks import base_task
from conflictvla.toolkit.simulation.observing.scene_facts import measure_facts, observe_facts
from conflictvla.toolkit.simulation.scene import Scene

STATES = (0, 22)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(base_task("libero_goal", "put_the_bowl_on_the_plate"))


@pytest.fixture(scope="module")
def facts(scene: Scene) -> SceneFacts:
    return measure_facts(scene, STATES)


def _entity(facts: SceneFacts, name: str) -> Entity:
    return facts.entities[facts.index(name)]


def test_scene_holds_seven_entities_three_drawers_and_the_table(facts: SceneFacts) -> None:
    assert [entity.name for entity in facts.entities] == [
        "akita_black_bowl_1",
        "cream_cheese_1",
        "flat_stove_1",
        "plate_1",
        "wine_bottle_1",
        "wine_rack_1",
        "wooden_cabinet_1",
        "wooden_cabinet_1_top_region",
        "wooden_cabinet_1_middle_region",
        "wooden_cabinet_1_bottom_region",
        "main_table",
    ]


def test_arrays_have_a_row_for_every_state_and_a_column_for_every_entity(facts: SceneFacts) -> None:
    assert facts.init_states == STATES
    assert facts.position_m.shape == (2, 11, 3)
    assert facts.box_m.shape == (2, 11, 2, 3)
    assert facts.on.shape == facts.inside.shape == (2, 11, 11)
    assert facts.is_open.shape == facts.is_on.shape == (2, 11)
    assert np.all(facts.box_m[:, :, 0] < facts.box_m[:, :, 1])


def test_bowl_opens_ten_centimetres_wide_just_below_its_rim(facts: SceneFacts) -> None:
    opening = _entity(facts, "akita_black_bowl_1").opening_m

    assert opening == pytest.approx((0.104, 0.104), abs=0.005)


@pytest.mark.parametrize("name", ["wine_bottle_1", "cream_cheese_1", "plate_1", "flat_stove_1"])
def test_closed_and_flat_objects_have_no_opening(facts: SceneFacts, name: str) -> None:
    assert _entity(facts, name).opening_m is None


def test_three_drawers_lie_one_above_the_other_from_the_top(facts: SceneFacts) -> None:
    drawers = [entity for entity in facts.entities if entity.category == "drawer"]
    heights = [facts.position_m[0, facts.index(drawer.name), 2] for drawer in drawers]

    assert [(drawer.rank, drawer.row_length, drawer.part_of) for drawer in drawers] == [
        (rank, 3, "wooden_cabinet_1") for rank in range(3)
    ]
    assert np.diff(heights) == pytest.approx([-0.07, -0.07], abs=0.005)


@pytest.mark.parametrize(
    ("name", "movable", "opens", "switches"),
    [
        ("akita_black_bowl_1", True, False, False),
        ("cream_cheese_1", True, False, False),
        ("plate_1", True, False, False),
        ("wine_bottle_1", True, False, False),
        ("flat_stove_1", False, False, True),
        ("wine_rack_1", False, False, False),
        ("wooden_cabinet_1", False, True, False),
        ("wooden_cabinet_1_top_region", False, True, False),
    ],
)
def test_joints_say_what_moves_opens_and_switches(
    facts: SceneFacts, name: str, *, movable: bool, opens: bool, switches: bool
) -> None:
    entity = _entity(facts, name)

    assert (entity.movable, entity.opens, entity.switches) == (movable, opens, switches)


def test_at_the_start_nothing_is_open_on_inside_or_stacked(facts: SceneFacts) -> None:
    table = facts.index("main_table")
    for at_start in (facts.is_open, facts.is_on, facts.inside, np.delete(facts.on, table, axis=2)):
        assert not at_start.any()


@pytest.mark.parametrize("name", ["wine_bottle_1", "cream_cheese_1", "plate_1", "akita_black_bowl_1"])
def test_size_is_that_of_the_meshes_own_vertices(scene: Scene, facts: SceneFacts, name: str) -> None:
    """Independent of the pose in the world: vertices placed by the model's own offsets within the body."""
    model = scene.model
    root = scene.libero.obj_body_id[name]
    corners = []
    for geom in np.flatnonzero((model.geom_bodyid == root) & (model.geom_group == 1)):
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        vertices = model.mesh_vert[start : start + model.mesh_vertnum[mesh]]
        w, x, y, z = model.geom_quat[geom]
        rotation = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        corners.append(vertices @ rotation.T + model.geom_pos[geom])

    assert _entity(facts, name).size_m == pytest.approx(np.ptp(np.concatenate(corners), axis=0), abs=1e-5)


def test_size_does_not_depend_on_how_an_object_lies(facts: SceneFacts) -> None:
    """The bottle stands: its box in the world is its own size, whatever way it is turned about the vertical."""
    bottle = facts.index("wine_bottle_1")
    heights = facts.box_m[:, bottle, 1, 2] - facts.box_m[:, bottle, 0, 2]

    assert heights == pytest.approx(facts.entities[bottle].size_m[2], abs=0.002)


def test_opened_drawer_lit_stove_and_stacked_bowl_are_seen() -> None:
    scene = Scene(base_task("libero_goal", "put_the_bowl_on_the_plate"))
    scene.reset(0)
    drawer = scene.model.joint(scene.libero.object_sites_dict["wooden_cabinet_1_top_region"].joints[0])
    knob = scene.model.joint(scene.libero.fixtures_dict["flat_stove_1"].joints[0])
    bowl = scene.libero.get_object("akita_black_bowl_1").joints[0]
    plate = scene.data.body("plate_1_main").xpos
    scene.data.qpos[drawer.qposadr[0]] = -0.15
    scene.data.qpos[knob.qposadr[0]] = 1.0
    scene.data.joint(bowl).qpos[:3] = plate + np.array([0.0, 0.0, 0.03])
    for _ in range(10):
        scene.step(np.array([0.0] * 6 + [-1.0]))

    facts = observe_facts(scene, 0)

    names = np.array([entity.name for entity in facts.entities])
    assert set(names[facts.is_open[0]]) == {"wooden_cabinet_1", "wooden_cabinet_1_top_region"}
    assert set(names[facts.is_on[0]]) == {"flat_stove_1"}
    on_things = [(names[i], names[j]) for i, j in np.argwhere(facts.on[0]) if names[j] != "main_table"]
    assert on_things == [("akita_black_bowl_1", "plate_1")]


def test_observing_leaves_the_scene_bit_for_bit_as_it_was(scene: Scene) -> None:
    scene.reset(3)
    scene.step(np.array([0.3, -0.2, 0.1, 0.0, 0.1, 0.0, 1.0]))
    before, model = scene.state().sha256(), scene.model.body_pos.tobytes() + scene.model.site_rgba.tobytes()

    observe_facts(scene, 3)

    assert scene.state().sha256() == before
    assert scene.model.body_pos.tobytes() + scene.model.site_rgba.tobytes() == model


def test_observed_facts_are_those_measured_in_that_state(scene: Scene, facts: SceneFacts) -> None:
    scene.reset(STATES[1])
    observed = observe_facts(scene, STATES[1])

    assert [entity.name for entity in observed.entities] == [entity.name for entity in facts.entities]
    sizes = [[entity.size_m for entity in measured.entities] for measured in (observed, facts)]
    assert np.array(sizes[0]) == pytest.approx(np.array(sizes[1]), abs=1e-9)
    assert np.array_equal(observed.position_m[0], facts.position_m[1])
    assert np.array_equal(observed.box_m[0], facts.box_m[1])


def test_unknown_entity_is_refused_with_the_closest_name(facts: SceneFacts) -> None:
    with pytest.raises(NotFoundError, match="did you mean 'plate_1'"):
        facts.index("plate_2")


def test_gaps_are_symmetric_and_the_horizontal_one_is_never_larger(facts: SceneFacts) -> None:
    for i in range(len(facts.entities)):
        for j in range(i):
            assert np.array_equal(facts.gap_m(i, j), facts.gap_m(j, i))
            assert np.all(facts.horizontal_gap_m(i, j) <= facts.gap_m(i, j))
