"""Writes the captured steps that tests/exec/captured_models_test.cc computes, whole and in parts.

    PYTHONPATH=build/python python3 tests/python/torch/write_captures.py tests/data/captures [NAME...]
"""
import sys
from pathlib import Path

import torch
from torch import nn
import torch.nn.functional as F

sys.path.append(str(Path(__file__).parents[3] / "bench"))
import emplace.torch
from eager import make_gnmt
from language_models import bert, gpt2
from models import cross_entropy, make

SMALL = dict(layers=1, width=16, heads=4, words=20, positions=8)


def resnet18():
    model, x, y = make("resnet18")
    return model, (x,), y, cross_entropy


def lstm():
    model, x, y = make("lstm")
    return model, (x,), y, cross_entropy


def inception():
    """A block of each sort that Inception-v3 has before its last: 5 x 5, smaller images, 1 x 7."""
    from torchvision.models import inception as of
    model = nn.Sequential(of.BasicConv2d(3, 8, kernel_size=3, stride=2), nn.MaxPool2d(3, 2),
                          of.InceptionA(8, pool_features=8), of.InceptionB(232),
                          of.InceptionC(712, channels_7x7=8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(768, 10))
    return model, (torch.randn(2, 3, 23, 23),), torch.randint(0, 10, (2,)), F.cross_entropy


def gnmt():
    words = [torch.randint(0, 12, (3, 3)) for _ in range(3)]
    return make_gnmt(layers=2, hidden=8, vocabulary=12), tuple(words), (), lambda loss: loss


MODELS = {
    "bert": lambda: bert(batch=4, time=6, **SMALL),
    "gpt2": lambda: gpt2(4, 6, **SMALL),
    "resnet18": resnet18,
    "lstm": lstm,
    "inception": inception,
    "gnmt": gnmt,
}


def main(folder, *names):
    for name in names or MODELS:
        torch.manual_seed(1)
        model, inputs, targets, loss = MODELS[name]()
        convolutions = name in ("resnet18", "inception")
        kind = torch.optim.SGD if convolutions else torch.optim.AdamW
        captured = emplace.torch.capture(model, inputs, loss=loss, targets=targets,
                                         name=f"{name}-tiny",
                                         optimizer=kind(model.parameters(), lr=0.1))
        captured.save(Path(folder) / f"{name}-tiny.json.gz")


if __name__ == "__main__":
    main(*sys.argv[1:])
