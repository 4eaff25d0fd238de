"""Steps executed on this machine."""

from __future__ import annotations

from typing import Any

from . import _emplace, _progress
from ._emplace import Answer, ExecutionResult, Problem, ProfileResult
from ._place import Listener, place


def run(
    problem: Problem,
    placement: Any = None,
    priorities: Any = None,
    *,
    steps: int = 50,
    warm_up: int = 10,
    numbers: str = "float32",
    fixed_order: bool = False,
    launch_each: bool = False,
    limit_memory: bool = False,
    seed: int = 0,
    progress: Listener = None,
) -> ExecutionResult:
    """Executes a placement on this machine, beside what was predicted for it.

    The problem's cluster says where its devices are: `read_cluster("local")`, or "local:2x4" for two
    groups of four cores. An Answer runs in its own order of ops; without a placement, everything is on the fastest
    device, as predicted, that has room for it. `steps` are timed, after `warm_up` that do not count. `numbers` are
    float32, float64, own (16 bits where the graph has such) or tf32 (float32 whose products GPUs may round).
    `fixed_order` is exactly the simulated sequence of ops, `limit_memory` lets no device have more than the cluster
    says. Parameters and inputs are random: times are real, results are not a trained model's. Ctrl-C ends it with the
    steps until then. Needs libtorch; what is executed has the machine for itself, so a second call waits for the
    first.

    >>> import emplace
    >>> problem = emplace.compile("zoo:alexnet:batch=1", "local:1x1")
    >>> result = emplace.run(problem, steps=3, warm_up=1)
    >>> result.time > 0 and len(result.steps) == 3
    True
    """
    if placement is None:
        placement = place(problem, "single").placement
    if isinstance(placement, Answer) and priorities is None:
        priorities = placement.priorities
    given = {
        "steps": steps,
        "warm_up": warm_up,
        "numbers": numbers,
        "fixed_order": fixed_order,
        "launch_each": launch_each,
        "limit_memory": limit_memory,
        "seed": seed,
    }
    with _progress.shown(progress) as listener:
        return _emplace.run(problem, placement, priorities, {**given, "progress": listener})


def profile(
    problem: Problem,
    *,
    phases: int = 3,
    steps: int = 7,
    warm_up: int = 10,
    proposals: int = 8,
    numbers: str = "float32",
    busy: bool = True,
    progress: Listener = None,
) -> ProfileResult:
    """Measures a model's ops and the links of this machine.

    Everything is measured `phases` times; `proposals` placements that a search finds are executed to learn
    what transfers cost beside the link; `busy` measures ops also while all devices work. Compile the
    result's graph and cluster to go by measured times.

    >>> import emplace
    >>> problem = emplace.compile("zoo:alexnet:batch=1", "local:1x1")
    >>> found = emplace.profile(problem, phases=1, steps=2, warm_up=1, proposals=0, busy=False)
    >>> emplace.compile(found.graph, found.cluster, cost="measured")
    <Problem: alexnet,batch=1 on local:1x1>
    """
    given = {
        "phases": phases,
        "steps": steps,
        "warm_up": warm_up,
        "proposals": proposals,
        "numbers": numbers,
        "busy": busy,
    }
    with _progress.shown(progress) as listener:
        return _emplace.profile(problem, {**given, "progress": listener})
