"""What callers get wrong, and what they may do to a process: wrong types, objects that are gone, threads, forks.

Each attack runs in a process of its own, so that a crash is a failed test and not the end of all."""

import os
import subprocess
import sys
import textwrap

import pytest

FORK = """
import json, emplace
def make_problem(devices=2):
    ops = [{"name": n, "type": "MatMul", "inputs": i, "outputs": [k], "time_us": {"*": t}}
           for k, (n, i, t) in enumerate([("start", [], 0), ("left", [0], 100), ("right", [], 100), ("join", [1, 2], 10)])]
    graph = emplace.Graph.from_json(json.dumps({"format": "emplace.graph/1", "name": "fork", "tensors": [{"bytes": 1000}] * 4,
                                                "ops": ops}))
    cluster = emplace.build_cluster("pair", [emplace.DeviceDescription(f"gpu{i}", "p100") for i in range(devices)],
                                    [emplace.LinkRule(bandwidth=10**9)])
    return emplace.compile(graph, cluster)
"""


def run(code, timeout=300):
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    result = subprocess.run([sys.executable, "-c", FORK + textwrap.dedent(code)], capture_output=True, text=True,
                            timeout=timeout, env=environment)
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout[-2000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def test_every_function_refuses_what_it_cannot_take():
    """Odd values for every argument of every function and constructor: an exception or an answer, never a crash."""
    out = run("""
        import inspect, itertools, math
        problem = make_problem()
        answer = emplace.place(problem, "single")
        odd = [None, True, -1, 0, 2**31, 2**63, -2**63, 2**200, 1.5, math.nan, math.inf, "", "x" * 100_000, "\\0", "\\ud800",
               b"x", [], [[]], [None], {}, {"a": 1}, {1: 2}, object(), object, problem, problem.graph, problem.cluster, answer,
               lambda *given: None, range(3), (0, 1), [0] * 4, [9] * 4, ["gpu0"] * 4, iter([0] * 4)]
        try:
            import numpy
            odd += [numpy.zeros(4), numpy.zeros((2, 2), int), numpy.array([[0] * 4]), numpy.array(["a"]), numpy.zeros(0, "int8"),
                    numpy.zeros((2, 4), "int32")[:, ::-1], numpy.full(4, 2**40)]
        except ImportError:
            pass
        skip = {"train", "Comparison"}  # long, and a list
        calls = 0
        expected = (TypeError, ValueError, OverflowError, AttributeError, RuntimeError, KeyError, IndexError, OSError,
                    UnicodeError)
        def call(function, *given, **named):
            global calls
            calls += 1
            try:
                function(*given, **named)
            except expected:
                pass
        from emplace import _emplace
        for module in (emplace, _emplace):
            for name in dir(module):
                function = getattr(module, name)
                if name.startswith("_") or name in skip or not callable(function):
                    continue
                for value in odd:
                    call(function, value)
                    call(function, problem, value) if name not in ("place", "compare") else None
                    call(function, value, problem)
                call(function)
        for value in odd:
            for key in ("scheduler", "objective", "seed", "most_devices", "starts", "samples", "learning", "threads",
                        "evaluations"):
                call(emplace.place, problem, "single", **{key: value})
            call(emplace.place, problem, value, seconds=0.05)
            call(emplace.place, problem, "single", seconds=value if isinstance(value, (str, bytes, list, dict)) else -1)
            call(emplace.simulate, problem, [0] * 4, value)
            call(emplace.Environment(problem).evaluate, value)
            call(problem.graph.op, value)
            call(problem.graph.tensor, value)
            call(emplace.LinkRule, bandwidth=value)
            call(emplace.DeviceDescription, "a", "p100", value)
        print(calls)
    """, timeout=900)
    assert int(out.split()[-1]) > 2000


def test_what_an_answer_hands_out_outlives_it():
    run("""
        import gc
        def pieces():
            problem = make_problem()
            answer = emplace.place(problem, "heft")
            timeline = answer.timeline
            return (answer.placement, timeline.start, timeline.finish, timeline.devices, timeline.transfers, problem.durations,
                    problem.graph.op(1), problem.graph.tensor(1), problem.cluster.devices, emplace.features_of(problem),
                    emplace.list_placers()[0].options, timeline.problem)
        for _ in range(50):
            kept = pieces()
            gc.collect()
            junk = [bytearray(1000) for _ in range(1000)]  # takes the place of what was freed
            assert kept[0].sum() >= 0 and (kept[2] >= kept[1]).all()
            for piece in kept:
                repr(piece)
            assert kept[6].name == "left" and kept[7].bytes == 1000 and kept[-1].graph.num_ops == 4
    """)


def test_a_session_is_of_no_use_after_its_search():
    run("""
        problem = make_problem()
        kept = []
        def placer(session):
            kept.append(session)
            session.evaluate([[0] * session.num_groups])
            return None
        emplace.place(problem, placer)
        for _ in range(3):
            try:
                kept[0].evaluate([[0] * 4])
            except (emplace.Error, ValueError, RuntimeError):
                continue
            raise SystemExit("it evaluated")
        repr(kept[0])
    """)


def test_threads_share_problems():
    """numpy is loaded by the first that needs an array; here all of them do, at once."""
    run("""
        import sys, threading
        assert "numpy" not in sys.modules
        problem = make_problem()
        failures = []
        environment = emplace.Environment(problem)
        best = emplace.place(problem, "hill_climb", evaluations=50).time
        def work(number):
            try:
                for i in range(10):
                    assert emplace.simulate(problem, [0, 0, 1, 0]).step > 0
                    environment.evaluate([[i % 2] * 4] * 8)
                    assert emplace.place(problem, "hill_climb", evaluations=50, threads=2).time == best
                    try:
                        emplace.simulate(problem, [7] * 4)
                    except emplace.Error:
                        pass
            except BaseException as error:
                failures.append(repr(error))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not failures, failures[:3]
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_can_place_on():
    """Also after searches on several threads, which a child does not have."""
    run("""
        import os, signal
        problem = make_problem()
        expected = emplace.place(problem, "auto", evaluations=200, threads=2).time
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    assert emplace.simulate(problem, [0, 0, 1, 0]).step > 0
                    assert emplace.place(problem, "heft").time > 0
                    assert emplace.place(problem, "auto", evaluations=200, threads=2).time == expected
                    os._exit(0)
                except BaseException as error:
                    print(repr(error), flush=True)
                    os._exit(1)
            children.append(child)
        codes = [os.waitpid(child, 0)[1] for child in children]
        assert codes == [0] * 4, codes
        assert emplace.place(problem, "auto", evaluations=200, threads=2).time == expected
    """)
