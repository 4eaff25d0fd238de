"""A model whose step runs where a placement says."""
import contextlib
import operator
import threading
from typing import Any, Optional, Union

import torch

import emplace

from ._capture import Capture, capture
from ._devices import cluster_of, devices_from, warn_of_unknown_kinds
from ._errors import Error
from ._inputs import describe
from ._operators import is_view
from ._optimizer import group_of
from ._profile import Profile
from ._profile import profile as profile_of
from ._run import Program
from ._types import (ClusterLike, DeviceLike, Devices, ExampleInputs, Loss, Model, Placement,
                     Targets)


class Placed:
    """A step that runs op by op on several devices. Call it as the model is called; a training step
    takes the targets after the model's arguments.

    model      the model itself, whose parameters now are on their devices
    answer     the emplace.Answer: predicted times, memory, explanation
    device_of  from every op's name to its device's name
    """

    def __init__(self, captured, devices, device_of, answer):
        self.capture, self.devices, self.answer = captured, devices, answer
        self.model, self.optimizer = captured.model, captured.optimizer
        self.device_of = dict(device_of)
        starts = dict(zip(answer.problem.graph.op_names, answer.timeline.start.tolist()))
        self.program = Program(captured, devices, self.device_of, starts)
        self._shared = shared_gradients(captured.trace)
        self._overwritten = overwritten_results(captured.trace)
        self._kept = unchanged_buffers(captured.trace)
        # Steps that change the model follow each other; others may run at once.
        changes = captured.trace.training or not all(self._kept)
        self._alone = threading.Lock() if changes else contextlib.nullcontext()
        for state in self._states():
            move_state(self.model, state, devices[self.program.home[state.name]], self.optimizer)

    def _states(self):
        return self.capture.trace.parameters + self.capture.trace.buffers

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Of a forward pass: what the model returns. Of a training step: the loss. With an
        optimizer the parameters are updated; without one, gradients are added to each parameter's
        `.grad`, as backward() does."""
        inputs = self.capture.inputs.match(args, kwargs)
        with self._alone:
            return self._step(inputs)

    def _step(self, inputs):
        trace = self.capture.trace
        results = self.program.run([self._value(state) for state in self._states()], inputs)
        with torch.no_grad():
            outputs, gradients, buffers = (
                [value.clone() if overwritten else value for value, overwritten in zip(*both)]
                for both in zip(results, self._overwritten))
            for state, value, kept in zip(trace.buffers, buffers, self._kept):
                if not kept:
                    state.value.copy_(value)
        if not trace.training:
            return self.capture.result(outputs, gradients)
        if self.optimizer is not None:  # also those that this loss does not reach
            self.optimizer.zero_grad(set_to_none=True)
        for position, gradient, shared in zip(trace.trained, gradients, self._shared):
            if gradient is not None:
                add_gradient(trace.parameters[position].value, gradient, shared,
                             replace=self.optimizer is not None)
        if self.optimizer is not None:
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return outputs[0]

    def _value(self, state):
        """As it was placed; whoever moved or cast the model since is told."""
        value, shape = state.value.detach(), self.capture.trace.shapes[self.capture.trace.state_nodes[state.name]]
        device = self.devices[self.program.home[state.name]]
        if not device.has(value):
            raise Error(f"'{state.name}': is not on {device.name} any more; expected parameters to stay where they "
                        "were placed: place the model again")
        if value.shape != shape.size or value.dtype != shape.dtype:
            raise Error(f"'{state.name}': is {describe(value)}; expected "
                        f"{str(shape.dtype).split('.')[-1]} of shape {list(shape.size)}, as captured")
        return value

    def gather(self, device: DeviceLike = "cpu") -> torch.nn.Module:
        """Brings the model back to one device; this object is of no use then. Returns the model."""
        (target,) = devices_from([device])
        for state in self._states():
            move_state(self.model, state, target, self.optimizer)
        return self.model

    def __repr__(self):
        names = ", ".join(device.name for device in self.devices)
        return f"<emplace.torch.Placed {self.capture.name} on {names}>"


def add_gradient(parameter, gradient, shared, replace):
    """Into .grad, laid out as the parameter, as autograd has it, and nobody else's."""
    if parameter.grad is not None and not replace:
        parameter.grad = parameter.grad + gradient
    elif shared or gradient.stride() != parameter.stride():
        parameter.grad = torch.empty_like(parameter).copy_(gradient)
    else:
        parameter.grad = gradient


