"""Problems that many tests use."""

import json

import emplace
import pytest


def make_fork(memory: int = 1 << 30, devices: int = 2) -> emplace.Problem:
    """Two branches of 100 us, joined in 10 us; the kB that goes between devices takes 1 us."""

    def op(number, inputs, name, microseconds, type_="MatMul"):
        return {"name": name, "type": type_, "inputs": inputs, "outputs": [number], "time_us": {"p100": microseconds}}

    ops = [
        op(0, [], "start", 0, "parameter"),
        op(1, [0], "left", 100),
        op(2, [], "right", 100),
        op(3, [1, 2], "join", 10),
    ]
    tensors = [{"bytes": 1000}] * 4
    content = {"format": "emplace.graph/1", "name": "fork", "tensors": tensors, "ops": ops}
    cluster = emplace.build_cluster(
        "pair",
        [emplace.DeviceDescription(f"gpu{i}", "p100", memory=memory) for i in range(devices)],
        [emplace.LinkRule(bandwidth=1_000_000_000)],
    )
    return emplace.compile(emplace.Graph.from_json(json.dumps(content)), cluster)


@pytest.fixture
def make():
    return make_fork


@pytest.fixture
def fork() -> emplace.Problem:
    return make_fork()


@pytest.fixture(scope="session")
def gnmt() -> emplace.Problem:
    return emplace.compile("zoo:gnmt-2:batch=8,sequence=4", "2xp100")
