#!/usr/bin/python3
"""Places, simulates, partitions and trains random models on random clusters for hours, in one process.

    PYTHONPATH=build/python tools/soak.py [--time 4h] [--seed 1] [--log FILE]

Every iteration has a seed of its own, which its line in the log names: `--seed N --iterations 1` repeats iteration N.
What must hold: no answer below a bound that anybody proved, the simulator says what the answer says, placements keep to
pins, what is written is read back, and memory does not grow. Exit code 1 where something does not."""

import argparse
import json
import os
import pathlib
import random
import re
import resource
import sys
import tempfile
import time
import traceback

import emplace

SKIPPED = {"exec"}  # somebody else's program
ZOO = [("gnmt-2", {"batch": (1, 64), "sequence": (2, 8)}), ("stacked-rnn", {"layers": (1, 4), "sequence": (1, 6), "batch": (1, 32)}),
       ("alexnet", {"batch": (1, 128)}), ("vgg-16", {"batch": (1, 32)}), ("resnet-50", {"batch": (1, 32)}),
       ("bert-base", {"batch": (1, 8)})]


def seconds_of(text: str) -> float:
    number, unit = re.fullmatch(r"([0-9.]+)(s|m|h|)", text).groups()
    return float(number) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit]


def resident_kilobytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


class Broken(Exception):
    """Something that must hold does not."""


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


class Iteration:
    def __init__(self, seed: int, folder: pathlib.Path) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.folder = folder
        self.said: dict[str, object] = {"seed": seed}

    def graph(self) -> emplace.Graph:
        if self.random.random() < 0.4:
            name, options = self.random.choice(ZOO)
            chosen = {key: self.random.randint(*span) for key, span in options.items()}
            training = self.random.random() < 0.5
            self.said["model"] = f"{name} {chosen} {'training' if training else ''}"
            return emplace.zoo(name, training=training, **chosen).graph
        count = self.random.randint(1, 200)
        self.said["model"] = f"random, {count} ops"
        ops, tensors = [], []
        for i in range(count):
            inputs = sorted({self.random.randrange(i) for _ in range(min(i, self.random.randint(0, 3)))})
            op = {"name": f"op{i}", "type": self.random.choice(["mm", "relu", "parameter" if not inputs else "add"]),
                  "inputs": inputs, "outputs": [i], "time_us": {"*": self.random.choice([0, 1, 5, 100, 12.5])}}
            if self.random.random() < 0.1:
                op["colocate"] = f"g{self.random.randrange(5)}"
            if self.random.random() < 0.1:
                op["temp_bytes"] = self.random.randrange(10_000)
            ops.append(op)
            tensors.append({"bytes": self.random.choice([0, 1, 1000, 4_000_000, 100_000_000])})
        return emplace.Graph.from_json(json.dumps({"format": "emplace.graph/1", "name": "random", "tensors": tensors, "ops": ops}))

    def cluster(self) -> emplace.Cluster:
        if self.random.random() < 0.4:
            name = self.random.choice(["1xp100", "2xp100", "4xv100-nvlink", "8xa100-nvlink", "2x(2xa100-nvlink)@25GB/s", "3xp100+cpu"])
            self.said["cluster"] = name
            return emplace.read_cluster(name)
        count = self.random.randint(1, 6)
        memory = self.random.choice([1 << 20, 1 << 28, 1 << 34, None])
        self.said["cluster"] = f"random, {count} devices of {memory} bytes"
        devices = [emplace.DeviceDescription(f"gpu{i}", self.random.choice(["p100", "v100", "a100"]), memory=memory)
                   for i in range(count)]
        links = [emplace.LinkRule(bandwidth=self.random.choice([10**6, 10**9, 10**11]), latency=self.random.choice([0, 1000, 10**6]),
                                  channel=self.random.choice(["pair", "out", "in", "bus", "unlimited"]))]
        return emplace.build_cluster("random", devices, links)

    def problem(self) -> emplace.Problem:
        return emplace.compile(self.graph(), self.cluster())

    def budget(self) -> dict[str, object]:
        if self.random.random() < 0.3:
            return {"seconds": self.random.choice([0.01, 0.2, 1])}
        return {"evaluations": self.random.randint(1, 400), "seconds": 20}

    def check(self, problem: emplace.Problem, answer: emplace.Answer, objective: str) -> None:
        if answer.fits:
            expect(answer.bound <= answer.time, f"{answer.placer}: bound {answer.bound} above {answer.time}")
        timeline = emplace.simulate(problem, answer.placement, answer.priorities)
        if objective == "step":
            expect(timeline.step == answer.time, f"{answer.placer}: simulated {timeline.step}, said {answer.time}")
        expect(timeline.fits == answer.timeline.fits, f"{answer.placer}: whether it fits differs")
        json.loads(answer.to_json())
        path = self.folder / "placement.json"
        answer.save(str(path))
        again = emplace.read_placement(str(path), problem)
        expect(list(again.placement) == list(answer.placement), f"{answer.placer}: reads back another placement")

    def place(self) -> None:
        problem = self.problem()
        keys = [method.key for method in emplace.list_placers() if method.key not in SKIPPED]
        objective = "step" if self.random.random() < 0.8 else "period"
        chosen = self.random.sample(keys, 3)
        self.said.update(placers=chosen, objective=objective)
        answers = []
        for key in chosen:
            try:
                answer = emplace.place(problem, key, objective=objective, seed=self.random.randint(1, 10**9),
                                       threads=self.random.choice([1, 2]), **self.budget())
            except emplace.Error as error:
                self.said.setdefault("refused", []).append(str(error)[:160])
                continue
            self.check(problem, answer, objective)
            answers.append(answer)
        bound = max((answer.bound for answer in answers), default=0)
        for answer in answers:
            expect(not answer.fits or bound <= answer.time, f"{answer.placer}: {answer.time} below another's bound {bound}")

    def simulate(self) -> None:
        problem = self.problem()
        environment = emplace.Environment(problem)
        groups = int(problem.groups.max()) + 1
        devices = len(problem.cluster)
        rows = [[self.random.randrange(devices) for _ in range(groups)] for _ in range(20)]
        try:
            steps, short = environment.evaluate(rows)[:2]
        except emplace.Error as error:
            self.said["refused"] = [str(error)[:160]]
            return
        for row, step, overflow in zip(rows, steps, short):
            placement = [row[group] for group in problem.groups]
            timeline = emplace.simulate(problem, placement)
            expect(timeline.step == step, f"environment {step}, simulator {timeline.step}")
            expect(timeline.fits == (overflow == 0), "environment and simulator differ on memory")

    def partition(self) -> None:
        name, options = self.random.choice(ZOO)
        chosen = {key: self.random.randint(*span) for key, span in options.items()}
        self.said["model"] = f"{name} {chosen}"
        problem = emplace.compile(emplace.zoo(name, training=self.random.random() < 0.5, **chosen),
                                  self.random.choice(["2xp100", "4xv100-nvlink", "2x(2xa100-nvlink)@25GB/s"]))
        method = self.random.choice([method.key for method in emplace.list_partition_methods()])
        self.said["method"] = method
        try:
            divided = emplace.partition(problem, method.replace("_", "-"), seed=self.random.randint(1, 10**9), threads=1,
                                        seconds=self.random.choice([0.3, 2]))
        except emplace.Error as error:
            self.said["refused"] = [str(error)[:160]]
            return
        timeline = emplace.simulate(divided.divided, divided.placement)
        expect(timeline.step == divided.step, f"{method}: simulated {timeline.step}, said {divided.step}")
        json.loads(divided.plan_json())
        bound = json.loads(divided.to_json())["lower_bound_ns"]
        expect(not divided.fits or bound <= divided.step, f"{method}: bound {bound} above {divided.step}")

    def train(self) -> None:
        policy = self.random.choice(["gdp", "placeto", "mars"])
        self.said["policy"] = policy
        trained = emplace.train(["family:ptb:sequence=2,seed=0..1"], ["2xp100"], policy=policy, width=8, layers=1, steps=2,
                                tasks_per_step=1, seed=self.random.randint(1, 10**9), seconds=10, threads=1)
        path = self.folder / "policy"
        path.write_bytes(trained.policy)
        problem = emplace.compile("family:ptb:sequence=3,seed=7", "2xp100")
        answer = emplace.place(problem, policy, policy=str(path), seconds=2, threads=1)
        self.check(problem, answer, "step")

    def run(self) -> None:
        kinds = [self.place] * 12 + [self.simulate] * 4 + [self.partition] * 2 + [self.train]
        kind = self.random.choice(kinds)
        self.said["kind"] = kind.__name__
        kind()


