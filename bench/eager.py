#!/usr/bin/env python3
"""Steps executed by emplace on one device against PyTorch eager and torch.compile.

    bench/eager.py --emplace build/emplace --cluster one.yaml [--rounds 3] [--compile] [MODEL...]

The cluster has one device, whose `runs_on` names cores or a GPU. Each round runs PyTorch's steps of
a model and then the executed ones, each in a process of its own, and the table shows the median
over rounds of each process's median step. Eager is the faster of the optimizer's
default and fused implementations. PyTorch's models are torchvision's, Hugging Face's and the GNMT
below, with the sizes of the zoo's model of that name.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

MODELS = [
    "resnet-50:batch=8,image=96",
    "bert-base:batch=2,sequence=64,layers=6",
    "gnmt-2:batch=64,sequence=6,hidden=512,vocabulary=4000",
    "inception-v3:batch=4,image=139",
]


def parse(spec):
    name, _, rest = spec.partition(":")
    options = dict(pair.split("=") for pair in rest.split(",") if pair)
    return name, {key: int(value) for key, value in options.items()}


def make_gnmt(layers, hidden, vocabulary):
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Cell(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.x = nn.Linear(width, 4 * hidden)
            self.h = nn.Linear(hidden, 4 * hidden)

        def forward(self, x, state):
            h, c = state
            i, f, g, o = (self.x(x) + self.h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    class Gnmt(nn.Module):
        def __init__(self):
            super().__init__()
            self.source = nn.Embedding(vocabulary, hidden)
            self.target = nn.Embedding(vocabulary, hidden)
            self.forwards, self.backwards = Cell(hidden), Cell(hidden)
            self.encoder = nn.ModuleList(
                Cell(2 * hidden if i == 0 else hidden) for i in range(layers - 1))
            self.decoder = nn.ModuleList(Cell(2 * hidden) for _ in range(layers))
            self.key = nn.Linear(hidden, hidden, False)
            self.query = nn.Linear(hidden, hidden, False)
            self.score = nn.Linear(hidden, 1, False)
            self.logits = nn.Linear(hidden, vocabulary)

        def forward(self, source, target, following):
            batch, length = source.shape
            zero = torch.zeros(batch, hidden, device=source.device)
            embedded = [self.source(source[:, t]) for t in range(length)]
            ahead, back = [], [None] * length
            state = (zero, zero)
            for t in range(length):
                state = self.forwards(embedded[t], state)
                ahead.append(state[0])
            state = (zero, zero)
            for t in reversed(range(length)):
                state = self.backwards(embedded[t], state)
                back[t] = state[0]
            x = [torch.cat(pair, 1) for pair in zip(ahead, back)]
            for i, cell in enumerate(self.encoder):
                state, y = (zero, zero), []
                for t in range(length):
                    state = cell(x[t], state)
                    y.append(state[0] + x[t] if i > 0 else state[0])
                x = y
            memory = torch.stack(x, 1)
            keys = self.key(memory)
            context, states, loss = zero, [(zero, zero)] * layers, 0
            for t in range(length):
                x = torch.cat([self.target(target[:, t]), context], 1)
                states[0] = self.decoder[0](x, states[0])
                h = states[0][0]
                scores = self.score(torch.tanh(keys + self.query(h).unsqueeze(1))).squeeze(2)
                context = (F.softmax(scores, 1).unsqueeze(1) @ memory).squeeze(1)
                for i in range(1, layers):
                    states[i] = self.decoder[i](torch.cat([h, context], 1), states[i])
                    h = states[i][0] + h if i > 1 else states[i][0]
                loss = loss + F.cross_entropy(self.logits(h), following[:, t])
            return loss

    return Gnmt()


def make(spec):
    """The model, its data, its loss and its optimizer's name."""
    import torch
    from torch.nn import functional as F

    name, options = parse(spec)
    batch = options["batch"]
    if name in ("resnet-50", "inception-v3"):
        import torchvision

        size = options.get("image", 224 if name == "resnet-50" else 299)
        data = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))
        if name == "resnet-50":
            model = torchvision.models.resnet50()
        else:
            model = torchvision.models.inception_v3(
                aux_logits=False, init_weights=False, transform_input=False)
        return model, data, lambda x, y: F.cross_entropy(model(x), y), "momentum"
    if name == "bert-base":
        from transformers import BertConfig, BertForMaskedLM

        model = BertForMaskedLM(
            BertConfig(attn_implementation="eager", num_hidden_layers=options.get("layers", 12)))
        ids = torch.randint(0, 1000, (batch, options.get("sequence", 384)))
        return model, (ids, ids.clone()), lambda x, y: model(input_ids=x, labels=y).loss, "adam"
    if name.startswith("gnmt-"):
        model = make_gnmt(int(name[5:]), options.get("hidden", 1024), options.get("vocabulary", 32000))
        ids = [torch.randint(0, 1000, (batch, options.get("sequence", 10))) for _ in range(3)]
        return model, ids, model, "adam"
    raise SystemExit(f"eager.py: there is no PyTorch model for '{name}'")


