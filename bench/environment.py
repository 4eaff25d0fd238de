#!/usr/bin/env python3
"""What an evaluation of emplace.Environment takes from Python, beside the same from C++, in turn, in one run: the
least processor time of several batches, on one thread, which a busy machine changes the least. And how many from Python
come in a second of the clock on two threads: the median and the most of several batches, and the machine's load meanwhile.

Rows of three sorts: random; contiguous (the groups in order, cut at random places); moves (a contiguous placement with
one group elsewhere, as a local search asks for).

    PYTHONPATH=build/python /usr/bin/python3 bench/environment.py [build/bench/environment]

With a sort of rows in place of the program, evaluates these alone, for a profiler to look at:

    PYTHONPATH=build/python perf record /usr/bin/python3 bench/environment.py random
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import emplace
import numpy as np

CLUSTER = "4xp100"
EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "gnmt4-b256.json.gz"
WORKLOADS = [("zoo:gpt2-small:layers=2", 4_000), ("zoo:bert-base:layers=1", 4_000), ("zoo:gnmt-4", 128), (str(EXAMPLE), 128)]
ROUNDS = 5


def rows_of(kind, count, groups, devices=4):
    random = np.random.default_rng(1)
    if kind == "random":
        return random.integers(devices, size=(count, groups), dtype=np.int32)
    cuts = np.sort(random.integers(groups, size=(1 if kind == "moves" else count, devices - 1)), axis=1)
    rows = (np.arange(groups)[None, :, None] >= cuts[:, None, :]).sum(axis=2).astype(np.int32)
    if kind == "moves":
        rows = np.repeat(rows, count, axis=0)
        moved = random.integers(groups, size=count)
        rows[np.arange(count), moved] = (rows[np.arange(count), moved] + random.integers(1, devices, size=count)) % devices
    return rows


def processor_time(environment, rows):
    """Microseconds of one processor for an evaluation: what a busy machine changes the least."""
    start = time.process_time()
    environment.evaluate(rows)
    return 1e6 * (time.process_time() - start) / len(rows)


def rates(environment, rows, repeats=9):
    """Evaluations per second by the clock."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        environment.evaluate(rows)
        found.append(len(rows) / (time.perf_counter() - start))
    return found


def profiled(kind, model="zoo:bert-base:layers=1", count=20_000, repeats=12):
    problem = emplace.compile(model, CLUSTER)
    environment = emplace.Environment(problem, threads=1)
    rows = rows_of(kind, count, environment.num_groups)
    processor = min(processor_time(environment, rows) for _ in range(repeats))
    print(f"{model}, {kind}: {processor:.2f} us an evaluation, {1e3 * processor / len(problem.graph):.1f} ns an op")


def main():
    if sys.argv[1:] and sys.argv[1] in ("random", "contiguous", "moves"):
        return profiled(sys.argv[1])
    program = sys.argv[1] if len(sys.argv) > 1 else "build/bench/environment"
    print("| graph | placements | from Python, us | from C++, us | Python by C++ | in a second on two threads, median | most |")
    for model, count in WORKLOADS:
        problem = emplace.compile(model, CLUSTER)
        environment, on_two = emplace.Environment(problem, threads=1), emplace.Environment(problem, threads=2)
        for kind in ("random", "contiguous", "moves"):
            rows = rows_of(kind, count, environment.num_groups)
            environment.evaluate(rows)
            ours, theirs = in_turn(program, model, environment, rows)
            many = rates(on_two, rows_of(kind, 10 * count, environment.num_groups))
            name = pathlib.Path(model).name
            print(f"| {name}, {len(problem.graph):,} ops | {kind} | {ours:,.1f} | {theirs:,.1f} | {ours / theirs:.2f} "
                  f"| {statistics.median(many):,.0f} | {max(many):,.0f} |", flush=True)
    print(f"load of the last minute and 15: {os.getloadavg()[0]:.1f}, {os.getloadavg()[2]:.1f}")


def in_turn(program, model, environment, rows):
    ours, theirs = [], []
    with tempfile.NamedTemporaryFile() as file:
        file.write(rows.tobytes())
        file.flush()
        for _ in range(ROUNDS):
            ours += [processor_time(environment, rows) for _ in range(3)]
            done = subprocess.run([program, model, CLUSTER, file.name, "1", "3"], capture_output=True, text=True, check=True)
            theirs += [float(line) for line in done.stdout.split()]
    return min(ours), min(theirs)


if __name__ == "__main__":
    main()
