"""Step goals found in recorded states: LIBERO's own predicates to the step, ours by the premise checker's facts."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest

from conflictvla.eval.policies.scripted.agents import Persist
from conflictvla.eval.policies.scripted.goals import handle_another
from conflictvla.toolkit.arrays import BoolArray, FloatArray
from conflictvla.toolkit.facts import SceneFacts
from conflictvla.toolkit.language.parsing.libero import parse_base_instruction
from conflictvla.toolkit.language.plan_json import plan_to_json
from conflictvla.toolkit.language.vocabulary import load_vocabulary
from conflictvla.toolkit.libero.base_tasks import base_tasks
from conflictvla.toolkit.premises.spatial import NEXT_TO_M
from conflictvla.toolkit.records import BaseTask
from conflictvla.toolkit.simulation.observing.scene_entities import ObservedStates
from conflictvla.toolkit.simulation.observing.scene_facts import observe_facts
from conflictvla.toolkit.simulation.observing.scene_parts import scene_parts
from conflictvla.toolkit.simulation.scene import Scene
from conflictvla.toolkit.step_goals.goals import GoalPredicate, StepGoal
from conflictvla.toolkit.step_goals.meter import StepGoalMeter
from conflictvla.toolkit.step_goals.observing import GoalObserver

from ...eval.policies.interface_actions import actions_of

TASKS = base_tasks()
SAMPLE = (3, 23, 31, 33, 36, 39)
"""Onto a plate; a drawer and into it; a basket; a drawer that is shut; beside a plate; a microwave."""
