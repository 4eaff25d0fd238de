#!/usr/bin/env python3
"""What several ranks are worth on one machine:

    bench/dist.py build/emplace --graphs ../shared/data/graphs --seconds 5 --seeds 3

Searches each graph for the same time with one process of T threads and with T ranks of one thread, alternately, and
prints evaluations per second, evaluations per second of processor time (which other load does not change; without what
starting and reading take, by a run that searches nothing) and the step times found, as medians over the seeds.
--at-once: the two search at the same time, so that other work on the machine is in the way of both alike; what counts
then is the processor time, of which --seconds should leave enough.
--many N: a search on N ranks, however few the cores, for correctness. --train: steps of training on 1, 2 and 4 ranks,
by the processor time of all ranks together, which says what sharing costs, and of the busiest, which is what a step
takes where each rank has a core of its own; both without what comes before the first step. The policies are compared.

    bench/dist.py build/emplace --learned "colocrl" --ranks 1 2 4 --seconds 20 --evaluations 400

A placer that learns on each number of ranks, of one thread each: under --evaluations, whose samples ranks value (the
answers must be the same), and under --time with as many controllers as the most ranks. Prints placements per second and
per second of processor time, and how soon a step time was reached that all of them reached: seconds, and placements.

    bench/dist.py build/emplace --scaling 8x2 --seconds 3 --out FILE

8 ranks of 2 threads against one process of 2 threads that has the same time, and one that has 8 times as much, on the
six graphs and the clusters a, b and c of docs/results/search.md: bench/dist_scaling.py. On 16 processors, with --seconds
3, in less than 5 minutes. FILE has the table of what is done whenever it is cut off."""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from dist_faults import Run
from dist_scaling import compare_scaling

GRAPHS = ["bert-base-b24", "gnmt2-b256", "gpt2-b8", "inception-v3-b32", "resnet50-b32", "transformer-xl8-b32"]


