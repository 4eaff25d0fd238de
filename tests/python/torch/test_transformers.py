"""Models of Hugging Face's transformers, where the package is installed."""
import pytest
import torch

import emplace
import emplace.torch
from hugging_face import HUGGING_FACE, eager_step, make_theirs

transformers = pytest.importorskip("transformers")


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * float(theirs.abs().max()) + 1e-6)


@pytest.mark.parametrize("name", HUGGING_FACE)
@pytest.mark.parametrize("portable", [False, True])
def test_steps_are_captured(name, portable):
    model, inputs, loss = make_theirs(transformers, name)
    value, gradients = eager_step(model, inputs, loss)
    captured = emplace.torch.capture(model, inputs, loss=loss, portable=portable)
    ours, theirs = captured.run(**inputs)
    close(ours, value)
    for key, gradient in gradients.items():
        assert (gradient is None) == (theirs[key] is None), key
        if gradient is not None:
            close(theirs[key], gradient)
    assert captured.graph.parameters == sum(p.numel() for p in model.parameters())
    assert len({op.get("module") for op in captured.to_dict()["ops"]}) > 10


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_forward_passes_give_what_the_model_does(name):
    model, inputs, _ = make_theirs(transformers, name)
    model.eval()
    with torch.no_grad():
        theirs = model(**inputs)
    ours = emplace.torch.capture(model, inputs).run(**inputs)
    assert type(ours) is type(theirs) and list(ours) == list(theirs)
    for key, value in theirs.items():
        close(ours[key], value)


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_maps_name_modules_of_the_model(name):
    model, inputs, _ = make_theirs(transformers, name)
    found = emplace.torch.device_map(model.eval(), inputs, devices=["cpu"], seconds=0.5)
    modules = dict(model.named_modules())
    assert found and all(key in modules for key in found) and set(found.values()) == {"cpu"}
    with torch.no_grad():
        before = model(**inputs)
        after = emplace.torch.dispatch(model, found)(**inputs)
    for key, value in before.items():
        assert torch.equal(value, after[key]), key
