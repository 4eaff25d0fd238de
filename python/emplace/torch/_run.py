"""Runs a captured step op by op on several devices.

Every op runs on the device that the placement has for it. A tensor that is needed on another device
is copied there once, before its first use, and dropped after its last. Random ops keep their order.
"""
import operator

import torch
import torch.fx

from ._values import attribute_of


def filled(value, fetch):
    """An argument with values in place of nodes; torch.fx's own way takes several times as long."""
    if isinstance(value, torch.fx.Node):
        return fetch(value)
    if isinstance(value, (list, tuple)):
        return [filled(item, fetch) for item in value]
    return value


def on_the_host(value, device):
    """Whether it is a number that an op of the device left in the host's memory (the seed of a fused
    attention's dropout), where whoever takes it reads it."""
    return value.dim() == 0 and value.device.type == "cpu" and not device.has(value)


class Program:
    """A trace with a device for each op. `device_of` is by name of op, as in the document."""

    def __init__(self, capture, devices, device_of):
        self.trace, document = capture.trace, capture.document
        self.devices = devices
        number = {device.name: i for i, device in enumerate(devices)}
        self.at = {node: number[device_of[name]] for node, name in document.op_of.items()}
        self.home = {}  # of parameters and buffers, by name
        for state in self.trace.parameters + self.trace.buffers:
            self.home[state.name] = self.at[self.trace.state_nodes[state.name]]
        self.calls = [node for node in self.trace.nodes if node.op == "call_function"]
        self.results = self.trace.results
        self._plan_frees()
        self._constants = self._place_constants()
        self.copies = 0       # in the last step
        self.copied_bytes = 0

    def _place_constants(self):
        """Tensors that the model's code holds, on their devices."""
        return {node: self.devices[self.at[node]].take(
                    attribute_of(self.trace.module, node.target))
                for node in self.trace.nodes if node.op == "get_attr"}

    def _plan_frees(self):
        """By call: the (node, device) that nobody needs after it. Results stay."""
        ends = [(node, where) for node, where in self._result_places() if node is not None]
        last = {}
        for call in self.calls:
            for read in call.all_input_nodes:
                last[read, self.at[call]] = call
        kept, keepers = set(ends), {node for node, _ in ends}
        # What was copied must stay at its producer's until the last copy was made.
        for (node, where), call in list(last.items()):
            home = node, self.at[node]
            if where != self.at[node] and (home not in last or self._later(call, last[home])):
                last[home] = call
        self.frees = {}
        for (node, where), call in last.items():
            if (node, where) not in kept and not (node in keepers and where == self.at[node]):
                self.frees.setdefault(call, []).append((node, where))

    def _later(self, one, other):
        if not hasattr(self, "_position"):
            self._position = {call: i for i, call in enumerate(self.calls)}
        return self._position[one] > self._position[other]

    def _result_places(self):
        """(node, device) of every result: gradients with their parameters, buffers at home."""
        outputs, gradients, buffers = self.results
        places = [(node, self.at[node]) for node in outputs]
        for position, node in zip(self.trace.trained, gradients):
            places.append((node, self.home[self.trace.parameters[position].name]))
        for state, node in zip(self.trace.buffers, buffers):
            places.append((node, self.home[state.name]))
        return places

    def run(self, states, inputs, around=None):
        """(outputs, gradients, buffers) of a step from values that are on their devices; inputs are
        taken from wherever they are. `around(node, device, call)` may run a call in its way."""
        env = dict(((node, self.at[node]), value) for node, value in self._constants.items())
        self.copies = self.copied_bytes = 0
        for (name, node), value in zip(self.trace.state_nodes.items(), states):
            env[node, self.home[name]] = value
        for node, value in zip(self.trace.input_nodes, inputs):
            device = self.devices[self.at[node]]
            env[node, self.at[node]] = value if device.has(value) else device.take(value)
        with torch.no_grad():
            for node in self.calls:
                self._call(node, env, around)
            values = [None if node is None else self._fetch(node, where, env)
                      for node, where in self._result_places()]
        outputs, gradients = len(self.results[0]), len(self.results[1])
        return values[:outputs], values[outputs:outputs + gradients], values[outputs + gradients:]

    def _call(self, node, env, around):
        where = self.at[node]
        device = self.devices[where]
        fetch = lambda read: self._fetch(read, where, env)
        args = [filled(value, fetch) for value in node.args]
        kwargs = {key: filled(value, fetch) for key, value in node.kwargs.items()}
        if node.target is operator.getitem:
            env[node, where] = args[0][args[1]]
        elif around is None:
            env[node, where] = device.call(node.target, args, kwargs)
        else:
            env[node, where] = around(node, device,
                                      lambda: device.call(node.target, args, kwargs))
        if not node.users:
            del env[node, where]
        for key in self.frees.get(node, ()):
            env.pop(key, None)

    def _fetch(self, node, where, env):
        value = env.get((node, where))
        if value is None:
            value, home = env[node, self.at[node]], self.devices[self.at[node]]
            if on_the_host(value, home):
                return value
            value = self.devices[where].take(value)
            env[node, where] = value
            self.copies += 1
            self.copied_bytes += value.numel() * value.element_size()
        return value


def values_of(states):
    return [state.value.detach() for state in states]

