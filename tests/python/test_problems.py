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
