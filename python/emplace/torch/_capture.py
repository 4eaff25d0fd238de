"""A model's step as an emplace graph."""
from typing import Any, Dict, List, Optional

import torch

import emplace
from emplace._files import write

from . import _compat
from ._document import Document, to_json
from ._errors import Error
from ._inputs import Inputs
from ._onnx import is_exported, unpacked
from ._trace import Tracer
from ._types import Document as DocumentDict
from ._types import ExampleInputs, Loss, Model, Path, StepResult, Targets, Times
from ._values import attribute_of, last_uses


class Capture:
    """A captured step: `graph`, which every function of emplace takes, and what runs it again."""

    def __init__(self, model, inputs, trace, optimizer, name, portable):
        self.model, self.optimizer = model, optimizer
        self.inputs, self.trace, self.portable = inputs, trace, portable
        self.modes = {path: module.training for path, module in model.named_modules()}
        source = f"torch {torch.__version__}, aten operators of " + (
            "a training step" if trace.training else "a forward pass")
        self.document = Document(trace, name, source, optimizer)
        self._graph = None
        self._in_eval = None

    @property
    def name(self) -> str:
        return self.document.value["name"]

    @property
    def training(self) -> bool:
        return self.trace.training

    @property
    def graph(self) -> emplace.Graph:
        """The emplace.Graph, made when it is first asked for."""
        if self._graph is None:
            self._graph = emplace.Graph.from_json(to_json(self.document.value))
        return self._graph

    def to_dict(self) -> DocumentDict:
        """emplace.graph/1, for json.dump."""
        return self.document.value

    def held(self) -> List[torch.Tensor]:
        """The tensors of the step that live as long as the model: parameters, buffers, and what the
        optimizer keeps."""
        trace = self.trace
        kept = [state.value for state in trace.parameters + trace.buffers]
        if self.optimizer is not None:
            kept += [value for values in self.optimizer.state.values() for value in values.values()
                     if isinstance(value, torch.Tensor)]
        return kept

    def set_times(self, times: Times) -> None:
        """Measured times in microseconds: {op: {device or kind: time}}. They replace those that the
        op had for the same devices."""
        for op in self.document.ops:
            if times.get(op["name"]):
                op["time_us"] = {**op.get("time_us", {}), **{
                    key: round(value, 3) for key, value in times[op["name"]].items()}}
        self._graph = None

    def save(self, path: Path) -> None:
        """Writes emplace.graph/1, gzipped where the name ends with .gz."""
        write(path, to_json(self.document.value))

    def run(self, *args: Any, **kwargs: Any) -> StepResult:
        """Runs the captured ops with the model's parameters and buffers as they are now, changing
        neither. Of a training step: (loss, gradients by parameter's name); else what the model
        returns."""
        trace = self.trace
        values = [state.value.detach() for state in trace.parameters + trace.buffers]
        env: Dict[torch.fx.Node, Any] = {}
        free = last_uses(trace.module.graph)
        given = iter(values + self.inputs.match(args, kwargs))
        fetch = lambda value: torch.fx.node.map_arg(value, env.__getitem__)
        with torch.no_grad(), _compat.autocast_off():
            *calls, _ = trace.nodes  # the last one is the output
            for node in calls:
                if node.op == "placeholder":
                    env[node] = next(given)
                elif node.op == "get_attr":
                    env[node] = attribute_of(trace.module, node.target)
                else:
                    env[node] = node.target(*fetch(node.args), **fetch(node.kwargs))
                for read in free.get(node, ()):
                    del env[read]
        outputs, gradients, _ = trace.results
        return self.result(fetch(outputs), fetch(gradients))

    def result(self, outputs, gradients):
        """What a step gives back."""
        trace = self.trace
        if trace.training:
            names = [trace.parameters[i].name for i in trace.trained]
            return outputs[0], dict(zip(names, gradients))
        structure, present = trace.output_structure
        values = iter(outputs)
        return _compat.unflatten([next(values) if there else None for there in present], structure)

    def __repr__(self):
        ops = len(self.document.ops)
        what = "training step" if self.training else "forward pass"
        return f"<emplace.torch.Capture of {self.name}: a {what} of {ops} ops>"


