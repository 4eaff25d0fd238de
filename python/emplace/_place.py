"""Searching for placements."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional, Sequence, Union

from . import _emplace, _progress
from ._emplace import Answer, LearningSettings, Problem
from .placers import spec

Placer = Union[str, Callable[..., Any]]
Listener = Union[bool, Callable[[str, float], None], None]


def place(
    problem: Problem,
    placer: Union[Placer, Sequence[Placer]] = "auto",
    *,
    scheduler: str = "own",
    objective: str = "step",
    seconds: Optional[float] = None,
    evaluations: Optional[int] = None,
    threads: Optional[int] = None,
    seed: int = 1,
    most_devices: int = 0,
    use_cpu: bool = False,
    starts: Sequence[Any] = (),
    samples: int = 0,
    learning: Optional[LearningSettings] = None,
    progress: Listener = None,
    **options: object,
) -> Answer:
    """The best placement that was found, whether it fits or not.

    `placer` is a placer's key, several of them ('heft,expert', or a list), a family or 'all': the
    best of them is the answer; or a function of your own (see `compare`). Further keyword arguments are
    its options, which `help(emplace.placers.KEY)` shows. Searches take 10 seconds unless `seconds` or `evaluations` says
    otherwise; Ctrl-C ends them with the best so far. `threads` are all cores unless given; under a
    limit of evaluations alone the answer does not depend on them. `objective` is 'step' (or 'latency'),
    'period' (or 'throughput': of a stream of steps) or 'serial period' (where devices also pay for what
    they send). `progress` is
    True, for a line on the terminal or in the notebook, or a function of (line, seconds).

    Raises Error when an argument is wrong, or when it is proven that nothing fits.

    >>> import emplace
    >>> problem = emplace.compile("zoo:gnmt-2:batch=8,sequence=4", "2xp100")
    >>> emplace.place(problem, "metis", imbalance=1.2).placer
    'metis(imbalance=1.2)'
    >>> emplace.place(problem, seconds=0.5).time <= emplace.place(problem, "expert").time
    True
    """
    _refuse_ambiguous(placer, samples)
    given = _arguments(locals())
    with _progress.shown(progress, seconds) as listener:
        try:
            return _emplace.place(problem, {**given, "progress": listener})
        except _emplace.Error as error:
            if error.kind != "unsupported":
                raise
            from . import _child

            if not _child.can_help(error):
                raise
        return _emplace.place(problem, {**_child.arguments(given, problem.in_place), "progress": listener})


def compare(
    problem: Problem,
    placer: Union[Placer, Sequence[Placer]] = "all",
    *,
    scheduler: str = "own",
    objective: str = "step",
    seconds: Optional[float] = None,
    evaluations: Optional[int] = None,
    threads: Optional[int] = None,
    seed: int = 1,
    seeds: int = 1,
    best_orders: bool = False,
    most_devices: int = 0,
    use_cpu: bool = False,
    starts: Sequence[Any] = (),
    samples: int = 0,
    learning: Optional[LearningSettings] = None,
    progress: Listener = None,
) -> "Comparison":
    """Every placer's answer, the best first; each has the whole budget.

    A function of a `PlacerSession` is a placer too: it asks for evaluations of placements, devices by
    group, until the session is spent, and returns the devices of the best, or None for the best that
    was evaluated. Randomised placers and functions run with `seeds` seeds, from `seed` on. Placers that
    cannot cope with the problem are left out, and named in the notes of the first answer.

    >>> import emplace
    >>> problem = emplace.compile("zoo:gnmt-2:batch=8,sequence=4", "2xp100")
    >>> [answer.placer for answer in emplace.compare(problem, ["single", "random"], evaluations=10)][0]
    'single'
    >>> def all_on_the_last(session):
    ...     return [len(session.problem.cluster) - 1] * session.num_groups
    >>> sorted(answer.placer for answer in emplace.compare(problem, ["single", all_on_the_last]))
    ['all_on_the_last', 'single']
    """
    options: dict[str, object] = {}
    given = _arguments(locals())
    with _progress.shown(progress) as listener:
        return Comparison(_emplace.compare(problem, {**given, "progress": listener}, seeds, best_orders))


class Comparison(list[Answer]):
    """Answers, the best first."""

    def to_dict(self) -> dict[str, Any]:
        return {"answers": [answer.to_dict() for answer in self]}

    def __str__(self) -> str:
        if not self:
            return "no answers"
        best = self[0].time
        width = max(len(answer.placer) for answer in self)
        return "\n".join(
            f"{answer.placer:<{width}}  {answer.time / 1e6:10.3f} ms  {answer.time / best:6.3f}"
            + ("" if answer.fits else "  does not fit")
            for answer in self
        )

    def _repr_html_(self) -> str:
        from . import _html

        return _html.comparison(self)


def explain(problem: Problem, placement: Any, priorities: Any = None, objective: str = "step") -> str:
    """What limits a placement, what is where, and what would help; `answer.explanation()` of any.

    >>> import emplace
    >>> problem = emplace.compile("zoo:alexnet", "2xp100")
    >>> "What limits the step" in emplace.explain(problem, [0] * len(problem.graph))
    True
    """
    return _emplace.assess(problem, placement, priorities, objective).explanation()


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """What the C++ side takes, from a function's arguments."""
    problem = given["problem"]
    if not isinstance(problem, Problem):
        raise TypeError(f"problem: expected what emplace.compile gives, not {problem!r}")
    threads = given["threads"]
    names = ("scheduler", "objective", "seconds", "evaluations", "seed", "most_devices", "use_cpu", "samples")
    return {
        **{name: given[name] for name in names},
        **_placers(given["placer"], given["options"]),
        "threads": len(os.sched_getaffinity(0)) if threads is None else threads,
        "starts": list(given["starts"]),
        "learning": given["learning"] or LearningSettings(),
    }


def _refuse_ambiguous(placer: Any, samples: int) -> None:
    """The samples of a step are an argument of `place`, and some placers have an option of that name."""
    for info in _emplace.list_placers() if samples else ():
        if info.key == placer and any(option.name == "samples" for option in info.options):
            raise _emplace.Error(
                f"samples: is what a step has and an option of '{placer}'; expected '{placer}(samples={samples})' for "
                f"the option, or '{placer}()' beside samples={samples} for the step"
            )


def _placers(placer: Union[Placer, Sequence[Placer]], options: dict[str, object]) -> dict[str, Any]:
    """Specs as one text, and functions by name."""
    placers = [placer] if isinstance(placer, str) or callable(placer) else list(placer)
    if options and (len(placers) != 1 or not isinstance(placers[0], str)):
        names = ", ".join(options)
        raise _emplace.Error(f"{names}: options go with one placer; for one of several, write 'heft(insertion=false)'")
    functions: dict[str, Any] = {}
    specs = []
    for one in placers:
        if isinstance(one, str):
            specs.append(spec(one, options))
        elif not callable(one):
            raise _emplace.Error(f"placer {one!r}: expected a spec such as 'heft', or a function")
        else:
            name = getattr(one, "__name__", type(one).__name__)
            if name in functions:
                raise _emplace.Error(f"placer '{name}': given twice")
            functions[name] = one
    if not placers:
        raise _emplace.Error("placer: expected one or more")
    return {"placer": ",".join(specs), "functions": functions}
