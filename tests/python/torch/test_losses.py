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


class Hot(nn.Module):
    def __init__(self, one_hot):
        super().__init__()
        self.linear, self.one_hot = nn.Linear(5, 2), one_hot

    def forward(self, words):
        return self.linear(self.one_hot(words).float())


@pytest.mark.parametrize("one_hot", [lambda words: F.one_hot(words, 5), lambda words: F.one_hot(words, num_classes=5)])
@pytest.mark.parametrize("size", [(3,), (3, 4), ()])
def test_one_hot_of_a_known_number_of_classes(one_hot, size):
    net, other, theirs = Hot(one_hot), torch.randint(0, 5, size), F.one_hot
    captured = emplace.torch.capture(net, torch.randint(0, 5, size))
    with torch.no_grad():
        assert torch.equal(captured.run(other), net(other))
    assert F.one_hot is theirs
    refused("line|looks at a tensor's contents", Hot(F.one_hot), torch.randint(0, 5, size))


def test_losses_with_parameters_of_their_own_are_refused():
    class Weighted(nn.Module):
        def __init__(self, head):
            super().__init__()
            self.head = head

        def forward(self, output):
            return self.head(output).sum()

    net, x = nn.Linear(4, 2), torch.randn(3, 4)
    for loss in (Weighted(nn.Linear(2, 1)), Weighted(nn.Linear(2, 1)).forward):
        refused("loss: has a parameter 'head.weight' of its own, which would get no gradient; expected it in the model",
                net, x, loss=loss)
    emplace.torch.capture(net, x, loss=Weighted(nn.Linear(2, 1).requires_grad_(False)))
    net.head = nn.Linear(2, 1)
    _, gradients = emplace.torch.capture(net, x, loss=Weighted(net.head)).run(x)
    assert gradients["head.weight"].any()


def test_mistakes_are_explained():
    net, x = nn.Linear(4, 2), torch.randn(3, 4)
    refused("loss: expected a function of the model's output and of the targets, not int", net, x, loss=3)
    refused("targets: expected a tensor or a tuple of them, not int", net, x, loss=torch.sum, targets=3)
    refused("the loss does not take the model's output alone; expected targets.*cross_entropy", net, x,
            loss=F.cross_entropy)
    refused("the loss does not take the model's output and the targets \\(", net, x,
            loss=F.cross_entropy, targets=torch.zeros(2, 2))
    refused("does not take its example inputs", net, torch.zeros(2, 2), loss=F.cross_entropy)
