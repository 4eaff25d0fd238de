"""Writes the captured steps that tests/exec/captured_models_test.cc computes, whole and in parts.

    PYTHONPATH=build/python python3 tests/python/torch/write_captures.py tests/data/captures
"""
import sys
from pathlib import Path

import torch

import emplace.torch
from language_models import bert, gpt2
from models import cross_entropy, make

SMALL = dict(layers=1, width=16, heads=4, words=20, positions=8)


def main(folder):
    torch.manual_seed(1)
    models = {"bert-tiny": bert(batch=4, time=6, **SMALL), "gpt2-tiny": gpt2(4, 6, **SMALL)}
    for name in ("resnet18", "lstm"):
        model, x, y = make(name)
        models[f"{name}-tiny"] = (model, (x,), y, cross_entropy)
    for name, (model, inputs, targets, loss) in models.items():
        kind = torch.optim.SGD if name.startswith("resnet") else torch.optim.AdamW
        captured = emplace.torch.capture(model, inputs, loss=loss, targets=targets, name=name,
                                         optimizer=kind(model.parameters(), lr=0.1))
        captured.save(Path(folder) / f"{name}.json.gz")


if __name__ == "__main__":
    main(sys.argv[1])