def is_flat(memory: list[tuple[float, int]], took: float, one: bool) -> bool:
    """Of kilobytes at moments. Caches fill in the beginning; after that, the peak of the last part is that of the part
    before. Too little to say so is not flat, unless the run repeats iterations."""
    quarters = [[kilobytes for moment, kilobytes in memory if number * took / 4 <= moment <= (number + 1) * took / 4]
                for number in range(4)]
    if took < 600 or min(len(quarters[1]), len(quarters[3])) < 5:
        print("memory: not checked; that takes ten minutes and five iterations in each quarter of them")
        return one
    early, late = max(quarters[1]), max(quarters[3])
    flat = late <= early * 1.2 + 50_000
    print(f"memory: {early // 1024} MB at most in the second quarter, {late // 1024} MB in the last: {'flat' if flat else 'GROWS'}")
    return flat


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=seconds_of, default=seconds_of("4h"))
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=pathlib.Path)
    arguments = parser.parse_args()
    log = open(arguments.log, "a") if arguments.log else None
    begin = time.monotonic()
    broken, counts, memory = 0, {}, []
    with tempfile.TemporaryDirectory() as folder:
        number = 0
        while time.monotonic() - begin < arguments.time and (arguments.iterations is None or number < arguments.iterations):
            iteration = Iteration(arguments.seed + number, pathlib.Path(folder))
            number += 1
            started = time.monotonic()
            try:
                iteration.run()
            except Exception as error:  # anything else than an answer or a refusal
                broken += 1
                iteration.said["broken"] = f"{type(error).__name__}: {error}"
                print(f"iteration {iteration.seed}: {iteration.said}", flush=True)
                if not isinstance(error, Broken):
                    traceback.print_exc()
            kind = str(iteration.said["kind"])
            counts[kind] = counts.get(kind, 0) + 1
            memory.append((time.monotonic() - begin, resident_kilobytes()))
            if log:
                iteration.said.update(seconds=round(time.monotonic() - started, 3), resident_kb=memory[-1][1])
                log.write(json.dumps(iteration.said) + "\n")
                log.flush()
    took = time.monotonic() - begin
    flat = is_flat(memory, took, one=arguments.iterations is not None)
    print(f"{number} iterations in {took / 60:.1f} min from seed {arguments.seed}: " +
          ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) + f"; {broken} broken")
    return 1 if broken or not flat else 0


if __name__ == "__main__":
    sys.exit(main())
