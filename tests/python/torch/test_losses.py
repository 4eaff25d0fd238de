"""Losses of PyTorch's that are captured in a way of their own, and mistakes in losses."""
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import emplace.torch
from refusals import refused

SMOOTHED = {
    "mean": {},
    "sum": {"reduction": "sum"},
    "weights": {"weight": torch.rand(5, generator=torch.Generator().manual_seed(3))},
    "weights and sum": {"weight": torch.full((5,), 0.3), "reduction": "sum"},
}


@pytest.mark.parametrize("size", [(7, 5), (3, 5, 4), (5,)])
@pytest.mark.parametrize("options", SMOOTHED.values(), ids=SMOOTHED)
def test_smoothed_labels(options, size):
    net, x = nn.Conv1d(5, 5, 1, bias=False) if len(size) == 3 else nn.Linear(5, 5), torch.randn(size)
    whole = torch.randint(0, 5, size[:1] + size[2:] if len(size) > 1 else ())
    some = whole.clone()
    if some.dim() > 0:
        some[1] = 9
    for target, exact in ((whole, True), (some, False)):
        criterion = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=9, **options)
        loss = criterion(net(x), target)
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        captured = emplace.torch.capture(net, x, loss=criterion, targets=target)
        ours, theirs = captured.run(x, target)
        bits = 0 if exact else 1e-6
        torch.testing.assert_close(ours, loss.detach(), rtol=bits, atol=bits)
        for one, other in zip(theirs.values(), gradients):
            torch.testing.assert_close(one, other, rtol=bits, atol=bits)


def test_mistakes_are_explained():
    net, x = nn.Linear(4, 2), torch.randn(3, 4)
    refused("loss: expected a function of the model's output and of the targets, not int", net, x, loss=3)
    refused("targets: expected a tensor or a tuple of them, not int", net, x, loss=torch.sum, targets=3)
    refused("the loss does not take the model's output alone; expected targets.*cross_entropy", net, x,
            loss=F.cross_entropy)
    refused("the loss does not take the model's output and the targets \\(", net, x,
            loss=F.cross_entropy, targets=torch.zeros(2, 2))
    refused("does not take its example inputs", net, torch.zeros(2, 2), loss=F.cross_entropy)
