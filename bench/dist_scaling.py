"""bench/dist.py --scaling: what ranks are worth on a machine that has cores for all of them.

Each case, a captured graph on one of the clusters of bench/search (a, b, c), is searched by R ranks of T threads, on all
cores alone; by one process of T threads for the same time, alone too; and by one for R times the time. Of the last, as
many as there are groups of T cores run at once, each on its own. The table is written again after every case."""

import concurrent.futures
import json
import math
import os
import pathlib
import platform
import queue
import resource
import statistics
import subprocess
import tempfile
import time

# As bench/support/workloads.cc has them: slowdowns of the devices, and their memory in per cent of what the graph needs
# on one. The graphs were measured on this kind.
CLUSTERS = {"a": ([1, 1, 1, 1], 40), "b": ([1, 1, 1, 1], 120), "c": ([1, 2], 60)}
KIND, SLOWDOWN = "h200", 8
PATIENCE = 120  # seconds that a run may take beyond its time


def write_cluster(path, slowdowns, memory):
    devices = [{"name": f"gpu{index}", "kind": KIND, "memory": memory, "slowdown": SLOWDOWN * slowdown}
               for index, slowdown in enumerate(slowdowns)]
    links = [{"bandwidth": "12GB/s", "latency_us": 10, "channel": "pair"}]
    path.write_text(json.dumps({"format": "emplace.cluster/1", "name": path.stem, "devices": devices, "links": links}))


def single_device_peak(emplace, graph, folder):
    alone = folder / "alone.json"
    write_cluster(alone, [1], "unlimited")
    command = [emplace, "place", str(graph), "-c", str(alone), "-p", "single", "--scheduler", "fifo", "--json", "-q"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer["devices"][0]["peak_bytes"]


def core_groups(size):
    """Processors in groups of so many that share as little as possible with others: the two of a core go together."""
    def place_of(processor):
        folder = pathlib.Path(f"/sys/devices/system/cpu/cpu{processor}/topology")
        try:
            return [int(folder.joinpath(name).read_text()) for name in ("physical_package_id", "core_id")]
        except (OSError, ValueError):
            return [0, processor]
    processors = sorted(os.sched_getaffinity(0), key=lambda processor: (*place_of(processor), processor))
    return [processors[first:first + size] for first in range(0, len(processors) - size + 1, size)]


class Found:
    """What one run has found."""

    def __init__(self, answer, busy):
        self.fits = answer["fits"]
        self.step = answer["step_ns"]
        self.rate = answer["evaluations"] / max(1e-3, answer["seconds"])
        self.busy = busy  # processors, over the whole run
        self.lost = answer.get("ranks", {}).get("lost", 0)

    def beside(self, other):
        """How many times as long a step takes as the other's."""
        if self.fits and other.fits:
            return self.step / other.step
        return 1.0 if self.fits == other.fits else 0.0 if self.fits else math.inf


def search(emplace, case, shape, seconds, seed, processors):
    ranks, threads = shape
    command = ["taskset", "-c", ",".join(map(str, processors)), emplace, "place", str(case.graph), "-c",
               str(case.cluster), "--time", f"{seconds}s", "--threads", str(threads), "--seed", str(seed), "--json", "-q"]
    if ranks > 1:
        command += ["--ranks", str(ranks)]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, timeout=seconds + PATIENCE)
    took = time.monotonic() - begin
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(command)}: {run.stderr.strip()}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Found(json.loads(run.stdout), (now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime) / took)


class Case:
    def __init__(self, graph, cluster):
        self.graph = graph
        self.cluster = cluster
        self.alone, self.longer, self.ranks = [], [], []  # a run for each seed

    def median(self, own, other, figure):
        return statistics.median(figure(a, b) for a, b in zip(own, other))

    def rate(self, other):
        return self.median(self.ranks, other, lambda ranks, one: ranks.rate / one.rate)

    def step(self, other):
        return self.median(self.ranks, other, lambda ranks, one: ranks.beside(one))

    def row(self):
        def steps(runs):
            return " ".join(f"{run.step / 1e6:.2f}" if run.fits else "too large" for run in runs)
        cells = [self.graph.name.split(".")[0], self.cluster.stem, f"{statistics.median(r.rate for r in self.alone):.0f}",
                 f"{statistics.median(r.rate for r in self.ranks):.0f}", f"{self.rate(self.alone):.2f}",
                 f"{self.rate(self.longer):.2f}", f"{statistics.median(r.busy for r in self.ranks):.1f}",
                 steps(self.alone), steps(self.longer), steps(self.ranks), f"{self.step(self.alone):.4f}",
                 f"{self.step(self.longer):.4f}", str(sum(r.lost for r in self.ranks))]
        return "| " + " | ".join(cells) + " |"


