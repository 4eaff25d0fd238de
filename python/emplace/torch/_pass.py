"""A captured step or forward pass on its devices, and what its results do to the model."""
import operator

import torch

from ._errors import Error
from ._inputs import describe
from ._operators import is_view
from ._run import Program


class Pass:
    """`device_of` and `starts` are as Program takes them."""

    def __init__(self, captured, devices, device_of, starts=None):
        self.capture, self.devices = captured, devices
        self.program = Program(captured, devices, device_of, starts)
        self._states = captured.trace.parameters + captured.trace.buffers
        self._trained = {captured.trace.parameters[i].name for i in captured.trace.trained}
        self._shared = shared_gradients(captured.trace)
        self._overwritten = overwritten_results(captured.trace)
        self._kept = unchanged_buffers(captured.trace)

    @property
    def changes_the_model(self):
        return self.capture.training or not all(self._kept)

    def run(self, inputs, optimizer):
        trace = self.capture.trace
        results = self.program.run([self._value(state) for state in self._states], inputs)
        with torch.no_grad():
            outputs, gradients, buffers = (
                [value.clone() if overwritten else value for value, overwritten in zip(*both)]
                for both in zip(results, self._overwritten))
            for state, value, kept in zip(trace.buffers, buffers, self._kept):
                if not kept:
                    state.value.copy_(value)
        if not trace.training:
            return self.capture.result(outputs, gradients)
        self._train(gradients, optimizer)
        return outputs[0]

    def _train(self, gradients, optimizer):
        trace = self.capture.trace
        if optimizer is not None:  # also those that this loss does not reach
            optimizer.zero_grad(set_to_none=True)
        for position, gradient, shared in zip(trace.trained, gradients, self._shared):
            if gradient is not None:
                add_gradient(trace.parameters[position].value, gradient, shared,
                             replace=optimizer is not None)
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def _value(self, state):
        """As it was placed; whoever has moved, cast or frozen it since is told."""
        trace, value = self.capture.trace, state.value
        shape, device = trace.shapes[trace.state_nodes[state.name]], self.devices[self.program.home[state.name]]
        if not device.has(value):
            raise Error(f"'{state.name}': is not on {device.name} any more; expected parameters to stay where they "
                        "were placed: place the model again")
        if value.shape != shape.size or value.dtype != shape.dtype:
            raise Error(f"'{state.name}': is {describe(value)}; expected {describe(shape)}, as captured")
        if trace.training and value.requires_grad != (state.name in self._trained):
            raise Error(f"'{state.name}': requires_grad is {value.requires_grad}; expected "
                        f"{not value.requires_grad}, as captured: place the model again")
        return value.detach()


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
