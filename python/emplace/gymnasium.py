"""The environment as one of gymnasium's, which has to be installed.

    import gymnasium
    environment = gymnasium.make("emplace/Placement-v0", model="zoo:gnmt-2", cluster="4xp100")

An installed emplace is known to gymnasium by itself; otherwise importing this module registers it.
"""
# mypy: disallow-subclassing-any=False

from __future__ import annotations

from typing import Any, Optional, Union

import gymnasium
import numpy as np

from . import _models
from ._emplace import Cluster, Error, Graph, Model, Problem
from .environment import Environment, Reward, default_reward, register_with_gymnasium
from .spaces import placement_spaces


class PlacementEnv(gymnasium.Env):
    """An `emplace.Environment` with gymnasium's spaces.

    It takes a problem, or what `emplace.compile` takes. `placing` is the environment itself, with
    `evaluate`, `features` and `assess`.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        problem: Optional[Problem] = None,
        *,
        model: Union[Graph, Model, str, None] = None,
        cluster: Union[Cluster, str, None] = None,
        objective: str = "step",
        reward: Reward = default_reward,
        threads: Optional[int] = None,
        render_mode: Optional[str] = None,
    ) -> None:
        if (problem is None) == (model is None):
            raise Error("expected a problem, or a model and a cluster")
        if problem is None:
            assert model is not None
            problem = _models.compile(model, cluster)
        self.placing = Environment(problem, objective=objective, reward=reward, threads=threads)
        self.render_mode = render_mode
        self.action_space, self.observation_space = placement_spaces(
            gymnasium.spaces, self.placing.num_groups, len(problem.cluster)
        )

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[dict[str, Any]] = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        observation, info = self.placing.reset(seed=seed, options=options)
        return _in_spaces(observation), info

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.placing.step(action)
        return _in_spaces(observation), reward, terminated, truncated, info


def _in_spaces(observation: dict[str, Any]) -> dict[str, Any]:
    return {**observation, "group": np.int64(observation["group"]), "allowed": observation["allowed"].astype(np.int8)}


register_with_gymnasium()
