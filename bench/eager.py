#!/usr/bin/env python3
"""Steps executed by emplace on one device against PyTorch eager and torch.compile.

    bench/eager.py --emplace build/emplace --cluster one.yaml [--rounds 3] [--compile]
                   [--numbers float32|tf32] [--processor-time] [MODEL...]

The cluster has one device, whose `runs_on` names cores or a GPU. Each round runs PyTorch's steps of
a model and then the executed ones, each in a process of its own, and the table shows the median
over rounds of each process's median step. Eager is the faster of the optimizer's
default and fused implementations, of those that this PyTorch has. Both sides compute in the same
numbers: with tf32, products and convolutions on a GPU may round their factors on both, with float32
on neither; on CPUs, numbers too small to be normal are zero. With --processor-time there are columns of what all threads of the process took, as user
and as system: of the executed steps the difference of two runs, by the steps that one has more.

PyTorch's models are torchvision's, Hugging Face's (or the same BERT, written out in
tests/python/torch, where transformers is missing) and the GNMT below, with the sizes of the zoo's
model of that name. The exit code is 1 if a row lacks one side.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODELS = [
    "resnet-50:batch=8,image=96",
    "bert-base:batch=2,sequence=64,layers=6",
    "gnmt-2:batch=64,sequence=6,hidden=512,vocabulary=4000",
    "inception-v3:batch=4,image=139",
]

WARM_UP = 5  # steps, on both sides


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


def make_bert(batch, sequence, layers):
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/python/torch"))
    from language_models import bert

    model, inputs, labels, loss = bert(batch, sequence, words=30522, layers=layers, width=768,
                                       heads=12, positions=512)
    return model, (*inputs, labels), lambda *data: loss(model(*data[:-1]), data[-1]), "adam"


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
        layers, sequence = options.get("layers", 12), options.get("sequence", 384)
        try:
            from transformers import BertConfig, BertForMaskedLM
        except ImportError:
            return make_bert(batch, sequence, layers)
        model = BertForMaskedLM(
            BertConfig(attn_implementation="eager", num_hidden_layers=layers))
        ids = torch.randint(0, 1000, (batch, sequence))
        return model, (ids, ids.clone()), lambda x, y: model(input_ids=x, labels=y).loss, "adam"
    if name.startswith("gnmt-"):
        words = options.get("vocabulary", 32000)
        model = make_gnmt(int(name[5:]), options.get("hidden", 1024), words)
        ids = [torch.randint(0, words, (batch, options.get("sequence", 10))) for _ in range(3)]
        return model, ids, model, "adam"
    raise SystemExit(f"eager.py: there is no PyTorch model for '{name}'")


def time_steps(spec, where, arguments):
    """A process of its own: prints medians of steps in milliseconds, of each kind, by the clock and
    by processor time."""
    cuda = re.search(r"cuda:(\d+)", where)
    device = f"cuda:{cuda.group(1)}" if cuda else "cpu"
    cores = cores_of(where)
    if not cuda:
        os.sched_setaffinity(0, cores)
    import torch

    if not cuda:
        torch.set_num_threads(len(cores))
    torch.set_flush_denormal(True)
    torch.backends.cudnn.allow_tf32 = arguments.numbers == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = arguments.numbers == "tf32"
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
        for _ in range(WARM_UP + arguments.steps):
            wait()
            start = time.perf_counter(), time.process_time()
            update.zero_grad(set_to_none=True)
            loss(*data).backward()
            update.step()
            wait()
            times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
        return [1000 * statistics.median(of) for of in zip(*times[WARM_UP:])]

    kinds = {"default": lambda: measure(loss), "fused": lambda: measure(loss, fused=True)}
    if arguments.compile:
        kinds["compiled"] = lambda: measure(torch.compile(loss), fused=True)
    found = {}
    for kind, steps in kinds.items():
        try:
            found[kind] = steps()
        except Exception as error:  # this PyTorch has no such kind, or not on this device
            reason = (str(error).splitlines() or ["no reason given"])[0]
            say(spec, f"PyTorch, {kind}: {type(error).__name__}: {reason}")
    print(json.dumps(found))


def cores_of(where):
    found = re.search(r"cores ([\d,-]+)", where)
    cores = set()
    for part in found.group(1).split(",") if found else []:
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores or set(os.sched_getaffinity(0))


def say(spec, what):
    print(f"eager.py: {spec}: {what}", file=sys.stderr, flush=True)


def in_process(spec, where, arguments):
    """By kind what time_steps printed."""
    command = [sys.executable, __file__, "--one", spec, "--where", where,
               "--steps", str(arguments.steps), "--numbers", arguments.numbers]
    command += ["--compile"] * arguments.compile
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        say(spec, f"PyTorch: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        return {}
    sys.stderr.writelines(line for line in done.stderr.splitlines(True)
                          if line.startswith("eager.py:"))
    return json.loads(done.stdout.strip().splitlines()[-1])


def run(spec, steps, arguments):
    """The median step, and the processor time of the whole process, in milliseconds."""
    command = [arguments.emplace, "run", "zoo:" + spec, "-c", arguments.cluster,
               "--steps", str(steps), "--warm-up", str(WARM_UP), "--numbers", arguments.numbers,
               "--json", "-q"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        say(spec, done.stderr.strip())
        return None
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout)["step_ms"], 1000 * took


def execute(spec, arguments):
    """The median step, and its processor time where that is asked for."""
    one = run(spec, 1, arguments) if arguments.processor_time else None
    all_steps = run(spec, 1 + arguments.steps, arguments)
    if all_steps is None:
        return None, None
    return all_steps[0], (all_steps[1] - one[1]) / arguments.steps if one else None


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
    parser.add_argument("--numbers", choices=["float32", "tf32"], default="float32")
    parser.add_argument("--processor-time", action="store_true", help="columns of that, too")
    parser.add_argument("--list", action="store_true", help="print the models and end")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(MODELS))
        return 0
    if arguments.one:
        time_steps(arguments.one, arguments.where, arguments)
        return 0
    with open(arguments.cluster, encoding="utf-8") as file:
        where = re.search(r'runs_on: *"?([^"}\n]*)', file.read()).group(1)
    columns = ["model", "numbers", "eager, ms", "compiled, ms", "executed, ms", "eager / executed",
               "compiled / executed"]
    if arguments.processor_time:
        columns += ["eager, processor ms", "executed, processor ms", "eager / executed, processor"]
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    whole = True
    for spec in arguments.models:
        row = measure_row(spec.removeprefix("zoo:"), where, arguments)
        whole = whole and row["eager"] is not None and row["executed"] is not None
        print(as_text(spec.removeprefix("zoo:"), row, arguments), flush=True)
    return 0 if whole else 1


def measure_row(spec, where, arguments):
    torchs, executed = [], []
    for _ in range(arguments.rounds):
        torchs.append(in_process(spec, where, arguments))
        executed.append(execute(spec, arguments))

    def of_kind(kind, which):
        return median(found[kind][which] if kind in found else None for found in torchs)

    def least(which):
        times = [of_kind(kind, which) for kind in ("default", "fused")]
        return min((time for time in times if time is not None), default=None)

    return {"eager": least(0), "compiled": of_kind("compiled", 0),
            "executed": median(time for time, _ in executed),
            "eager processor": least(1), "processor": median(time for _, time in executed)}


def as_text(spec, row, arguments):
    def ratio(of, by):
        return "-" if row[of] is None or row[by] is None else f"{row[of] / row[by]:.2f}"

    cells = [spec, arguments.numbers, text(row["eager"]), text(row["compiled"]),
             text(row["executed"]), ratio("eager", "executed"), ratio("compiled", "executed")]
    if arguments.processor_time:
        cells += [text(row["eager processor"]), text(row["processor"]),
                  ratio("eager processor", "processor")]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
