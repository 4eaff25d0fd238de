"""Learned placers in a process of their own, where this one has loaded a PyTorch that is not theirs.

What is sent is what the search depends on: the graph with its durations and the devices that each op may use, the
cluster, the placer's spec and the budget. What comes back is a placement, which is evaluated here."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any, Callable

from . import _emplace, _other_torch

_CODE = "import sys; sys.path[:] = sys.argv[1:]; from emplace._child import main; main()"
_PATIENCE = 10  # seconds that a child has to answer when the search is to end
_PASSED_ON = ("placer", "scheduler", "objective", "threads", "seed")
_LEARNING = ("device", "curves", "checkpoint", "checkpoint_seconds", "resume")


def can_help(error: _emplace.Error) -> bool:
    """Whether it may be about another PyTorch in this process. Where Python is embedded, there is no program to run."""
    return error.kind == "unsupported" and bool(_other_torch.loaded()) and bool(sys.executable)


def arguments(given: dict[str, Any], in_place: str) -> dict[str, Any]:
    """Those of a search by a function that has the placers run elsewhere."""
    name = re.sub(r"[,()\s]+", " ", given["placer"]).strip() + " in a child process"
    learning = _emplace.LearningSettings()  # the child is told of them
    return {**given, "placer": "", "functions": {name: _function(given, in_place)}, "learning": learning}


def _function(given: dict[str, Any], in_place: str) -> Callable[[Any], Any]:
    ended = time.monotonic()  # the session before, if any, so that none has begun before it

    def place(session: Any) -> Any:
        nonlocal ended
        try:
            return searched(session, ended)
        finally:
            ended = time.monotonic()

    def searched(session: Any, begun: float) -> Any:
        import numpy as np

        problem = session.problem
        if session.spent:  # by those before, on other sets of devices
            return _anywhere(session)
        with tempfile.TemporaryFile("w+") as request, tempfile.TemporaryFile("w+") as answer, \
                tempfile.TemporaryFile("w+") as errors:
            json.dump(_request(session, given, in_place), request, default=lambda number: number.item())  # numpy's
            request.seek(0)
            # The child keeps its time by itself; until then a session that is spent was cancelled.
            until = math.inf if session.seconds is None else begun + session.seconds
            status, cancelled = _run(session, until, request, answer, errors)
            answer.seek(0)
            text = answer.read()
            if not text:
                if cancelled:  # before it had found anything
                    return _anywhere(session)
                errors.seek(0)
                raise _emplace.Error(_ended(given["placer"], status, errors.read()))
        found = json.loads(text)
        if "error" in found:
            error = _emplace.Error(found["error"])
            error.kind = found["kind"]
            raise error
        by_group = np.zeros(session.num_groups, dtype=np.int32)
        by_group[problem.groups] = found["placement"]
        return by_group

    return place


def _anywhere(session: Any) -> Any:
    """Where there was no search: the first start, or for each group the first device that it may use."""
    starts = session.starts
    return starts[0] if starts else _emplace.features_of(session.problem)["allowed"].argmax(axis=1)


def _ended(placer: str, status: int, errors: str) -> str:
    last = errors.strip().splitlines()[-1:] or ["it said nothing"]
    return f"placer '{placer}': the process that it ran in ended with status {status}: {last[0]}"


def _request(session: Any, given: dict[str, Any], in_place: str) -> dict[str, Any]:
    problem, learning = session.problem, given["learning"]
    return {
        "parent": os.getpid(),
        "graph": _graph(problem),
        # Durations are as slow as the devices already.
        "cluster": re.sub(r", slowdown: [0-9./]+", "", problem.cluster.to_yaml()),
        "in_place": in_place,
        # The budget of this set of devices, where several are tried.
        "arguments": {**{name: given[name] for name in _PASSED_ON},
                      "seconds": session.seconds, "evaluations": session.max_evaluations},
        "learning": {name: getattr(learning, name) for name in _LEARNING},
        "starts": [start[problem.groups].tolist() for start in session.starts] if given["starts"] else [],
    }


def _graph(problem: Any) -> dict[str, Any]:
    """As it is saved, with every duration, and the devices that each op may use."""
    graph: dict[str, Any] = json.loads(problem.graph.to_json())
    names = [device.name for device in problem.cluster.devices]
    allowed = _emplace.features_of(problem)["allowed"]
    for op, group, durations in zip(graph["ops"], problem.groups.tolist(), problem.durations.tolist()):
        op["time_us"] = {name: duration / 1000 for name, duration in zip(names, durations)}
        op["devices"] = [name for name, may in zip(names, allowed[group]) if may]
        op["colocate"] = f"group {group}"
    return graph


def _run(session: Any, until: float, request: IO[str], answer: IO[str], errors: IO[str]) -> tuple[int, bool]:
    """The status that the child ended with, and whether it was told to end."""
    # In a session of its own, so that Ctrl-C reaches it by us alone, and once.
    child = subprocess.Popen(
        [sys.executable, "-c", _CODE, *sys.path], stdin=request, stdout=answer, stderr=errors, start_new_session=True
    )
    cancelled, deadline = False, math.inf
    try:
        while True:
            try:
                return child.wait(0.05), cancelled
            except subprocess.TimeoutExpired:
                cancelled = cancelled or (session.spent and time.monotonic() < until)
            except KeyboardInterrupt:
                cancelled = True
            if cancelled and deadline == math.inf:
                deadline = time.monotonic() + _PATIENCE
                child.send_signal(signal.SIGINT)
            if time.monotonic() > deadline:
                child.kill()
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()


def main() -> None:
    """What the child does: a request from standard input, an answer to standard output."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request = json.load(sys.stdin)
    threading.Thread(target=_end_with, args=(request["parent"],), daemon=True).start()
    try:
        json.dump({"placement": _placement(request)}, sys.stdout)
    except _emplace.Error as error:
        json.dump({"error": str(error), "kind": error.kind}, sys.stdout)


def _placement(request: dict[str, Any]) -> list[int]:
    graph = _emplace.Graph.from_json(json.dumps(request["graph"]))
    cluster = _emplace.Cluster.from_yaml(request["cluster"])
    problem = _emplace.compile(graph, cluster, "auto", False, [], [], None, request["in_place"])
    placement: list[int] = _emplace.place(
        problem,
        {
            **request["arguments"],
            "functions": {},
            "starts": request["starts"],
            "learning": _emplace.LearningSettings(**request["learning"]),
            "use_cpu": True,  # the problem has only the devices that may be used
            "most_devices": 0,
            "samples": 0,
            "progress": None,
        },
    ).placement.tolist()
    return placement


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