class Search:
    """One that has begun."""

    def __init__(self, emplace, graph, cluster, limits, ranks, threads, seed):
        self.command = [emplace, "place", str(graph), "-c", cluster, *limits, "--threads", str(threads), "--seed",
                        str(seed), "--json", "-q", *(["--ranks", str(ranks)] if ranks > 1 else [])]
        self.output = tempfile.TemporaryFile("w+")
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdout=self.output, stderr=self.errors)

    def end(self):
        """Step time, evaluations, seconds, processor time of all its processes, and all of the answer."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        for file in (self.output, self.errors):
            file.seek(0)
        if self.process.returncode not in (0, 1):
            sys.exit(f"{' '.join(self.command)}: {self.errors.read()}")
        answer = json.loads(self.output.read())
        return answer["step_ns"], answer["evaluations"], answer["seconds"], usage.ru_utime + usage.ru_stime, answer


def search(*arguments):
    return Search(*arguments).end()


def searches(shapes, at_once, *arguments, seed):
    """By ranks and threads, one after the other or at once."""
    if not at_once:
        return {shape: search(*arguments, *shape, seed) for shape in shapes}
    begun = {shape: Search(*arguments, *shape, seed) for shape in shapes}
    return {shape: each.end() for shape, each in begun.items()}


def reached(rows, step):
    """Seconds and placements at the first row of the curves that is as good."""
    for row in rows:
        if row["best_seconds"] and float(row["best_seconds"]) <= step:
            return float(row["seconds"]), int(row["evaluations"])
    return float("nan"), 0


def learn(options, graph):
    ranks_tried = options.ranks
    idle = {ranks: search(options.emplace, graph, options.cluster, ["-p", "heft", "--time", "1s"], ranks, 1, 1)[3]
            for ranks in ranks_tried}
    print(f"{graph.name}, {options.learned}, medians of {options.seeds} seeds")
    print(f"{'under --evaluations':26} {'ranks':>5} {'placements/s':>12} {'/cpu s':>8} {'step':>11} same answer")
    for seed in range(1, options.seeds + 1):
        first = None
        for ranks in ranks_tried:
            limits = ["-p", options.learned, "--evaluations", str(options.evaluations)]
            step, evaluations, seconds, cpu, _ = search(options.emplace, graph, options.cluster, limits, ranks, 1, seed)
            first = first or step
            cpu = max(1e-3, cpu - idle[ranks])
            print(f"{'seed ' + str(seed):26} {ranks:5} {evaluations / seconds:12.1f} {evaluations / cpu:8.1f} "
                  f"{step / 1e6:8.2f} ms {'yes' if step == first else 'NO'}", flush=True)
    key, _, rest = options.learned.rstrip(")").partition("(")
    placer = f"{key}({','.join(filter(None, [rest, f'controllers={max(ranks_tried)}']))})"
    found = {ranks: [] for ranks in ranks_tried}
    for seed in range(1, options.seeds + 1):
        curves = {}
        for ranks in ranks_tried:
            with tempfile.TemporaryDirectory() as folder:
                limits = ["-p", placer, "--time", f"{options.seconds}s", "--curves", folder]
                result = search(options.emplace, graph, options.cluster, limits, ranks, 1, seed)
                with open(pathlib.Path(folder) / "curves.csv") as file:
                    curves[ranks] = list(csv.DictReader(file))
            cpu = max(1e-3, result[3] - idle[ranks])
            found[ranks].append([result[1] / result[2], result[1] / cpu, result[0]])
        everybodys = max(float(rows[-1]["best_seconds"]) for rows in curves.values())
        for ranks in ranks_tried:
            found[ranks][-1] += reached(curves[ranks], everybodys)
    print(f"{'under --time':26} {'ranks':>5} {'placements/s':>12} {'/cpu s':>8} {'step':>11} "
          f"{'s to quality':>12} {'placements':>10}")
    for ranks in ranks_tried:
        rate, work, step, seconds, placements = (statistics.median(column) for column in zip(*found[ranks]))
        print(f"{placer:26} {ranks:5} {rate:12.1f} {work:8.1f} {step / 1e6:8.2f} ms {seconds:12.1f} {placements:10.0f}",
              flush=True)


TRAINING = ["--graphs", "family:ptb:seed=0..3", "family:cifar10:seed=0..3", "-c", "2xp100", "4xp100", "--threads", "1",
            "--tasks-per-step", "8"]


def rank_times(run):
    """The processor time of each rank, read until it ends."""
    times = {}
    tick = os.sysconf("SC_CLK_TCK")
    while run.process.poll() is None:
        for rank, pid in run.ranks.items():
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                times[rank] = max(times.get(rank, 0), (int(fields[11]) + int(fields[12])) / tick)
            except OSError:
                pass
        time.sleep(0.02)
    return times


def train(emplace, policy, steps, ranks):
    """Processor times by rank, and the policy."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "policy")
        arguments = ["train", "--policy", policy, *TRAINING, "--steps", str(steps), "-o", str(output), "-q"]
        if ranks > 1:
            arguments += ["--ranks", str(ranks)]
        run = Run(emplace, arguments)
        if ranks > 1 and not run.find_ranks(ranks):
            sys.exit("the ranks did not start: " + run.said())
        if ranks == 1:
            run.ranks = {0: run.process.pid}
        times = rank_times(run)
        if run.wait(10) != 0:
            sys.exit(run.said())
        return times, output.read_bytes()


def compare_trainings(emplace, steps):
    print(f"{'policy':10} {'ranks':>5} {'steps/cpu s, all ranks':>23} {'ratio':>6} {'steps/cpu s, busiest':>21} {'ratio':>6}")
    for policy in ("gdp", "placeto"):
        first = None
        for ranks in (1, 2, 4):
            idle, _ = train(emplace, policy, 0, ranks)
            times, result = train(emplace, policy, steps, ranks)
            own = [times[rank] - idle.get(rank, 0) for rank in times]
            rates = steps / sum(own), steps / max(own)
            first = first or (*rates, result)
            print(f"{policy:10} {ranks:5} {rates[0]:23.2f} {rates[0] / first[0]:6.2f} {rates[1]:21.2f} "
                  f"{rates[1] / first[1]:6.2f}", flush=True)
            if result != first[2]:
                sys.exit("another policy")
    return 0


