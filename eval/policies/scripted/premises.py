"""Whether an episode's instruction makes sense in its scene, asked of the premise checker."""

from __future__ import annotations

from ....toolkit.language.plan_json import plan_from_json
from ....toolkit.premises import check
from ....toolkit.simulation.observing.scene_facts import observe_facts
from ..interface import Episode


def premises_hold(episode: Episode) -> bool:
    """Judge the instruction's plan against the scene as it stands now, at the beginning of the episode.

    The judgement is made afresh from the simulator; what the instance says about itself (arm, factors) is not read.
    """
    facts = observe_facts(episode.scene, episode.init_state)
    return not check(plan_from_json(episode.instance.plan), facts)
