"""The simulator as an environment."""

import threading

import numpy as np
import pytest

import emplace


def test_values_are_the_simulators(gnmt):
    environment = emplace.Environment(gnmt)
    random = np.random.default_rng(1)
    rows = random.integers(2, size=(40, environment.num_groups), dtype=np.int32)
    times, overflow = environment.evaluate(rows)
    for row, time, over in zip(rows, times, overflow):
        timeline = emplace.simulate(gnmt, environment.placement(row))
        assert timeline.step == time and timeline.fits == (over == 0)
    assert environment.evaluations == 40
    assert (environment.evaluate(rows.astype(np.int64))[0] == times).all()
    assert (environment.evaluate(np.asfortranarray(rows))[0] == times).all()
    assert environment.assess(rows[0]).time == times[0]


@pytest.mark.parametrize("moves", [1, 2, 5])
def test_placements_that_are_close_have_the_same_values(gnmt, moves):
    """They are valued by what changes; 5 moves are too many for that."""
    environment = emplace.Environment(gnmt)
    random = np.random.default_rng(moves)
    groups = environment.num_groups
    base = random.integers(2, size=groups, dtype=np.int32)
    rows = np.repeat(base[None, :], 300, axis=0)
    for row in rows:
        moved = random.integers(groups, size=random.integers(moves + 1))
        row[moved] = 1 - row[moved]
    rows[100] = random.integers(2, size=groups)  # one from elsewhere among them
    times, overflow = environment.evaluate(rows)
    exact, short = emplace.simulate_all(gnmt, np.array([environment.placement(row) for row in rows]))
    assert (times == exact).all() and (overflow == short).all()
    assert environment.evaluations == 300
    again, _ = environment.evaluate(rows[150:])
    assert (again == exact[150:]).all()


def test_a_walk_from_placement_to_placement(gnmt):
    environment = emplace.Environment(gnmt, threads=1)
    random = np.random.default_rng(5)
    rows = np.zeros((400, environment.num_groups), dtype=np.int32)
    for i in range(1, len(rows)):
        rows[i] = rows[i - 1]
        rows[i, random.integers(environment.num_groups)] ^= 1
    times, _ = environment.evaluate(rows)
    exact, _ = emplace.simulate_all(gnmt, np.array([environment.placement(row) for row in rows]))
    assert (times == exact).all()


def test_memory_that_is_short_is_counted(make):
    problem = make(memory=2500)
    environment = emplace.Environment(problem)
    times, overflow = environment.evaluate([[0, 0, 0, 0]])
    assert overflow[0] == emplace.simulate(problem, [0, 0, 0, 0]).devices[0].peak - 2500 > 0
    environment.reset()
    for _ in range(4):
        *_, info = environment.step(0)
    assert not info["fits"] and info["overflow"] == overflow[0]


def test_an_episode(fork):
    environment = emplace.Environment(fork)
    observation, info = environment.reset(seed=1)
    assert observation["group"] == 0 and (observation["devices"] == -1).all() and info == {}
    assert environment.action_space.n == 2
    rewards = []
    for device in (0, 0, 1, 0):
        observation, reward, terminated, truncated, info = environment.step(device)
        rewards.append(reward)
        assert not truncated
    assert terminated and rewards == [0, 0, 0, -111e-6] and info["time"] == 111_000
    with pytest.raises(emplace.Error, match="call reset first"):
        environment.step(0)
    own = emplace.Environment(fork, reward=lambda time, overflow: 1 / time)
    own.reset()
    assert [own.step(0)[1] for _ in range(4)][-1] == 1 / 210_000


@pytest.mark.parametrize("action", [1.7, "x", 2, -1, None, [0, 1], np.array([0, 1])])
def test_actions_that_are_no_device_are_refused(fork, action):
    environment = emplace.Environment(fork)
    environment.reset()
    with pytest.raises(emplace.Error, match=r"op 'start': device number .*; expected one of \[0, 1\]"):
        environment.step(action)
    assert environment.step(np.int64(1))[0]["devices"].tolist() == [1, -1, -1, -1]
    assert environment.step(np.array(0))[0]["devices"].tolist() == [1, 0, -1, -1]
    assert environment.step(True)[0]["devices"].tolist() == [1, 0, 1, -1]
    assert environment.step(np.bool_(False))[-1]["devices"].tolist() == [1, 0, 1, 0]


