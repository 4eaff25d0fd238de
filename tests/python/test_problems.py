"""Models, clusters, problems and simulation, by hand-made figures."""

import numpy as np
import pytest

import emplace

APART = [0, 0, 1, 0]
TOGETHER = [0, 0, 0, 0]


def test_a_graph_says_what_is_in_it():
    graph = emplace.zoo("resnet-50", batch=64).graph
    assert graph.parameters == 25_557_032 and graph.name.startswith("resnet-50")
    assert len(graph) == graph.num_ops == len(graph.op_names)
    op = graph.op(graph.num_ops - 1)
    assert op.name == graph.op_names[-1] and graph.tensor(op.inputs[0]).bytes > 0
    assert emplace.Graph.from_json(graph.to_json()).to_json() == graph.to_json()
    assert graph.to_dict()["format"] == "emplace.graph/1"
    assert "25,557,032" in graph._repr_html_()


def test_graphs_are_built_in_code():
    tensor, op = emplace.TensorDescription, emplace.OpDescription
    graph = emplace.build_graph("pair", [
        op("x", "input", [], [tensor([4, 8], "float16")]),
        op("halves", "Split", [0], [tensor(bytes=32), tensor(bytes=32)], module="body", time_us={"p100": 3.5}),
        op("sum", "Add", [emplace.TensorReference(1, 1), 1], [tensor([2, 8])], phase="backward", flops=16,
           persistent_bytes=100, colocate="both", devices=["gpu1"]),
    ])
    ops = graph.to_dict()["ops"]
    assert [o["name"] for o in ops] == graph.op_names == ["x", "halves", "sum"]
    assert graph.op(2).inputs == [2, 1] and graph.op(2).phase == "backward" and graph.op(1).module == "body"
    assert graph.tensor(0).shape == [4, 8] and graph.tensor(0).dtype == "float16" and graph.tensor(0).bytes == 64
    assert ops[1]["time_us"] == {"p100": 3.5} and ops[2]["flops"] == 16 and ops[2]["devices"] == ["gpu1"]
    assert ops[2]["persistent_bytes"] == 100 and ops[2]["colocate"] == "both"
    assert emplace.compile(graph, "2xp100").durations[1].tolist() == [3500, 3500]
    with pytest.raises(emplace.Error, match="'sum'"):
        emplace.build_graph("wrong", [op("sum", "Add", [7])])


def test_descriptions_are_changed_as_wholes():
    """Writing into what they show would change a copy."""
    tensor = emplace.TensorDescription([4])
    op = emplace.OpDescription("a", "Mul", [0, np.int64(0)], [tensor], time_us={"p100": 3}, devices=["gpu0"])
    assert isinstance(op.inputs, tuple) and [(r.op, r.output) for r in op.inputs] == [(0, 0)] * 2
    assert op.devices == ("gpu0",) and op.outputs[0].shape == (4,) and dict(op.time_us) == {"p100": 3}
    with pytest.raises(TypeError):
        op.time_us["p100"] = 5
    for one, name in ((tensor, "shape"), (tensor, "bytes"), (op.inputs[0], "op"), (op.inputs[0], "output")):
        with pytest.raises(AttributeError):
            setattr(one, name, 1)
    op.inputs, op.outputs, op.devices = [*op.inputs, np.uint8(2)], [*op.outputs, tensor], ("gpu1", "gpu2")
    op.time_us = {**op.time_us, "v100": 2}
    again = emplace.OpDescription("b", "Mul", op.inputs, op.outputs, time_us=op.time_us, devices=op.devices)
    assert [r.op for r in again.inputs] == [0, 0, 2] and len(again.outputs) == 2
    assert again.time_us == {"p100": 3, "v100": 2} and again.devices == ("gpu1", "gpu2")
    assert emplace.TensorReference(np.int32(3), np.int64(1)).output == 1
    for inputs in ([-1], [1 << 40], [1.0], "x", [None], [np.int64(-1)]):
        with pytest.raises(emplace.Error, match="op 'a': inputs: expected a whole number that is not negative, not "):
            emplace.OpDescription("a", "Mul", inputs)
    with pytest.raises(emplace.Error, match="output: expected a whole number that is not negative, not -1"):
        emplace.TensorReference(0, -1)
    with pytest.raises(emplace.Error, match="time_us: expected microseconds by names or kinds of devices, not {1: 2}"):
        op.time_us = {1: 2}