class Table:
    """What is known so far, in a file that always is whole."""

    def __init__(self, path, shape, seconds, seeds, groups, version):
        self.path = path
        self.cases, self.problems = [], []
        ranks, threads = shape
        one, many = f"1 x {threads}", f"{ranks} x {threads}"
        self.head = (f"{version}; {platform.machine()}, processors {groups}; {seconds:g} s, {ranks * seconds:g} s for the "
                     f"longer; {seeds} seed(s), medians of their ratios; steps in ms; began "
                     f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}\n\n")
        columns = ["graph", "cluster", f"evaluations/s, {one}", f"{many}", "ratio", "ratio to the longer's",
                   f"processors busy, {many}", f"step, {one}", f"{one}, {ranks} times as long", many, f"ratio to {one}",
                   "ratio to the longer", "lost"]
        self.head += "| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|\n"

    def summary(self):
        if not self.cases:
            return ""
        rates = [case.rate(case.alone) for case in self.cases]
        equal_time = [case.step(case.alone) for case in self.cases]
        longer = [case.step(case.longer) for case in self.cases]
        worst = max(longer)
        return (f"\n{len(self.cases)} cases. Evaluations a second: {statistics.geometric_mean(rates):.2f} times in the "
                f"geometric mean, {min(rates):.2f} at least. Step for equal time: better in "
                f"{sum(ratio < 1 for ratio in equal_time)}, median {statistics.median(equal_time):.4f} times, worst "
                f"{100 * (max(equal_time) - 1):+.2f} %. Beside one that has the longer time: better in "
                f"{sum(ratio < 1 for ratio in longer)}, the same in {sum(ratio == 1 for ratio in longer)}, worst "
                f"{100 * (worst - 1):+.2f} %.\n")

    def write(self):
        text = self.head + "".join(case.row() + "\n" for case in self.cases) + self.summary()
        text += "".join(f"\nfailed: {problem}\n" for problem in self.problems)
        if self.path:
            beside = pathlib.Path(f"{self.path}.new")
            beside.write_text(text)
            os.replace(beside, self.path)
        return text


def run_longer(cases, seeds, groups, run):
    """All of these, each on processors of its own."""
    free = queue.SimpleQueue()
    for group in groups:
        free.put(group)

    def one(case, seed):
        group = free.get()
        try:
            return run(case, seed, group)
        finally:
            free.put(group)

    with concurrent.futures.ThreadPoolExecutor(len(groups)) as pool:
        return {case: [pool.submit(one, case, seed) for seed in seeds] for case in cases}


def compare_scaling(emplace, graphs, shape, seconds, seeds, out):
    """The exit code: 1 where a run failed."""
    ranks, threads = shape
    groups = core_groups(threads)[:ranks]
    if len(groups) < ranks:
        print(f"{ranks} x {threads} threads want {ranks * threads} processors; these are {len(groups) * threads}")
        return 2
    everything = [processor for group in groups for processor in group]
    version = subprocess.run([emplace, "--version"], capture_output=True, text=True).stdout.strip()
    table = Table(out, shape, seconds, len(seeds), groups, version)
    with tempfile.TemporaryDirectory() as name:
        cases = []
        for graph in graphs:
            folder = pathlib.Path(name, graph.name)
            folder.mkdir()
            peak = single_device_peak(emplace, graph, folder)
            for cluster, (slowdowns, percent) in CLUSTERS.items():
                cases.append(Case(graph, folder / f"{cluster}.json"))
                write_cluster(cases[-1].cluster, slowdowns, peak * percent // 100)
        # A part after the other, so that what is cut off has whole rows.
        for first in range(0, len(cases), len(groups)):
            part = cases[first:first + len(groups)]
            longer = run_longer(part, seeds, groups, lambda case, seed, group: search(
                emplace, case, (1, threads), ranks * seconds, seed, group))
            for case in part:
                try:
                    case.longer = [found.result() for found in longer[case]]
                    for seed in seeds:
                        case.alone.append(search(emplace, case, (1, threads), seconds, seed, groups[0]))
                        case.ranks.append(search(emplace, case, shape, seconds, seed, everything))
                    table.cases.append(case)
                    print(case.row(), flush=True)
                except (RuntimeError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
                    table.problems.append(str(error))
                    print(f"failed: {error}", flush=True)
                table.write()
    print(table.write(), end="")
    return 1 if table.problems else 0
