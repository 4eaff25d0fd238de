#!/usr/bin/env python3
"""Evaluations per second of emplace.Environment from Python, beside those from C++, in turn, in one run.

    PYTHONPATH=build/python /usr/bin/python3 bench/environment.py [build/bench/environment]
"""

import statistics
import subprocess
import sys
import tempfile
import time

import emplace
import numpy as np

CLUSTER = "4xp100"
WORKLOADS = [("zoo:gpt2-small:layers=2", 4_000), ("zoo:bert-base:layers=1", 4_000), ("zoo:gnmt-4", 128)]
THREADS = 2
ROUNDS = 5


def from_python(environment, rows):
    start = time.perf_counter()
    environment.evaluate(rows)
    return len(rows) / (time.perf_counter() - start)


def processor_time(environment, rows):
    """Microseconds of one processor for an evaluation: what a busy machine changes the least."""
    start = time.process_time()
    environment.evaluate(rows)
    return 1e6 * (time.process_time() - start) / len(rows)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/bench/environment"
    print("model                      ops   Python/s      C++/s   ratio of medians   processor time")
    for model, count in WORKLOADS:
        problem = emplace.compile(model, CLUSTER)
        environment = emplace.Environment(problem, threads=THREADS)
        rows = np.random.default_rng(1).integers(4, size=(count, environment.num_groups), dtype=np.int32)
        environment.evaluate(rows)
        ours, theirs = [], []
        with tempfile.NamedTemporaryFile() as file:
            file.write(rows.tobytes())
            file.flush()
            for _ in range(ROUNDS):
                ours += [from_python(environment, rows) for _ in range(3)]
                done = subprocess.run([program, model, CLUSTER, file.name, str(THREADS), "3"],
                                      capture_output=True, text=True, check=True)
                theirs += [float(line) for line in done.stdout.split()]
        processor = min(processor_time(environment, rows) for _ in range(ROUNDS))
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        rates = f"{ours:10.0f} {theirs:10.0f}   {ours / theirs:16.3f}"
        print(f"{model:<24} {len(problem.graph):5} {rates} {processor:13.1f} us")


if __name__ == "__main__":
    main()
