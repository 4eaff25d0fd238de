#!/usr/bin/env python3
"""Whether memory stays flat over thousands of captures and placements: prints the resident set as it goes.

    PYTHONPATH=build/python /usr/bin/python3 bench/leaks.py [--captures 10000] [--places 10000] [--torch-places 0]
"""

import argparse
import gc
import os
import time

import emplace


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def watch(what, count, work):
    """After a tenth, so that what is allocated once does not count."""
    for _ in range(count // 10):
        work()
    before, start = resident(), time.process_time()
    print(f"{what}: {before / 2**20:.1f} MiB after {count // 10}", flush=True)
    for part in range(9):
        for _ in range(count // 10):
            work()
        print(f"{what}: {resident() / 2**20:.1f} MiB after {(part + 2) * (count // 10)}", flush=True)
    grown = resident() - before
    seconds = time.process_time() - start
    print(f"{what}: grew by {grown / 2**10:.0f} KiB, {grown / count:.1f} B each; {1000 * seconds / count:.2f} ms of processor each")
    return grown


def places(problem):
    answer = emplace.place(problem, "expert", threads=1)
    answer.device_of, answer.timeline.transfers, answer.explanation()


def capturing():
    import torch
    import emplace.torch

    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    x, y = torch.zeros(2, 8), torch.zeros(2, dtype=torch.long)

    def work():
        emplace.torch.capture(net, x, loss=torch.nn.functional.cross_entropy, targets=y).graph.num_ops

    return work


def placing():
    """Captures, places, trains a step and infers, each time with another model."""
    import torch
    import emplace.torch

    x, y = torch.zeros(2, 8), torch.zeros(2, dtype=torch.long)

    def work():
        net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        placed = emplace.torch.place(net, x, loss=torch.nn.functional.cross_entropy, targets=y, devices=["cpu"],
                                     placer="single", optimizer=torch.optim.SGD(net.parameters(), lr=0.1), threads=1)
        placed(x, y), placed.eval()(x)

    return work


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captures", type=int, default=10_000)
    parser.add_argument("--places", type=int, default=10_000)
    parser.add_argument("--torch-places", type=int, default=0)
    arguments = parser.parse_args()
    problem = emplace.compile("zoo:gnmt-2:batch=8,sequence=4", "2xp100")
    if arguments.places:
        watch("places", arguments.places, lambda: places(problem))
    if arguments.captures:
        watch("captures", arguments.captures, capturing())
    if arguments.torch_places:
        watch("placed models", arguments.torch_places, placing())


if __name__ == "__main__":
    main()