def shape_of(text):
    ranks, _, threads = text.partition("x")
    return int(ranks), int(threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emplace")
    parser.add_argument("--graphs", default="../shared/data/graphs")
    parser.add_argument("--cluster", default="4xp100")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--seeds", type=int, default=0, help="default: 3; of --scaling, 1")
    parser.add_argument("--ranks", type=int, nargs="*", default=[2])
    parser.add_argument("--only", default="", help="graphs whose name has this")
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--learned", default="", help="a placer that learns, with its options")
    parser.add_argument("--evaluations", type=int, default=400)
    parser.add_argument("--train", type=int, default=0, metavar="STEPS")
    parser.add_argument("--scaling", type=shape_of, metavar="RANKSxTHREADS")
    parser.add_argument("--out", default="", help="of --scaling: a file for the table")
    options = parser.parse_args()
    options.seeds = options.seeds or (1 if options.scaling else 3)
    if options.train:
        return compare_trainings(options.emplace, options.train)
    folder = pathlib.Path(options.graphs)
    if options.scaling:
        graphs = [folder / f"{name}.json.gz" for name in GRAPHS if options.only in name]
        return compare_scaling(options.emplace, graphs, options.scaling, options.seconds,
                               list(range(1, options.seeds + 1)), options.out)
    if options.learned:
        for name in (name for name in GRAPHS if options.only in name):
            learn(options, folder / f"{name}.json.gz")
        return 0
    if options.many:
        graph = folder / "resnet50-b32.json.gz"
        limits = ["--evaluations", str(40 * options.many), "--islands", str(options.many)]
        alone = search(options.emplace, graph, options.cluster, limits, 1, 1, 1)
        many = search(options.emplace, graph, options.cluster, limits, options.many, 1, 1)
        print(f"{options.many} ranks: {many[0]} ns, one process: {alone[0]} ns, ranks {many[4]['ranks']}")
        return 0 if many[0] == alone[0] and many[4]["ranks"]["lost"] == 0 else 1
    print(f"{'graph':22} {'ranks x threads':>15} {'evals/s':>9} {'ratio':>6} {'evals/cpu s':>11} {'ratio':>6} "
          f"{'step':>11} {'ratio':>7}")
    limits = ["--time", f"{options.seconds}s"]
    for name in (name for name in GRAPHS if options.only in name):
        found = {}
        idle = {}
        question = options.emplace, folder / f"{name}.json.gz", options.cluster
        for seed in range(1, options.seeds + 1):
            for ranks in options.ranks:
                shapes = ((1, ranks), (ranks, 1))
                for shape in shapes:
                    if shape not in idle:
                        idle[shape] = search(*question, ["-p", "heft", "--time", "1s"], *shape, seed)[3]
                for shape, result in searches(shapes, options.at_once, *question, limits, seed=seed).items():
                    found.setdefault(shape, []).append(result)
        for ranks in options.ranks:
            first = None
            for shape in ((1, ranks), (ranks, 1)):
                rows = found[shape]
                rate = statistics.median(row[1] / row[2] for row in rows)
                work = statistics.median(row[1] / max(1e-3, row[3] - idle[shape]) for row in rows)
                step = statistics.median(row[0] for row in rows)
                first = first or (rate, work, step)
                print(f"{name:22} {shape[0]:9} x {shape[1]:3} {rate:9.0f} {rate / first[0]:6.2f} {work:11.0f} "
                      f"{work / first[1]:6.2f} {step / 1e6:8.2f} ms {step / first[2]:7.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