def shared_gradients(trace):
    """Whether each gradient may be the memory of something else that outlives the step."""
    outputs, gradients, buffers = trace.results
    bases = [None if node is None else base_of(node) for node in gradients]
    others = [base_of(node) for node in outputs + buffers]
    return [base is not None and (base.op != "call_function" or base in others
                                  or bases.count(base) > 1) for base in bases]


def unchanged_buffers(trace):
    """Whether each buffer is after a step what it was before."""
    return [node is trace.state_nodes[state.name]
            for state, node in zip(trace.buffers, trace.results[2])]


def overwritten_results(trace):
    """Whether each result (outputs, gradients, buffers) shows a buffer's old value, over which the
    new one is written."""
    written = {trace.state_nodes[state.name]
               for state, kept in zip(trace.buffers, unchanged_buffers(trace)) if not kept}
    return [[node is not None and base_of(node) in written for node in nodes]
            for nodes in trace.results]


def base_of(node):
    """What a view shows."""
    while node.op == "call_function" and (node.target is operator.getitem or is_view(node.target)):
        if node.target is operator.getitem and not is_view(node.args[0].target):
            return node
        node = node.args[0]
    return node


def move_state(model, state, device, optimizer):
    """A parameter or buffer, with its gradient and the optimizer's state, to a device."""
    old = state.value
    if device.has(old):
        return
    data = device.take(old.detach())
    if type(data) is torch.Tensor and torch._has_compatible_shallow_copy_type(old, data):
        # As Module.to() does: whoever holds the parameter sees it move.
        old.data = data
        if old.grad is not None:
            old.grad.data = device.take(old.grad)
        new = old
    else:
        new = torch.nn.Parameter(data, old.requires_grad) if isinstance(
            old, torch.nn.Parameter) else data
        for name in state.names:
            path, _, key = name.rpartition(".")
            owner = model.get_submodule(path)
            (owner._parameters if key in owner._parameters else owner._buffers)[key] = new
            if isinstance(owner, torch.nn.RNNBase):  # keeps a list of its own
                owner._flat_weights = [getattr(owner, name) for name in owner._flat_weights_names]
    if optimizer is not None:
        _move_optimizer_state(optimizer, old, new, device)


def _move_optimizer_state(optimizer, old, new, device):
    group = group_of(optimizer, old) or {}
    for each in optimizer.param_groups:
        each["params"] = [new if parameter is old else parameter for parameter in each["params"]]
    if old in optimizer.state:
        kept = optimizer.state.pop(old)
        # Counts of steps are numbers, which stay with the host unless the parameter's device counts.
        numbers = group.get("fused") or group.get("capturable")
        optimizer.state[new] = {
            key: device.take(value) if isinstance(value, torch.Tensor) and (
                numbers or value.dim() > 0) else value
            for key, value in kept.items()}


