"""Steps executed on this machine, on devices that share a core: what is there, not how fast it is."""

import inspect
import os
import pathlib
import re
import signal
import threading

import emplace
import numpy as np
import pytest

learned = [info.key for info in emplace.list_placers() if info.family == "learned"]
pytestmark = pytest.mark.skipif(not learned, reason="built without libtorch")

CORE = min(os.sched_getaffinity(0))
SHARED_CORE = f"""format: emplace.cluster/1
name: shared
devices:
  - {{name: a, kind: cpu, memory: 1GiB, runs_on: "cores {CORE}"}}
  - {{name: b, kind: cpu, memory: 1GiB, runs_on: "cores {CORE}"}}
links: [{{from: "*", to: "*", bandwidth: 1GB/s, latency_us: 10, channel: out}}]
"""
MODEL = "zoo:stacked-rnn:layers=1,hidden=16,sequence=2,batch=4"


@pytest.fixture(scope="module")
def problem():
    return emplace.compile(MODEL, emplace.Cluster.from_yaml(SHARED_CORE))


def test_a_placement_is_executed_beside_its_prediction(problem):
    answer = emplace.place(problem, "expert", use_cpu=True)
    result = emplace.run(problem, answer, steps=4, warm_up=2, seed=3)
    assert result.fits and result.failure == "" and not result.interrupted
    assert len(result.steps) == 4 and result.low <= result.time <= result.high
    assert result.predicted > 0 and result.oracle > 0
    assert len(result.losses) == 6 and np.isfinite(result.losses).all()
    assert len(result.op_times) == len(problem.graph) and result.op_times.max() > 0
    assert (result.peaks > 0).any() and (result.placement == answer.placement).all()
    assert result.measured_timeline.step in result.steps
    assert result.predicted_timeline.step == result.predicted
    said = result.to_dict()
    assert said["steps"] == 4 and said["step_ms"] == pytest.approx(result.time / 1e6)
    assert "measured" in str(result) and result.trace_json().startswith("{")
    html = result._repr_html_()
    assert html.count("<svg") == 2 and "predicted" in html
    # The same seed, the same numbers, wherever ops are.
    alone = emplace.run(problem, [0] * len(problem.graph), steps=4, warm_up=2, seed=3)
    assert alone.losses.tolist() == result.losses.tolist()


def test_a_profile_is_a_graph_and_a_cluster_with_measured_times(problem, tmp_path):
    found = emplace.profile(problem, phases=1, steps=2, warm_up=1, proposals=0, busy=False)
    measured = emplace.compile(found.graph, found.cluster, cost="measured")
    assert measured.durations.sum() > 0 and found.drift >= 1
    assert "measured on" in str(found) and "<pre>" in found._repr_html_()
    assert found.to_dict()["kinds"]
    found.save(tmp_path / "rnn.json.gz")
    assert sorted(os.listdir(tmp_path)) == ["rnn.json.gz", "rnn.yaml"]
    again = emplace.compile(str(tmp_path / "rnn.json.gz"), str(tmp_path / "rnn.yaml"), cost="measured")
    assert (again.durations == measured.durations).all()


def test_without_a_placement_everything_is_on_one_device(problem):
    result = emplace.run(problem, steps=1, warm_up=0)
    assert result.time > 0 and len(set(result.placement)) == 1


def test_memory_that_is_short_is_an_answer():
    small = emplace.Cluster.from_yaml(SHARED_CORE.replace("1GiB", "10KiB"))
    result = emplace.run(emplace.compile(MODEL, small), [0] * len(emplace.read_model(MODEL).graph), steps=1,
                         limit_memory=True)
    assert not result.fits and "memory" in result.failure and "does not fit" in result._repr_html_()
    with pytest.raises(emplace.Error, match="nothing was measured"):
        result.measured_timeline


def interrupt(line, seconds):
    """A listener that presses Ctrl-C when some steps are done, however slow the machine is."""
    if not line.startswith("step ") or int(line.split()[1]) > 3:
        os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_ends_it_with_what_was_timed(problem):
    result = emplace.run(problem, [0] * len(problem.graph), steps=1_000_000, warm_up=0, progress=interrupt)
    assert result.interrupted and 0 < len(result.steps) < 1_000_000
    with pytest.raises(KeyboardInterrupt):
        emplace.profile(problem, phases=1000, steps=1000, progress=interrupt)


def test_two_at_once_follow_each_other(problem):
    def work(i):
        times[i] = emplace.run(problem, [0] * len(problem.graph), steps=2, warm_up=0).time

    times = [0, 0]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(times) > 0


@pytest.mark.parametrize("function, struct", [(emplace.run, "RunOptions"), (emplace.profile, "ProfileOptions")])
def test_defaults_are_those_of_the_library(function, struct):
    header = (pathlib.Path(__file__).resolve().parents[2] / "include/emplace/execute.h").read_text()
    written = re.search(rf"struct {struct} {{(.*?)\n}};", header, re.S)[1]
    theirs = {name: value.strip('"') for name, value in re.findall(r"(\w+) = ([^{};]+);", written)}
    ours = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    shared = sorted(set(theirs) & set(ours))
    assert len(shared) >= 6
    assert {name: theirs[name] for name in shared} == {
        name: str(ours[name]).lower() if isinstance(ours[name], bool) else str(ours[name]) for name in shared}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"numbers": "int8"}, "numbers 'int8': expected float32, float64, own or tf32"),
        ({"steps": 0}, "steps 0: expected 1 or more"),
        ({"warm_up": -1}, "warm_up -1: expected 0 or more"),
    ],
)
def test_wrong_arguments(problem, arguments, message):
    with pytest.raises(emplace.Error, match=message):
        emplace.run(problem, [0] * len(problem.graph), **arguments)


def test_what_cannot_be_executed():
    with pytest.raises(emplace.Error, match="gpu0"):
        emplace.run(emplace.compile(MODEL, "1xp100"))
    fused = emplace.compile(MODEL, emplace.Cluster.from_yaml(SHARED_CORE), fuse=True)
    with pytest.raises(emplace.Error, match="fused kernels can only be simulated"):
        emplace.run(fused, [0] * len(fused.graph))
