"""Executed steps against PyTorch's own: a model goes through PyTorch's exporter, is trained by emplace.run from its
seeded numbers, and by PyTorch from the same ones. Forward pass, gradients and updates are then right, whatever our
tests of kernels against each other say."""
import os

import numpy as np
import pytest
import torch
from torch import nn

import emplace
import emplace.torch

learned = [info.key for info in emplace.list_placers() if info.family == "learned"]
pytestmark = pytest.mark.skipif(not learned, reason="built without libtorch")

CORE = min(os.sched_getaffinity(0))
MACHINE = f"""format: emplace.cluster/1
name: one
devices:
  - {{name: a, kind: cpu, memory: 1GiB, runs_on: "cores {CORE}"}}
"""
SEED = 5
STEPS = 3
EPSILON = float(np.float32(1e-5))  # which ONNX holds

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniform(name, count):
    """The first numbers of an op, in [0, 1)."""
    value = 0xCBF29CE484222325
    for letter in name.encode():
        value = ((value ^ letter) * 0x100000001B3) & MASK
    key = mix((value + mix((SEED + GOLDEN) & MASK)) & MASK)
    return np.array([(mix((key + (i + 1) * GOLDEN) & MASK) >> 11) * 2.0**-53 for i in range(count)])


def single(drawn):
    """Models begin with numbers that float32 holds, whatever they are computed in."""
    return torch.tensor(drawn).float().double()


def weights(model):
    """What emplace begins with: norms with 1 and 0, other biases with 0, all else by the fan-in."""
    norms = (nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)
    with torch.no_grad():
        for prefix, module in model.named_modules():
            for name, parameter in module.named_parameters(prefix, recurse=False):
                if parameter.dim() < 2:
                    parameter.fill_(1 if isinstance(module, norms) and name.endswith("weight") else 0)
                    continue
                drawn = uniform(name, parameter.numel()) * 2 - 1
                bound = (parameter.numel() / parameter.shape[0]) ** -0.5
                parameter.copy_(single(drawn * bound).reshape(parameter.shape))


def numbers(name, like, limit):
    if limit is not None:
        return torch.tensor(np.floor(uniform(name, like.numel()) * limit)).long().reshape(like.shape)
    drawn = uniform(name, 4 * like.numel()).reshape(-1, 4)
    return single((drawn.sum(1) - 2) * 3**0.5).reshape(like.shape)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8, eps=EPSILON)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.conv1, self.norm1 = nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16, eps=EPSILON)
        self.conv2, self.norm2 = nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16, eps=EPSILON)
        self.short = nn.Conv2d(8, 16, 1, 2)
        self.head = nn.Linear(16, 7)

    def forward(self, x, target):
        x = self.pool(torch.relu(self.norm(self.stem(x))))
        y = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(y)) + self.short(x))
        return nn.functional.cross_entropy(self.head(x.mean((2, 3))), target)


class Transformer(nn.Module):
    def __init__(self, words=11, width=32, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(words, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, EPSILON), nn.LayerNorm(width, EPSILON)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 64), nn.Linear(64, width)
        self.head = nn.Linear(width, words)

    def forward(self, x, target):
        x = self.embed(x)
        y = self.norm1(x)
        q, k, v = (each(y).view(2, 5, self.heads, 16).transpose(1, 2)
                   for each in (self.query, self.key, self.value))
        later = torch.ones(5, 5).triu(1).bool()
        weights = (q @ k.transpose(-1, -2) / 4).masked_fill(later, -1e9).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(2, 5, 32))
        x = x + self.down(torch.tanh(self.up(self.norm2(x))))
        return nn.functional.cross_entropy(self.head(x).view(10, -1), target)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(6, 8, bidirectional=kind is nn.GRU)
        self.head = nn.Linear(16 if kind is nn.GRU else 8, 5)

    def forward(self, x, target):
        return nn.functional.cross_entropy(self.head(self.layer(x)[0]).mean(0), target)


IMAGE = (torch.zeros(4, 3, 16, 16), None, torch.zeros(4, dtype=torch.long), 7)
TEXT = (torch.zeros(2, 5, dtype=torch.long), 11, torch.zeros(10, dtype=torch.long), 11)
STEPS_OF_TIME = (torch.zeros(4, 3, 6), None, torch.zeros(3, dtype=torch.long), 5)
MODELS = {
    "resnet": (ResNet, IMAGE),
    "transformer": (Transformer, TEXT),
    "lstm": (lambda: Recurrent(nn.LSTM), STEPS_OF_TIME),
    "gru": (lambda: Recurrent(nn.GRU), STEPS_OF_TIME),
    "rnn": (lambda: Recurrent(nn.RNN), STEPS_OF_TIME),
}
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_losses_are_those_of_pytorch(name, optimizer):
    make, (x, x_limit, target, limit) = MODELS[name]
    model = make().train()
    read = emplace.torch.onnx_model(model, {"x": x, "target": target}, training=True, optimizer=optimizer)
    problem = emplace.compile(read, emplace.Cluster.from_yaml(MACHINE))
    found = emplace.run(problem, steps=STEPS, warm_up=0, seed=SEED, numbers="float64").losses

    model.double()
    weights(model)
    x, target = numbers("x", x, x_limit), numbers("target", target, limit)
    update = OPTIMIZERS[optimizer](model.parameters())
    expected = []
    for _ in range(STEPS):
        update.zero_grad()
        loss = model(x, target)
        loss.backward()
        update.step()
        expected.append(loss.item())
    assert len(set(expected)) == STEPS
    assert found == pytest.approx(expected, rel=1e-9)