def capture(model: Model, example_inputs: ExampleInputs = None, *, loss: Loss = None,
            targets: Targets = (), optimizer: Optional[torch.optim.Optimizer] = None,
            name: Optional[str] = None, portable: bool = False) -> Capture:
    """The ops of a model's step, as PyTorch runs them.

    model           a torch.nn.Module; whether it is in train() or eval() mode counts. Or what
                    torch.export.export gives, whose own example inputs then will do
    example_inputs  what it is called with: a tensor, a tuple of arguments, or a dictionary of named
                    ones. The graph is for inputs of these shapes and dtypes
    loss            a function of the model's output, and of the targets, that returns the loss;
                    without one the forward pass alone is captured
    targets         what the loss takes after the output: a tensor or a tuple of them
    optimizer       a torch.optim optimizer of the model's parameters, whose updates and state then
                    are part of the step
    name            of the graph; the model's class, if not given
    portable        only operators that every kind of device has. Fused attention is taken apart,
                    so results may differ from eager ones in the last bits

    Parameters, buffers, random numbers and the optimizer's state stay as they are.

    >>> import torch, emplace.torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> captured = emplace.torch.capture(net, torch.zeros(3, 4))
    >>> captured.graph.parameters, captured.training
    (58, False)
    >>> captured.run(torch.zeros(3, 4)).shape
    torch.Size([3, 2])
    """
    if is_exported(model):
        name = name or "exported"
        model, example_inputs = unpacked(model, example_inputs)
    check_model(model, optimizer, loss)
    if example_inputs is None:
        raise Error("example_inputs: are missing; expected what the model is called with")
    inputs = Inputs(model, example_inputs, targets)
    trace = Tracer(model, inputs, loss, portable).run()
    return Capture(model, inputs, trace, optimizer, name or type(model).__name__, portable)


def capture_in_eval(captured):
    """(the forward pass in eval() of what was captured in another mode, why there is none). Kept, as a model that was
    placed since may be on several devices, where it cannot be captured."""
    if captured._in_eval is None:
        try:
            captured._in_eval = _captured_in_eval(captured), ""
        except Error as error:
            captured._in_eval = None, str(error)
    return captured._in_eval


def _captured_in_eval(captured):
    model = captured.model
    inputs, before = captured.inputs.without_targets(model), [(module, module.training) for module in model.modules()]
    try:
        set_modes((module, False) for module, _ in before)
        trace = Tracer(model, inputs, None, captured.portable).run()
        return Capture(model, inputs, trace, None, captured.name, captured.portable)
    finally:
        set_modes(before)


def set_modes(modes):
    """Not by train(), which some modules have a version of their own of that changes their weights."""
    for module, training in modes:
        module.training = training


def check_model(model, optimizer, loss):
    if not isinstance(model, torch.nn.Module):
        raise Error(f"model: expected a torch.nn.Module, not {type(model).__name__}")
    for path, module in model.named_modules():
        if isinstance(module, torch.jit.ScriptModule):
            what = f"module '{path}' is" if path else "is"
            raise Error(f"model: {what} TorchScript, whose ops cannot be traced; expected the module that "
                        "it was made of")
    if loss is not None and not callable(loss):
        raise Error("loss: expected a function of the model's output and of the targets, not "
                    f"{type(loss).__name__}")
    own = {id(parameter) for parameter in model.parameters()}
    criterion = getattr(loss, "__self__", loss)  # of its method
    for name, parameter in criterion.named_parameters() if isinstance(criterion, torch.nn.Module) else ():
        if parameter.requires_grad and id(parameter) not in own:
            raise Error(f"loss: has a parameter '{name}' of its own, which would get no gradient; expected it "
                        "in the model")
    if optimizer is None:
        return
    if loss is None:
        raise Error("optimizer: is of no use without a loss; expected a function of the model's "
                    "output as loss")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise Error(f"optimizer: expected a torch.optim.Optimizer, not {type(optimizer).__name__}; "
                    "for example torch.optim.SGD(model.parameters(), lr=0.1)")
    for group in optimizer.param_groups:
        if not all(id(parameter) in own for parameter in group["params"]):
            raise Error("optimizer: has parameters that are not the model's")
