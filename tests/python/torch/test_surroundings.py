"""What a step could depend on beside the tensors that it is given: autocast, attributes of modules, hooks of
parameters, modes, random numbers that are not PyTorch's."""
import copy
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import emplace.torch
from refusals import refused


class Mixed(nn.Module):
    """Of which a part is in full precision also within autocast."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x):
        y = torch.relu(self.a(x)).float()
        with torch.autocast("cpu", enabled=False):
            y = self.b(y)
        return self.c(F.gelu(y))


def loss_of(output, target):
    return F.cross_entropy(output.float(), target)


@pytest.mark.parametrize("called_within", [True, False])
@pytest.mark.parametrize("captured_within", [True, False])
def test_autocast_is_that_of_the_capture(captured_within, called_within):
    torch.manual_seed(1)
    net, x, y = Mixed(), torch.randn(5, 8), torch.randint(0, 4, (5,))
    reference = copy.deepcopy(net)
    with torch.autocast("cpu", torch.bfloat16, enabled=captured_within):
        loss = loss_of(reference(x), y)
        captured = emplace.torch.capture(net, x, loss=loss_of, targets=y)
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in reference.named_parameters()}
    with torch.autocast("cpu", torch.bfloat16, enabled=called_within):
        replayed, theirs = captured.run(x, y)
        ours = emplace.torch.place(captured, devices=["cpu"], placer="single")(x, y)
    assert torch.equal(replayed, loss) and torch.equal(ours, loss)
    for name, parameter in net.named_parameters():
        assert torch.equal(theirs[name], gradients[name]) and torch.equal(parameter.grad, gradients[name]), name


class Keeping(nn.Module):
    def __init__(self, kept, forward):
        super().__init__()
        self.linear, self.kept, self.run = nn.Linear(4, 4), kept, forward

    def forward(self, x):
        return self.run(self, x)


def adds_up(net, x):
    net.kept = (net.linear(x) + net.kept).detach()
    return net.linear(x) + net.kept


def begins_and_adds_up(net, x):
    if net.kept is None:
        net.kept = torch.zeros(3, 4)
    return adds_up(net, x)


def counts(net, x):
    net.kept.add_(1)
    return net.linear(x) * net.kept


def overwrites(net, x):
    net.kept.copy_(net.linear(x).detach())
    return net.linear(x)


@pytest.mark.parametrize("kept, forward, match", [
    (torch.zeros(3, 4), adds_up, "reads what an earlier call has left in this attribute; expected a buffer"),
    (None, begins_and_adds_up, "reads what an earlier call has left"),
    (torch.zeros(1), counts, "reads what an earlier call has left"),
    (torch.zeros(3, 4), overwrites, "writes into the tensor in this attribute; expected a buffer"),
])
def test_what_calls_leave_in_attributes_is_refused_and_put_back(kept, forward, match):
    net = Keeping(kept, forward)
    refused(f"'kept' of Keeping: forward {match}", net, torch.randn(3, 4))
    assert net.kept is kept and (kept is None or not kept.any())


def shows(net, x):
    net.kept = net.linear(x)
    return net.kept * 2


def makes_once(net, x):
    if net.kept is None:
        net.kept = torch.full((3, 4), 2.0)
    return net.linear(x) * net.kept


def notes(net, x):
    net.noted = net.linear(x)
    return net.noted + 1


@pytest.mark.parametrize("forward", [shows, makes_once, notes])
@pytest.mark.parametrize("kept", [None, torch.ones(2), 3])
def test_attributes_that_do_not_outlive_a_call_are_captured(kept, forward):
    net, x = Keeping(kept, forward), torch.randn(3, 4)
    if forward is makes_once and kept is not None:
        net.kept = torch.ones(4)
    before = net.kept
    captured = emplace.torch.capture(net, x)
    assert net.kept is before and not hasattr(net, "noted")
    assert torch.equal(captured.run(x), net(x))


TABLE = torch.randn(5, 4)


def shows_a_part(net, x):
    net.kept = net.table[:3]
    return net.linear(x) + net.kept


def shows_it_all(net, x):
    net.kept = net.table
    return net.linear(x) + net.kept[:3]


def shows_no_part(net, x):
    net.kept = net.nothing[:0]
    return torch.cat([net.linear(x), net.nothing])


@pytest.mark.parametrize("forward", [shows_a_part, shows_it_all, shows_no_part])
@pytest.mark.parametrize("kept", [None, TABLE[:3], TABLE[1:2], torch.zeros(0, 4)])
def test_views_of_what_does_not_change_may_be_left(kept, forward):
    net, x = Keeping(kept, forward), torch.randn(3, 4)
    net.table, net.nothing = TABLE, torch.zeros(0, 4)
    captured = emplace.torch.capture(net, x)
    assert net.kept is kept and torch.equal(captured.run(x), net(x))


def reads_a_part(net, x):
    y = net.linear(x) + net.kept
    net.kept = net.table[:3] if net.kept is net.other else net.other
    return y


def grows(net, x):
    net.kept = torch.cat([net.kept, net.linear(x).detach()])
    return net.kept.sum(0) + net.linear(x)


@pytest.mark.parametrize("kept, forward", [(TABLE[:3], reads_a_part), (torch.zeros(0, 4), grows)])
def test_views_and_empty_tensors_that_calls_leave_and_read_are_refused(kept, forward):
    net = Keeping(kept, forward)
    net.table, net.other, net.nothing = TABLE, torch.ones(3, 4), torch.zeros(0, 4)
    refused("'kept' of Keeping: forward reads what an earlier call has left", net, torch.randn(3, 4))
    assert net.kept is kept


def test_tensors_of_inference_mode_are_constants():
    with torch.inference_mode():
        kept = torch.full((4,), 3.0)
    net, x = Keeping(kept, lambda net, x: net.linear(x) * net.kept), torch.randn(3, 4)
    with torch.no_grad():
        assert torch.equal(emplace.torch.capture(net, x).run(x), net(x))


def test_hooks_of_parameters_change_gradients():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), torch.randn(3, 4)
    net[0].weight.register_hook(lambda gradient: gradient * 0)
    net[0].bias.register_hook(lambda gradient: gradient * 2)
    net[0].bias.register_hook(lambda gradient: gradient.clamp(-1, 1))
    net[1].bias.register_hook(lambda gradient: None)
    captured = emplace.torch.capture(net, x, loss=torch.sum)
    net(x).sum().backward()
    expected = {name: parameter.grad for name, parameter in net.named_parameters()}
    net.zero_grad(set_to_none=True)
    _, gradients = captured.run(x)
    emplace.torch.place(captured, devices=["cpu"], placer="single")(x)
    for name, parameter in net.named_parameters():
        assert torch.equal(gradients[name], expected[name]) and torch.equal(parameter.grad, expected[name]), name


def test_hooks_that_cannot_be_part_of_a_step_are_refused():
    net = nn.Linear(4, 4)
    net.bias._post_accumulate_grad_hooks = {0: print}  # as PyTorch 2.1 registers them
    refused("parameter 'bias': has a hook for when its gradient is accumulated", net, torch.randn(3, 4), loss=torch.sum)
    net.bias._post_accumulate_grad_hooks = None
    net.weight.register_hook(lambda gradient: gradient if gradient.sum() > 0 else None)
    refused("lambda.*looks at a tensor's contents", net, torch.randn(3, 4), loss=torch.sum)


@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_random_numbers_of_others_are_refused_and_put_back(draw):
    before = random.getstate(), np.random.get_state()
    refused("Keeping: draws random numbers of Python's or numpy's, .* expected PyTorch's",
            Keeping(None, lambda net, x: net.linear(x) * draw()), torch.randn(3, 4))
    after = random.getstate(), np.random.get_state()
    assert before[0] == after[0]
    assert all(np.array_equal(one, other) for one, other in zip(before[1], after[1]))


def test_random_numbers_for_the_first_call_alone_are_its_own():
    def forward(net, x):
        if net.kept is None:
            net.kept = 3 + random.random()
        return net.linear(x) * net.kept

    net, x = Keeping(None, forward), torch.randn(3, 4)
    captured = emplace.torch.capture(net, x)
    assert torch.equal(captured.run(x), net(x))


def test_padded_positions_of_an_encoder_are_values():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2).eval()
    x, padded = torch.randn(2, 3, 4), torch.tensor([[False, False, True], [False, False, False]])
    captured = emplace.torch.capture(encoder, {"src": x, "src_key_padding_mask": padded})
    with torch.no_grad():
        eager = encoder(x, src_key_padding_mask=padded)
    ours = captured.run(src=x, src_key_padding_mask=padded)
    torch.testing.assert_close(ours[~padded], eager[~padded], rtol=1e-5, atol=1e-6)
    assert encoder.enable_nested_tensor


def test_modes_are_those_of_the_capture():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout()), torch.randn(3, 4)
    net[1].eval()
    placed = emplace.torch.place(net, x, loss=torch.sum, devices=["cpu"], placer="single")
    mean = net[1].running_mean.clone()
    assert not placed.eval().training and not any(module.training for module in net.modules())
    placed.train()(x)
    assert [module.training for module in net] == [True, False, True] and torch.equal(net[1].running_mean, mean)
    net.eval()
    with pytest.raises(emplace.Error, match=r"the model: is in eval\(\) mode; expected train\(\), as captured. The placed"):
        placed(x)
    placed.eval()
    net[1].train()
    with pytest.raises(emplace.Error, match=r"module '1': is in train\(\) mode; expected eval\(\), as captured"):
        placed(x)


def test_a_forward_pass_has_the_mode_that_it_was_captured_in():
    net, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.randn(3, 4)
    reference = copy.deepcopy(net)
    placed = emplace.torch.place(net, x, devices=["cpu"], placer="single")
    assert torch.equal(placed(x), reference(x)) and torch.equal(placed.eval()(x), reference.eval()(x))
    placed = emplace.torch.place(net, x, devices=["cpu"], placer="single")
    assert not placed.training and torch.equal(placed(x), reference(x))
    placed.train()
    with pytest.raises(emplace.Error, match=r"train\(\): the model was captured in eval\(\) and without a loss"):
        placed(x)
