"""Other ways in than capture's own: through ONNX, and by torch.export."""
import os

import pytest
import torch
from torch import nn

import emplace
import emplace.torch
from models import MODELS, Control, cross_entropy, make


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"efficientnet"}))  # no bernoulli(out=)
def test_models_go_through_onnx(name):
    model, x, _ = make(name)
    mode = model.training
    read = emplace.torch.onnx_model(model, x)
    # ONNX does not tell a running mean from a weight.
    parameters = sum(p.numel() for p in model.parameters())
    buffers = sum(b.numel() for b in model.buffers() if b.is_floating_point())
    assert parameters <= read.graph.parameters <= parameters + buffers
    assert model.training == mode and len(read.graph) > 10
    names = set(read.graph.op_names)
    assert any(parameter in names for parameter, _ in model.named_parameters())


def test_a_training_step_through_onnx_can_be_divided(tmp_path):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(64, 128), nn.Linear(128, 8)

        def forward(self, x, target):
            return nn.functional.cross_entropy(self.down(torch.relu(self.up(x))), target)

    path = tmp_path / "net.onnx"
    inputs = {"x": torch.zeros(16, 64), "target": torch.zeros(16, dtype=torch.long)}
    read = emplace.torch.onnx_model(Net(), inputs, path=path, training=True, optimizer="adam")
    assert read.graph.training and path.stat().st_size > 1000 and os.listdir(tmp_path) == ["net.onnx"]
    divided = emplace.partition(emplace.compile(read, "2xp100"), "all-row")
    assert divided.step > 0


def test_what_depends_on_values_is_refused():
    with pytest.raises(emplace.Error, match="models.py:.*looks at a tensor's contents"):
        emplace.torch.onnx_model(Control(), torch.ones(2, 8))
    with pytest.raises(emplace.Error, match="expected a torch.nn.Module, not int"):
        emplace.torch.onnx_model(3, torch.ones(3))
    with pytest.raises(emplace.Error, match="no use without training=True"):
        emplace.torch.onnx_model(nn.Linear(2, 2), torch.ones(1, 2), optimizer="adam")
    with pytest.raises(emplace.Error, match="mat1 and mat2|could not be exported"):
        emplace.torch.onnx_model(nn.Linear(2, 2), torch.ones(1, 3))


class Program:
    """What torch.export.export gives, as far as it is used; the real one is of PyTorch 2.1 and later."""

    graph_signature = object()

    def __init__(self, module, example_inputs):
        self._module, self.example_inputs = module, example_inputs

    def module(self):
        return self._module


def test_an_exported_program_is_captured_with_its_own_examples():
    net = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
    x = torch.randn(3, 4)
    captured = emplace.torch.capture(Program(net, ((x,), {})))
    assert captured.graph.parameters == 58 and captured.graph.name == "exported"
    assert torch.equal(captured.run(x), net(x))
    trained = emplace.torch.capture(Program(net, ((x,), {})), loss=lambda output: output.sum())
    assert trained.training
    with pytest.raises(emplace.Error, match="has none of its own"):
        emplace.torch.capture(Program(net, None))
    with pytest.raises(emplace.Error, match="example_inputs: are missing"):
        emplace.torch.capture(net)


@pytest.mark.skipif(not hasattr(torch, "export"), reason="torch.export is of PyTorch 2.1 and later")
def test_a_real_exported_program():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    captured = emplace.torch.capture(torch.export.export(net, (x,)))
    assert torch.equal(captured.run(x), net(x))


def test_models_that_share_weights_are_captured_with_one(capsys):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens):
            return self.head(self.embed(tokens))

    model, tokens = Tied(), torch.randint(0, 10, (2, 3))
    captured = emplace.torch.capture(model, tokens, loss=cross_entropy, targets=tokens)
    assert captured.graph.parameters == 40
    assert emplace.torch.onnx_model(model, tokens).graph.parameters == 40


def test_a_model_elsewhere_than_its_inputs_is_refused():
    with pytest.raises(emplace.Error, match="input 'input': is on cpu and the model on meta"):
        emplace.torch.capture(nn.Linear(3, 3, device="meta"), torch.ones(2, 3))
    spread = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3, device="meta"))
    with pytest.raises(emplace.Error, match="the model is spread over .*expected all of it on one device"):
        emplace.torch.capture(spread, torch.ones(2, 3))


@pytest.mark.parametrize("name, message", [
    ("gpu0", "device 'gpu0': expected one of PyTorch's, such as cpu or cuda:0"),
    ("cuda:9", "device 'cuda:9': PyTorch sees"),
    ("meta", "holds no values; expected a device that computes"),
])
def test_unknown_devices_are_refused(name, message):
    with pytest.raises(emplace.Error, match=message):
        emplace.torch.place(nn.Linear(3, 3), torch.ones(2, 3), devices=["cpu", name])


def test_the_exporter_leaves_running_statistics_as_they_are():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    emplace.torch.onnx_model(model, torch.randn(5, 3))
    assert not model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
