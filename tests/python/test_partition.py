"""Divided tensors."""

import base64
import json
import random
import re

import pytest

import emplace


@pytest.fixture(scope="module")
def problem():
    return emplace.compile("zoo:alexnet", "2xp100")


def test_a_partition_shows_its_table_and_its_picture(problem):
    partition = emplace.partition(problem, "all-row")
    html = partition._repr_html_()
    assert html.count("<tr>") == 1 + 1 + len(partition.to_dict()["compared"]) + 2  # one device, placed
    assert "all-row" in html and "one device (gpu0)" in html
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)[1]
    assert base64.b64decode(picture).decode() == partition.picture_svg()


def test_computing_is_slower_beside_communication(problem):
    alone = emplace.partition(problem, "all-row").step
    assert emplace.partition(problem, "all-row", overlap_slowdown=1.5).step > alone
    with pytest.raises(emplace.Error, match="overlap_slowdown: expected a number, not 'x'"):
        emplace.partition(problem, "all-row", overlap_slowdown="x")


@pytest.mark.parametrize("factor", [float("nan"), -1, 0.5, 100.1, 1e308, float("inf")])
def test_what_is_no_slowdown_is_refused(problem, factor):
    with pytest.raises(emplace.Error, match=f"overlap_slowdown {factor:g}.*: expected a number from 1 to 100".replace("+", ".")):
        emplace.partition(problem, "all-row", overlap_slowdown=factor)


def test_measured_collectives_take_what_they_took(problem, tmp_path):
    slow = tmp_path / "slow.csv"
    slow.write_text("op,devices,bytes,microseconds\nreduce-scatter,2,1048576,90000\nall-gather,2,1048576,90000\n")
    alone = emplace.partition(problem, "data-parallel").step
    assert emplace.partition(problem, "data-parallel", collectives=slow).step > 2 * alone
    slow.write_text("op,devices,bytes,microseconds\nbroadcast,2,1,1\n")
    with pytest.raises(emplace.Error, match="slow.csv.*'broadcast' is unknown"):
        emplace.partition(problem, "data-parallel", collectives=str(slow))


def test_progress_of_a_selection_is_told(tmp_path):
    rng = random.Random(1)
    count = 300
    edges = sorted({tuple(sorted(rng.sample(range(count), 2))) for _ in range(6 * count)})
    (tmp_path / "hard.json").write_text(json.dumps({"problem": {
        "name": "hard",
        "nodes": {
            "intervals": [[0, 100]] * count,
            "costs": [[rng.randrange(1000) for _ in range(10)] for _ in range(count)],
            "usages": [[rng.randrange(100) for _ in range(10)] for _ in range(count)],
        },
        "edges": {"nodes": edges, "costs": [[rng.randrange(1000) for _ in range(100)] for _ in edges]},
        "usage_limit": 30 * count,
    }}))
    lines = []
    found = emplace.select(tmp_path / "hard.json", seconds=1.5, progress=lambda line, seconds: lines.append((line, seconds)))
    assert found.feasible and lines and lines[-1][1] > 0 and any(char.isdigit() for char in lines[-1][0])
    with pytest.raises(TypeError, match="progress: expected True"):
        emplace.select(tmp_path / "hard.json", progress=3)