@pytest.mark.parametrize("time", [float("nan"), float("inf"), -float("inf"), 1e30])
def test_times_that_cannot_be_counted_are_refused(fork, time):
    op = emplace.OpDescription("a", "input", [], [emplace.TensorDescription([4])], time_us={"p100": time})
    with pytest.raises(emplace.Error, match="op 'a': time_us: .* for 'p100'; expected microseconds, 1e.?12 at most") as caught:
        emplace.build_graph("g", [op])
    assert caught.value.kind == "input"
    with pytest.raises(emplace.Error, match="op 'left': .* for 'gpu0'; expected microseconds"):
        emplace.compile(fork.graph, fork.cluster, costs=lambda op, device, kind: time)


def test_files_are_given_as_paths(fork, tmp_path):
    model, cluster, placement = (tmp_path / name for name in ("m.json", "c.yaml", "p.json"))
    model.write_text(fork.graph.to_json())
    cluster.write_text(fork.cluster.to_yaml())
    assert emplace.read_model(model).graph.to_json() == fork.graph.to_json()
    assert emplace.read_cluster(cluster).to_yaml() == fork.cluster.to_yaml()
    problem = emplace.compile(model, cluster)
    answer = emplace.assess(problem, APART)
    answer.save(placement)
    assert emplace.read_placement(placement, problem).time == answer.time
    with pytest.raises(emplace.Error, match="none.json"):
        emplace.select(tmp_path / "none.json")
    assert emplace.read_model("zoo:alexnet:batch=1").graph.num_ops > 0


def test_models_and_problems_are_dictionaries(fork):
    said = fork.to_dict()
    assert said["graph"]["name"] == "fork" and [device["name"] for device in said["cluster"]["devices"]] == ["gpu0", "gpu1"]
    assert said["durations_ns"][1] == [100_000, 100_000] and len(said["groups"]) == 4
    model = emplace.zoo("alexnet", batch=1)
    assert model.to_dict() == {"graph": model.graph.to_dict(), "cluster": None, "notes": model.notes}


def test_models_and_problems_show_themselves():
    model = emplace.zoo("resnet-50", batch=64)
    assert "25,557,032" in model._repr_html_()
    problem = emplace.compile(model, "2xp100")
    assert all(text in problem._repr_html_() for text in ("25,557,032", "gpu1", "analytic"))


def test_options_of_models_are_arguments():
    assert emplace.zoo("gnmt-2", batch=8, sequence=4).graph.num_ops < emplace.zoo("gnmt-2").graph.num_ops
    with pytest.raises(emplace.Error, match="batchh"):
        emplace.zoo("gnmt-2", batchh=8)


def test_clusters_are_read_built_and_written():
    cluster = emplace.read_cluster("2xp100+cpu")
    assert [device.is_cpu for device in cluster.devices] == [False, False, True]
    again = emplace.Cluster.from_yaml(cluster.to_yaml())
    assert again.to_dict()["devices"] == cluster.to_dict()["devices"]
    assert "gpu1" in cluster._repr_html_()
    with pytest.raises(emplace.Error, match="nowhere") as caught:
        emplace.read_cluster("nowhere.yaml")
    assert isinstance(caught.value, ValueError) and caught.value.kind in ("system", "option", "input")


def test_the_step_is_exact(fork):
    timeline = emplace.simulate(fork, APART)
    assert timeline.step == 111_000 and timeline.fits
    assert timeline.start.tolist() == [0, 0, 0, 101_000] or timeline.start[3] == 101_000
    assert timeline.transfer_bytes == timeline.transfers["bytes"].sum()
    assert timeline.devices[1].busy == 100_000
    assert emplace.simulate(fork, TOGETHER, priorities=[0, 1, 2, 0]).start[1] == 100_000
    assert timeline.to_dict()["step_ns"] == 111_000
    assert timeline._repr_html_().count("<rect") >= 3


def test_names_will_do_for_numbers(fork):
    names = {"start": "gpu0", "left": "gpu0", "right": "gpu1", "join": "gpu0"}
    assert emplace.simulate(fork, names).step == emplace.simulate(fork, np.array(APART)).step
    answer = emplace.assess(fork, names)
    assert answer.device_of == names and emplace.simulate(fork, answer).step == answer.time