def place(model: Model, example_inputs: ExampleInputs = None, *, devices: Devices, loss: Loss = None,
          targets: Targets = (), optimizer: Optional[torch.optim.Optimizer] = None,
          placer: str = "auto", placement: Placement = None, cluster: ClusterLike = None,
          profile: Union[bool, Profile] = False, seconds: float = 5.0, seed: int = 1,
          name: Optional[str] = None, **options: Any) -> Placed:
    """Finds where every op of a model's step should run, and gives back what runs it there.

    model, example_inputs, loss, targets, optimizer, name: as `capture` takes them. Or `model` is a
    Capture, and nothing else of these is given.

    devices    names of PyTorch's devices, or Device objects: ["cuda:0", "cuda:1", "cpu"]
    placer     any placer of emplace's, with its `options`; `seconds` is its budget
    placement  in place of a search: an emplace.Answer, or a dictionary from op to device
    cluster    what the devices are for the simulator, one by one and in this order: a preset, a
               file's name or an emplace.Cluster. Without it, kinds and memory are those of the
               devices
    profile    True: measure the ops on the devices first; or what `profile` gave

    Parameters and buffers of the model move to their devices, as with model.to(). Raises Error
    where the model does not fit.

    >>> import torch, emplace.torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> placed = emplace.torch.place(net, torch.zeros(3, 4), devices=["cpu"], placer="single")
    >>> placed(torch.ones(3, 4)).shape, placed.device_of["0.addmm"]
    (torch.Size([3, 2]), 'cpu')
    """
    places = devices_from(devices)
    captured = captured_for(places, model, example_inputs, loss=loss, targets=targets,
                            optimizer=optimizer, name=name)
    measured = measured_for(captured, places, profile)
    cluster, names = cluster_for(places, cluster, captured, measured)
    problem = emplace.compile(captured.graph, cluster)
    if placement is None:
        answer = emplace.place(problem, placer, seconds=seconds, seed=seed,
                               use_cpu=any(device.is_cpu for device in places), **options)
    else:
        answer = assessed(problem, placement, names)
    if not answer.fits:
        raise Error(f"{captured.name}: does not fit. " + shortage(answer, places))
    device_of = {op: names[device] for op, device in answer.device_of.items()}
    return Placed(captured, places, device_of, answer)


def measured_for(captured, devices, wanted):
    """A Profile of the capture, where one is wanted."""
    if not isinstance(wanted, Profile):
        return profile_of(captured, devices=devices) if wanted else None
    if wanted.capture is not captured:
        raise Error("profile: is of another capture; expected one of the model that is placed")
    return wanted


def captured_for(devices, model, example_inputs, **given):
    """A capture that these devices can run, or the one that was given."""
    if not isinstance(model, Capture):
        if example_inputs is None:
            raise Error("example_inputs: expected what the model is called with")
        mixed = len({device.torch_device.type for device in devices}) > 1
        return capture(model, example_inputs, portable=mixed, **given)
    if example_inputs is not None or any(
            len(value) > 0 if isinstance(value, (tuple, list)) else value is not None
            for value in given.values()):
        raise Error("model: is captured already; expected no inputs, loss or optimizer beside it")
    return model


def cluster_for(devices, cluster, captured, measured=None):
    """The cluster, and the device's name of PyTorch's by its name in the cluster."""
    if cluster is None:
        if measured is None:
            warn_of_unknown_kinds(devices, stacklevel=3)
        cluster = cluster_of(devices, measured.links if measured else None, captured.held())
    elif measured is not None:
        raise Error("profile: measures the devices that are here; expected no cluster beside it")
    elif isinstance(cluster, str):
        cluster = emplace.read_cluster(cluster)
    if len(cluster) != len(devices):
        raise Error(f"cluster: has {len(cluster)} devices; expected {len(devices)}, one for each of "
                    "devices")
    return cluster, {theirs.name: ours.name for theirs, ours in zip(cluster.devices, devices)}


def assessed(problem, placement, names):
    """A given placement, checked. Devices may be called as in PyTorch or as in the cluster."""
    if isinstance(placement, emplace.Answer):
        placement = placement.device_of
    if not isinstance(placement, dict):
        return emplace.assess(problem, placement)
    theirs = {ours: name for name, ours in names.items()}
    return emplace.assess(problem, {op: theirs.get(device, device)
                                    for op, device in placement.items()})


def shortage(answer, devices):
    parts = [f"{device.name} needs {readable(use.peak)} and has {readable(use.capacity)}"
             for device, use in zip(devices, answer.timeline.devices) if use.peak > use.capacity]
    return "; ".join(parts) + ": expected more memory, more devices or a smaller batch"


def readable(size):
    for unit in ("bytes", "KiB", "MiB"):
        if size < 10240:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


__all__ = ["Placed", "place"]
