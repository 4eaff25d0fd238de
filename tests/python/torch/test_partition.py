"""Captured steps are divided as the zoo's of the same models are."""
import pytest
import torch

import emplace
import emplace.torch
from language_models import bert, gpt2, resnet50

SIZES = dict(layers=2, heads=4)
TEXT = dict(batch=8, time=32, words=512, width=64, positions=32)
ZOO = "layers=2,heads=4,batch=8,sequence=32,vocabulary=512,hidden=64,positions=32"
MODELS = {
    "bert": (lambda: bert(**SIZES, **TEXT), f"zoo:bert-base:{ZOO}", torch.optim.Adam),
    "gpt2": (lambda: gpt2(**SIZES, **TEXT), f"zoo:gpt2-small:{ZOO}", torch.optim.Adam),
    "resnet50": (lambda: resnet50(batch=8, size=64, classes=16),
                 "zoo:resnet-50:batch=8,image=64,classes=16,optimizer=sgd", torch.optim.SGD),
}
CLUSTER = "8xv100-nvlink"


@pytest.fixture(scope="module", params=MODELS)
def steps(request):
    """The captured step and the zoo's, as problems."""
    make, zoo, optimizer = MODELS[request.param]
    torch.manual_seed(1)
    model, inputs, targets, loss = make()
    captured = emplace.torch.capture(model, inputs, loss=loss, targets=targets,
                                     optimizer=optimizer(model.parameters(), lr=0.1))
    return (emplace.compile(captured.graph, CLUSTER), emplace.compile(zoo, CLUSTER))


@pytest.mark.parametrize("method", ["data-parallel", "tofu", "fsdp"])
def test_as_many_bytes_move_as_for_the_zoos_model(steps, method):
    ours, theirs = (emplace.partition(problem, method, seconds=4) for problem in steps)
    assert ours.moved == pytest.approx(theirs.moved, rel=0.05)


def test_nothing_is_left_whole(steps):
    text = str(emplace.partition(steps[0], "data-parallel", seconds=4))
    assert "Not divided" not in text


@pytest.mark.parametrize("activation", [torch.nn.SiLU, torch.nn.Mish])
def test_activations_and_their_gradients_are_divided(activation):
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), activation(), torch.nn.Linear(64, 64))
    captured = emplace.torch.capture(net, torch.randn(32, 64), loss=torch.sum)
    text = str(emplace.partition(emplace.compile(captured.graph, "2xp100"), "all-row", seconds=4))
    assert "Not divided" not in text
