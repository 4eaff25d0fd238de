"""The simulator as an environment for reinforcement learning."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _emplace, spaces
from ._emplace import Answer, Problem

if TYPE_CHECKING:
    import numpy as np

Reward = Callable[[int, int], float]


def default_reward(time: int, overflow: int) -> float:
    """Minus the seconds of a step; ten times those where the placement does not fit."""
    return -time / 1e9 * (10 if overflow else 1)


class Environment:
    """Placing a problem, one group of ops after the other; or whole placements, many at a time.

    Groups of ops that must share a device are what is decided about. An action is a device's number;
    an observation has the number of the group that is next, the devices that it may use, and the
    devices of all groups (-1: not yet). The reward comes with the last action. The signatures and spaces
    (`action_space`, `observation_space`) are gymnasium's; `action_space.sample(observation["allowed"])` is an
    action that is allowed.

    >>> import emplace
    >>> environment = emplace.Environment(emplace.compile("zoo:alexnet", "2xp100"))
    >>> observation, info = environment.reset()
    >>> terminated = False
    >>> while not terminated:
    ...     observation, reward, terminated, truncated, info = environment.step(0)
    >>> reward == -info["time"] / 1e9
    True
    >>> times, overflow = environment.evaluate([[0] * environment.num_groups, [1] * environment.num_groups])
    >>> times.shape
    (2,)
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        problem: Problem,
        *,
        objective: str = "step",
        reward: Reward = default_reward,
        threads: Optional[int] = None,
    ) -> None:
        self.problem = problem
        self._objective = objective
        self._evaluations = _emplace.Evaluations(problem, objective)
        self._reward = reward
        self._threads = len(os.sched_getaffinity(0)) if threads is None else threads
        self._features: Optional[dict[str, Any]] = None
        self._next = 0
        self._devices: Any = None
        self.action_space, self.observation_space = spaces.placement_spaces(
            spaces, self.num_groups, len(problem.cluster)
        )

    @property
    def num_groups(self) -> int:
        return self._evaluations.num_groups

    @property
    def features(self) -> dict[str, Any]:
        """What is known of the groups before anything is placed, as arrays (`features_of`)."""
        if self._features is None:
            self._features = _emplace.features_of(self.problem)
        return self._features

    @property
    def evaluations(self) -> int:
        """How many placements have been evaluated."""
        return self._evaluations.evaluations

    def evaluate(self, placements: Any) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
        """Times in nanoseconds, and bytes above capacity (0: it fits), of rows of devices by group.

        Rows of int32 are not converted. Rows that differ in a few groups, as those of a local search do, take a
        fraction of the time. Uses all threads of the environment; Python's other threads go on.
        """
        return self._evaluations.evaluate(placements, self._threads)

    def placement(self, devices: Any) -> "np.ndarray[Any, Any]":
        """A device for each op, from a device for each group."""
        return self._evaluations.placement(devices)

    def assess(self, devices: Any) -> Answer:
        """The answer that these devices, by group, are."""
        return _emplace.assess(self.problem, self.placement(devices), None, self._objective)

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[dict[str, Any]] = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins again with nothing placed. There is no randomness, so a seed changes nothing."""
        import numpy as np

        self._next = 0
        self._devices = np.full(self.num_groups, -1, dtype=np.int32)
        return self._observation(), {}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Puts the next group on a device."""
        if self._devices is None or self._next == self.num_groups:
            raise _emplace.Error("step: the episode is over; call reset first")
        device: Any = action
        if getattr(action, "shape", None) == ():  # numpy's
            device = device.item()
        # numpy takes True for a mask, Python for a 1.
        if not self.action_space.contains(device) or not self.features["allowed"][self._next, int(device)]:
            allowed = self.features["allowed"][self._next].nonzero()[0].tolist()
            name = self.features["names"][self._next]
            raise _emplace.Error(f"op '{name}': device number {device!r}; expected one of {allowed}")
        self._devices[self._next] = device
        self._next += 1
        if self._next < self.num_groups:
            return self._observation(), 0.0, False, False, {}
        times, overflows = self.evaluate(self._devices[None, :])
        time, overflow = int(times[0]), int(overflows[0])
        info = {"time": time, "overflow": overflow, "fits": overflow == 0, "devices": self._devices.copy()}
        return self._observation(), self._reward(time, overflow), True, False, info

    def close(self) -> None:
        """Nothing is open."""

    def _observation(self) -> dict[str, Any]:
        allowed = self.features["allowed"]
        last = min(self._next, self.num_groups - 1)
        return {"group": self._next, "allowed": allowed[last].copy(), "devices": self._devices.copy()}

    def __repr__(self) -> str:
        return f"<Environment: {self.num_groups} groups on {len(self.problem.cluster)} devices>"


def register_with_gymnasium() -> None:
    """Makes gymnasium know 'emplace/Placement-v0'. It calls this itself where emplace is installed."""
    from gymnasium.envs.registration import register, registry

    name = "emplace/Placement-v0"
    if name not in registry:
        register(id=name, entry_point="emplace.gymnasium:PlacementEnv")