def test_spaces_have_what_is_in_an_episode(fork):
    environment = emplace.Environment(emplace.compile(fork.graph, fork.cluster, pin=["left=gpu1"]))
    actions, observations = environment.action_space, environment.observation_space
    assert actions.contains(np.int64(1)) and 1 in actions and 2 not in actions and not actions.contains(1.0)
    observation, _ = environment.reset()
    terminated = False
    while not terminated:
        assert observation in observations
        action = actions.sample(observation["allowed"])
        assert action in actions
        observation, _, terminated, _, info = environment.step(action)
    assert observation in observations and info["devices"][1] == 1
    for name, wrong in (("group", 6), ("allowed", np.ones(3, dtype=bool)), ("devices", np.full(4, 2, dtype=np.int32)),
                        ("devices", observation["devices"].astype(float)), ("allowed", np.full(2, 7))):
        assert {**observation, name: wrong} not in observations
    assert {} not in observations and 3 not in observations
    observations.seed(5)
    drawn = observations.sample()
    assert drawn in observations
    observations.seed(5)
    again = observations.sample()
    assert all(np.array_equal(drawn[name], again[name]) for name in drawn)
    actions.seed(3)
    first = [actions.sample() for _ in range(20)]
    actions.seed(3)
    assert first == [actions.sample() for _ in range(20)] and set(first) == {0, 1}


def test_the_period_of_a_stream(fork):
    environment = emplace.Environment(fork, objective="period")
    times, _ = environment.evaluate([[0, 0, 1, 0]])
    assert times[0] == 110_000 == environment.assess([0, 0, 1, 0]).time


@pytest.mark.parametrize(
    "rows, message",
    [
        ([0, 0, 1, 0], "2 dimensions"),
        ([[0, 0, 1]], "rows of 4 devices, one for each group, not 3"),
        ([[0, 0, 1, 0], [0, 0, 2, 0]], "placement 1: op 'right'.*2; the cluster has 2"),
        ([[0, 0, -1, 0]], "op 'right'.*-1"),
        ([[0, 0, 1 << 32, 0]], "op 'right'"),
        ([[0.5, 0, 1, 0]], "whole numbers"),
        ([[0, 0], [1]], "whole numbers|dimensions"),
        ("gpu0", "whole numbers"),
    ],
)
def test_what_is_no_batch_is_refused(fork, rows, message):
    with pytest.raises(emplace.Error, match=message):
        emplace.Environment(fork).evaluate(rows)


def test_no_rows_have_no_values(fork):
    times, overflow = emplace.Environment(fork).evaluate(np.zeros((0, 4), dtype=np.int32))
    assert len(times) == len(overflow) == 0


def test_rules_hold(fork):
    pinned = emplace.compile(fork.graph, fork.cluster, pin=["left=gpu1"])
    environment = emplace.Environment(pinned)
    with pytest.raises(emplace.Error, match="op 'left'.*may only be on gpu1"):
        environment.evaluate([[0, 0, 0, 0]])
    environment.reset()
    environment.step(0)
    with pytest.raises(emplace.Error, match=r"op 'left': device number 0; expected one of \[1\]"):
        environment.step(0)


def test_links_that_are_missing_are_noticed(fork):
    devices = [emplace.DeviceDescription(f"gpu{i}", "p100") for i in range(2)]
    one_way = emplace.build_cluster("one way", devices, [emplace.LinkRule("gpu0", "gpu1", bandwidth=10**9)])
    environment = emplace.Environment(emplace.compile(fork.graph, one_way))
    assert environment.evaluate([[0, 0, 0, 1]])[0][0] > 0
    with pytest.raises(emplace.Error, match="placement 0.*no link"):
        environment.evaluate([[1, 1, 1, 0]])


def test_features(fork, gnmt):
    features = emplace.features_of(fork)
    assert features["names"] == ["start", "left", "right", "join"]
    assert features["durations"].tolist() == [[0, 0], [100_000] * 2, [100_000] * 2, [10_000] * 2]
    assert sorted(map(tuple, features["edges"].tolist())) == [(0, 1), (1, 3), (2, 3)]
    assert features["edge_bytes"].tolist() == [1000] * 3
    assert features["before"].tolist() == [0, 0, 0, 100_000]
    assert features["after"].tolist() == [110_000, 110_000, 110_000, 10_000]
    large = emplace.features_of(gnmt)
    assert large["durations"].sum() == gnmt.durations.sum()
    assert large["ops"].sum() == len(gnmt.graph) and large["allowed"].all()
    assert large["edges"].max() < len(large["names"])


def test_rows_that_are_written_meanwhile_are_refused_or_evaluated():
    """What was checked is what is evaluated."""
    environment = emplace.Environment(emplace.compile("zoo:bert-base:layers=1", "4xp100"), threads=2)
    rows = np.random.default_rng(1).integers(4, size=(2000, environment.num_groups), dtype=np.int32)
    ended = threading.Event()

    def write():
        while not ended.wait(0.0005):
            rows[:, ::7] = 60_000
            rows[:, ::7] = 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            try:
                environment.evaluate(rows)
            except emplace.Error as error:
                assert "device number 60000" in str(error)
    finally:
        ended.set()
        writer.join()