def test_many_at_once(fork):
    steps, overflow = emplace.simulate_all(fork, np.array([APART, TOGETHER] * 20), threads=2)
    assert steps.tolist() == [111_000, 210_000] * 20 and not overflow.any()


@pytest.mark.parametrize(
    "placement, message",
    [
        ([0, 0, 1], "each of 4 ops, not 3"),
        ([[0, 0, 1, 0]], "1 dimension"),
        ([0, 0, 5, 0], "op 'right'.*5; the cluster has 2"),
        ([0, 0, -1, 0], "op 'right'.*-1"),
        ([0, 0, 1 << 40, 0], "op 'right'"),
        ([0.5, 0, 1, 0], "whole numbers"),
        (["gpu0"] * 4, "whole numbers"),
        (None, "placement"),
        ({"start": "gpu0"}, "op 'left'"),
        ({"start": "gpu0", "left": "gpu0", "right": "gpu7", "join": "gpu0"}, "op 'right'.*'gpu7'"),
        ({"start": "gpu0", "left": "gpu0", "right": "gpu0", "join": "gpu0", "more": "gpu0"}, "5 ops, the graph 4"),
    ],
)
def test_what_is_no_placement_is_refused(fork, placement, message):
    with pytest.raises(emplace.Error, match=message):
        emplace.simulate(fork, placement)


def test_rows_that_are_no_placements_are_refused(fork):
    with pytest.raises(emplace.Error, match="rows of 4"):
        emplace.simulate_all(fork, [[0, 0]])
    with pytest.raises(emplace.Error, match="placement 1.*op 'right'"):
        emplace.simulate_all(fork, [APART, [0, 0, 1 << 32, 0]])
    with pytest.raises(emplace.Error, match="priorities"):
        emplace.simulate(fork, APART, priorities=[1, 2])


def test_costs_of_ones_own(fork):
    def costs(op, device, kind):
        return 7.0 if op.name == "join" else None

    problem = emplace.compile(fork.graph, fork.cluster, costs=costs)
    assert problem.durations[:, 0].tolist() == [0, 100_000, 100_000, 7_000]
    with pytest.raises(ZeroDivisionError):
        emplace.compile(fork.graph, fork.cluster, costs=lambda op, device, kind: 1 / 0)
    for wrong in ("5", [5], b"5"):
        with pytest.raises(emplace.Error, match="costs: gave .*5.* for op '.*' on '.*'; expected microseconds, or None"):
            emplace.compile(fork.graph, fork.cluster, costs=lambda op, device, kind: wrong)
    five = emplace.compile(fork.graph, fork.cluster, costs=lambda op, device, kind: np.float32(5))
    assert (five.durations[five.durations > 0] == 5000).all()


def test_numbers_that_are_too_large_are_refused(fork):
    large = np.full(len(fork.graph), 2**63, dtype=np.uint64)
    with pytest.raises(emplace.Error, match=r"priorities: expected numbers below 2\^63, not 9223372036854775808"):
        emplace.simulate(fork, [0] * len(fork.graph), priorities=large)
    assert emplace.simulate(fork, [0] * len(fork.graph), priorities=(large - 1)).step > 0


def test_rules_and_wrong_arguments(fork):
    pinned = emplace.compile(fork.graph, fork.cluster, pin=["left=gpu1"])
    with pytest.raises(emplace.Error, match="op 'left'"):
        emplace.simulate(pinned, APART)
    with pytest.raises(emplace.Error, match="list of rules"):
        emplace.compile(fork.graph, fork.cluster, pin="left=gpu1")
    with pytest.raises(emplace.Error, match="gpu9"):
        emplace.compile(fork.graph, fork.cluster, pin=["left=gpu9"])
    with pytest.raises(emplace.Error, match="cost 'guess'"):
        emplace.compile(fork.graph, fork.cluster, cost="guess")
    with pytest.raises(emplace.Error, match="cluster: expected one"):
        emplace.compile(fork.graph)
    op = '{"name": "a", "type": "add", "inputs": [3], "outputs": []}'
    with pytest.raises(emplace.Error, match="op 'a'.*inputs"):
        emplace.Graph.from_json(f'{{"format": "emplace.graph/1", "name": "x", "tensors": [], "ops": [{op}]}}')