def time_steps(spec, where, compiled, steps):
    """A process of its own: prints medians of steps in milliseconds, of each kind."""
    cuda = re.search(r"cuda:(\d+)", where)
    device = f"cuda:{cuda.group(1)}" if cuda else "cpu"
    cores = cores_of(where)
    if not cuda:
        os.sched_setaffinity(0, cores)
    import torch

    if not cuda:
        torch.set_num_threads(len(cores))
    torch.manual_seed(0)
    model, data, loss, optimizer = make(spec)
    model.train().to(device)
    data = [x.to(device) for x in data]
    wait = torch.cuda.synchronize if cuda else lambda: None

    def measure(loss, **kind):
        if optimizer == "momentum":
            update = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9, **kind)
        else:
            update = torch.optim.Adam(model.parameters(), 1e-4, **kind)
        times = []
        for _ in range(5 + steps):
            wait()
            start = time.perf_counter()
            update.zero_grad(set_to_none=True)
            loss(*data).backward()
            update.step()
            wait()
            times.append(1000 * (time.perf_counter() - start))
        return statistics.median(times[5:])

    found = {"default": measure(loss), "fused": measure(loss, fused=True)}
    if compiled:
        found["compiled"] = measure(torch.compile(loss), fused=True)
    print(json.dumps(found))


def cores_of(where):
    found = re.search(r"cores ([\d,-]+)", where)
    cores = set()
    for part in found.group(1).split(",") if found else []:
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores or set(os.sched_getaffinity(0))


def in_process(spec, where, compiled, steps):
    command = [sys.executable, __file__, "--one", spec, "--where", where, "--steps", str(steps)]
    command += ["--compile"] * compiled
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"eager.py: {spec}: PyTorch failed: {reason}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.strip().splitlines()[-1])


def execute(emplace, cluster, spec, steps):
    command = [emplace, "run", "zoo:" + spec, "-c", cluster, "--steps", str(steps), "--warm-up", "5",
               "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"eager.py: {spec}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)["step_ms"]


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def text(value):
    return "-" if value is None else f"{value:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--emplace", default="build/emplace")
    parser.add_argument("--cluster")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        time_steps(arguments.one, arguments.where, arguments.compile, arguments.steps)
        return
    with open(arguments.cluster, encoding="utf-8") as file:
        where = re.search(r'runs_on: *"?([^"}\n]*)', file.read()).group(1)
    print("| model | eager, ms | compiled, ms | executed, ms | eager / executed | compiled / executed |")
    print("|---|---|---|---|---|---|")
    for spec in arguments.models:
        spec = spec.removeprefix("zoo:")
        torchs, executed = [], []
        for _ in range(arguments.rounds):
            torchs.append(in_process(spec, where, arguments.compile, arguments.steps))
            executed.append(execute(arguments.emplace, arguments.cluster, spec, arguments.steps))
        kinds = {kind: median(found.get(kind) for found in torchs)
                 for kind in ("default", "fused", "compiled")}
        fastest = min((kinds[kind] for kind in ("default", "fused") if kinds[kind] is not None),
                      default=None)
        ours, compiled = median(executed), kinds["compiled"]
        ratio = lambda time: "-" if time is None or ours is None else f"{time / ours:.2f}"
        print(f"| {spec} | {text(fastest)} | {text(compiled)} | {text(ours)} | {ratio(fastest)} "
              f"| {ratio(compiled)} |", flush=True)


if __name__ == "__main__":
    main()
