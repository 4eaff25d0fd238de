#!/usr/bin/env python3
"""What an evaluation of emplace.Environment takes from Python, beside the same from C++, in turn, in one run: the
least processor time of several batches, on one thread, which a busy machine changes the least. Then how many of them
come in a second of the clock on two threads, which it changes a lot: the median and the most of several batches.

Rows of three sorts: random; contiguous (the groups in order, cut at random places); moves (a contiguous placement with
one group elsewhere, as a local search asks for).

    PYTHONPATH=build/python /usr/bin/python3 bench/environment.py [build/bench/environment]

With `clock` in place of the program, the second part alone; with a sort of rows, evaluates these alone, for a profiler
to look at:

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


def profiled(kind, model="zoo:bert-base:layers=1", count=20_000, repeats=12):
    problem = emplace.compile(model, CLUSTER)
    environment = emplace.Environment(problem, threads=1)
    rows = rows_of(kind, count, environment.num_groups)
    processor = min(processor_time(environment, rows) for _ in range(repeats))
    print(f"{model}, {kind}: {processor:.2f} us an evaluation, {1e3 * processor / len(problem.graph):.1f} ns an op")


def by_the_clock(repeats=25):
    print("| graph | placements | in a second on two threads, median | most | load of the last minute |")
    for model, count in WORKLOADS[:2]:
        problem = emplace.compile(model, CLUSTER)
        environment = emplace.Environment(problem, threads=2)
        for kind in ("random", "contiguous", "moves"):
            rows = rows_of(kind, count, environment.num_groups)
            rates = []
            for _ in range(repeats):
                start = time.perf_counter()
                environment.evaluate(rows)
                rates.append(len(rows) / (time.perf_counter() - start))
            print(f"| {model}, {len(problem.graph):,} ops | {kind} | {statistics.median(rates):,.0f} | {max(rates):,.0f} "
                  f"| {os.getloadavg()[0]:.1f} |", flush=True)


def main():
    if sys.argv[1:] == ["clock"]:
        return by_the_clock()
    if sys.argv[1:] and sys.argv[1] in ("random", "contiguous", "moves"):
        return profiled(sys.argv[1])
    program = sys.argv[1] if len(sys.argv) > 1 else "build/bench/environment"
    print("| graph | placements | from Python, us | from C++, us | Python by C++ |")
    for model, count in WORKLOADS:
        problem = emplace.compile(model, CLUSTER)
        environment = emplace.Environment(problem, threads=1)
        for kind in ("random", "contiguous", "moves"):
            rows = rows_of(kind, count, environment.num_groups)
            environment.evaluate(rows)
            ours, theirs = in_turn(program, model, environment, rows)
            name = pathlib.Path(model).name
            print(f"| {name}, {len(problem.graph):,} ops | {kind} | {ours:,.1f} | {theirs:,.1f} | {ours / theirs:.2f} |",
                  flush=True)
    by_the_clock()


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
