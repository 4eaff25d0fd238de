"""Runs a captured step op by op on several devices.

Every op runs on the device that the placement has for it, in the order of the simulated step. A
tensor that is needed on another device is copied there once, before its first use, and dropped after
its last. Random ops keep their order.
"""
import concurrent.futures
import contextlib

import torch

from ._lanes import Lane, LaneStep, Mail, Stopped, on_the_host
from ._order import issue_order
from ._values import attribute_of


class Program:
    """A trace with a device for each op. `device_of` is by name of op, as in the document; so is
    `starts`, when each op starts, by which they are issued: without it, in the capture's order."""

    def __init__(self, capture, devices, device_of, starts=None):
        self.trace, document = capture.trace, capture.document
        self.devices = devices
        number = {device.name: i for i, device in enumerate(devices)}
        self.at = {node: number[device_of[name]] for node, name in document.op_of.items()}
        self.home = {}  # of parameters and buffers, by name
        for state in self.trace.parameters + self.trace.buffers:
            self.home[state.name] = self.at[self.trace.state_nodes[state.name]]
        self.calls = [node for node in self.trace.nodes if node.op == "call_function"]
        if starts is not None:
            self.calls = issue_order(self.calls, {node: starts[document.op_of[node]]
                                                  for node in self.calls})
        self.results = self.trace.results
        self.lanes = self._make_lanes()
        self._host = None if len(self.lanes) == 1 else concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix="emplace host")
        self._constants = self._place_constants()
        self.copies = self.copied_bytes = 0  # tensors taken to another device in the last step

    def _make_lanes(self):
        """One, or one for the accelerators and one for the host."""
        hosts = {i for i, device in enumerate(self.devices) if device.is_cpu}
        groups = [set(range(len(self.devices))) - hosts, hosts]
        used = {self.at[call] for call in self.calls}
        if not all(group & used for group in groups):
            groups = [groups[0] | groups[1]]
        ends = [(node, where) for node, where in self._result_places() if node is not None]
        return [Lane(self.devices, self.at, [call for call in self.calls if self.at[call] in group],
                     group, ends) for group in groups]

    def _place_constants(self):
        """Tensors that the model's code holds, on their devices."""
        return {node: self.devices[self.at[node]].take(
                    attribute_of(self.trace.module, node.target))
                for node in self.trace.nodes if node.op == "get_attr"}

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
        for (name, node), value in zip(self.trace.state_nodes.items(), states):
            env[node, self.home[name]] = value
        for node, value in zip(self.trace.input_nodes, inputs):
            device = self.devices[self.at[node]]
            env[node, self.at[node]] = value if device.has(value) else device.take(value)
        mail = Mail()
        steps = [LaneStep(lane, dict(env), mail, around) for lane in self.lanes]
        del env
        try:
            self._run_lanes(steps, mail)
            with torch.no_grad():
                values = [None if node is None else self._result(steps, node, where)
                          for node, where in self._result_places()]
        finally:
            for step in steps:  # which a failure's traceback would keep
                step.env = {}
        self.copies = sum(step.copies for step in steps)
        self.copied_bytes = sum(step.copied_bytes for step in steps)
        outputs, gradients = len(self.results[0]), len(self.results[1])
        return values[:outputs], values[outputs:outputs + gradients], values[outputs + gradients:]

    def _run_lanes(self, steps, mail):
        """The first lane here, the other in its thread. The first failure ends both."""
        if self._host is None:
            return steps[0].run()

        def attempt(step, streams=()):
            try:
                with contextlib.ExitStack() as entered:
                    for stream in streams:
                        entered.enter_context(stream)
                    step.run()
            except BaseException:
                mail.stop()
                raise

        # Another thread has other current streams.
        streams = [device.stream() for device in self.devices]
        other = self._host.submit(attempt, steps[1], streams)
        try:
            try:
                attempt(steps[0])
            except Stopped:
                pass  # the other says why
            other.result()
        except BaseException:
            mail.stop()
            concurrent.futures.wait([other])
            raise

    def _result(self, steps, node, where):
        step = step_of(steps, where)
        if (node, where) in step.env:
            return step.env[node, where]
        home = self.at[node]
        value = step_of(steps, home).env[node, home]
        if on_the_host(value, self.devices[home]):
            return value
        return step.keep(node, where, self.devices[where].take(value))


def step_of(steps, where):
    return next(step for step in steps if where in step.lane.places)
