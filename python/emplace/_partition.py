"""Divided tensors, selected strategies, trained policies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from . import _emplace, _progress
from ._emplace import Partition, Problem, Selection, TrainResult
from ._files import path_text
from ._models import _written
from ._place import Listener
from .placers import spec

if TYPE_CHECKING:
    from ._files import Path


def partition(
    problem: Problem,
    method: str = "search",
    *,
    workers: int = 0,
    seconds: Optional[float] = None,
    evaluations: Optional[int] = None,
    threads: Optional[int] = None,
    seed: int = 1,
    overlap_slowdown: float = 1.0,
    collectives: Path = "",
    progress: Listener = None,
    **options: object,
) -> Partition:
    """How every tensor and op is divided among `workers` devices, the fastest (0: all that are no CPUs).

    Devices compute `overlap_slowdown` times as slowly while they send or receive; `collectives` is a
    file of measured ones, which take what they took. Further arguments are the method's options (`list_partition_methods`).

    >>> import emplace
    >>> problem = emplace.compile("zoo:alexnet", "2xp100")
    >>> emplace.partition(problem, "all-row").fits
    True
    """
    with _progress.shown(progress, seconds) as listener:
        return _emplace.partition(problem, {
            "method": spec(method, options),
            "workers": workers,
            "seed": seed,
            "overlap_slowdown": overlap_slowdown,
            "collectives": path_text(collectives),
            "progress": listener,
            **_budget(seconds, evaluations, threads),
        })


def select(
    problem_file: Path,
    *,
    seconds: Optional[float] = None,
    evaluations: Optional[int] = None,
    threads: Optional[int] = None,
    seed: int = 1,
    progress: Listener = None,
) -> Selection:
    """One strategy for each node of a strategy-selection problem, a file of the contest IOPDDL."""
    with _progress.shown(progress, seconds) as listener:
        budget = _budget(seconds, evaluations, threads)
        return _emplace.select(problem_file, {"seed": seed, "progress": listener, **budget})


def train(
    graphs: Sequence[Path],
    clusters: Sequence[Path],
    *,
    policy: str = "gdp",
    memory: Sequence[float] = (),
    imitate: str = "none",
    imitate_evaluations: int = 5000,
    start: Path = "",
    device: str = "cpu",
    curves: Path = "",
    checkpoint: Path = "",
    checkpoint_seconds: Optional[float] = None,
    resume: bool = False,
    seed: int = 1,
    seconds: Optional[float] = None,
    evaluations: Optional[int] = None,
    threads: Optional[int] = None,
    progress: Listener = None,
    on_save: Optional[Callable[[bytes], object]] = None,
    **settings: object,
) -> TrainResult:
    """A policy that is trained on many graphs and clusters and then places what it never saw.

    `graphs` are files, folders, or names such as 'family:ptb:seed=0..31'; `start` is a policy file to
    begin with; further arguments are the trainer's (`train_settings`). Write `result.policy` to a file,
    and place with 'gdp(policy=FILE)'. `on_save` is given such a file's bytes every minute or so.
    """
    with _progress.shown(progress, seconds) as listener:
        return _emplace.train({
            "policy": policy,
            "graphs": [path_text(name) for name in graphs],
            "clusters": [path_text(name) for name in clusters],
            "memory": list(memory),
            "imitate": imitate,
            "imitate_evaluations": imitate_evaluations,
            "settings": [(name, _written(value)) for name, value in settings.items()],
            "start": path_text(start),
            "device": device,
            "curves": path_text(curves),
            "checkpoint": path_text(checkpoint),
            "checkpoint_seconds": checkpoint_seconds,
            "resume": resume,
            "seed": seed,
            "progress": listener,
            "on_save": on_save,
            **_budget(seconds, evaluations, threads),
        })


def _budget(seconds: Optional[float], evaluations: Optional[int], threads: Optional[int]) -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if threads is None else threads
    return {"seconds": seconds, "evaluations": evaluations, "threads": cores}
