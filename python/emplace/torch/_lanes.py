"""A lane issues the ops of some of the devices, one after the other. A host that computes beside
accelerators has a lane and a thread of its own, as its ops end before their calls return, and would
hold up what the accelerators are given.

Lanes share nothing but what they post to each other. All of them keep to one order of all ops, in
which nothing precedes what it reads, so that they never wait for each other in a circle.
"""
import operator
import threading

import torch
import torch.fx

from . import _compat
from ._layouts import MOST_ROOM, room_of


class Stopped(Exception):
    """Another lane has failed."""


class Mail:
    """What lanes post to each other in a step."""

    def __init__(self):
        self._changed = threading.Condition()
        self._items, self._stopped = {}, False

    def post(self, node, item):
        with self._changed:
            self._items[node] = item
            self._changed.notify_all()

    def wait(self, node):
        with self._changed:
            while node not in self._items and not self._stopped:
                self._changed.wait()
            if self._stopped:
                raise Stopped
            return self._items.pop(node)

    def stop(self):
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def check(self):
        if self._stopped:
            raise Stopped


def filled(value, fetch):
    """An argument with values in place of nodes; torch.fx's own way takes several times as long."""
    if isinstance(value, torch.fx.Node):
        return fetch(value)
    if isinstance(value, (list, tuple)):
        return [filled(item, fetch) for item in value]
    return value


def laid_out(copied, strides):
    """A copy on another device, with the strides of what was copied: processors compute rows that are not
    dense in another way, which shows in the last bits."""
    if (copied.stride() == strides or 0 in strides
            or room_of(copied.shape, strides) > MOST_ROOM * copied.numel()):
        return copied
    return copied.new_empty_strided(copied.shape, strides).copy_(copied)


def on_the_host(value, device):
    """Whether it is a number that an op of the device left in the host's memory (the seed of a fused
    attention's dropout), where whoever takes it reads it."""
    return value.dim() == 0 and value.device.type == "cpu" and not device.has(value)


class Lane:
    """`calls` are its own, in order; `at` has the device's number of every node, `places` those of its
    devices, and `results` the (node, number) that are wanted after the step. Steps change nothing of
    it, so several threads can be in a step each."""

    def __init__(self, devices, at, calls, places, results):
        self.devices, self.at, self.calls, self.places = devices, at, calls, places
        self.frees = self._plan_frees(results)
        # What others read of it.
        self.posted = {call for call in calls for user in call.users
                       if user in at and at[user] not in places}

    def _plan_frees(self, results):
        """By call: the (node, device) that nobody needs after it. Results stay."""
        position = {call: i for i, call in enumerate(self.calls)}
        last = {}
        for call in self.calls:
            for read in call.all_input_nodes:
                last[read, self.at[call]] = call
        kept = set(results)
        keepers = {node for node, _ in results if self.at[node] in self.places}
        # What was copied must stay at its producer's until the last copy was made.
        for (node, where), call in list(last.items()):
            home = node, self.at[node]
            if where != self.at[node] and (
                    home not in last or position[call] > position[last[home]]):
                last[home] = call
        frees = {}
        for (node, where), call in last.items():
            if (node, where) not in kept and not (node in keepers and where == self.at[node]):
                frees.setdefault(call, []).append((node, where))
        return frees


class LaneStep:
    """What a lane has in one step: `env` has the values, by (node, device's number)."""

    def __init__(self, lane, env, mail, around=None):
        self.lane, self.env, self.mail, self.around = lane, env, mail, around
        self.copies = self.copied_bytes = 0

    def run(self):
        with torch.no_grad(), _compat.autocast_off():
            for node in self.lane.calls:
                self.mail.check()
                self._call(node)

    def _call(self, node):
        env, lane, where = self.env, self.lane, self.lane.at[node]
        device = lane.devices[where]
        fetch = lambda read: self._fetch(read, where)
        args = [filled(value, fetch) for value in node.args]
        kwargs = {key: filled(value, fetch) for key, value in node.kwargs.items()}
        if node.target is operator.getitem:
            value = args[0][args[1]]
        elif self.around is None:
            value = device.call(node.target, args, kwargs)
        else:
            value = self.around(node, device, lambda: device.call(node.target, args, kwargs))
        if node in lane.posted:
            sent = None if on_the_host(value, device) else device.send_to_host(value)
            self.mail.post(node, (*(sent or (value, None)), value.stride()))
        if node.users:
            env[node, where] = value
        for key in lane.frees.get(node, ()):
            env.pop(key, None)

    def _fetch(self, node, where):
        value = self.env.get((node, where))
        if value is None:
            home = self.lane.at[node]
            if (node, home) not in self.env:
                value, arrived, strides = self.mail.wait(node)
                if arrived is not None:
                    arrived()
                    return self.keep(node, where, laid_out(value, strides))
                self.env[node, home] = value
            value = self.env[node, home]
            if on_the_host(value, self.lane.devices[home]):
                return value
            value = self.keep(node, where, laid_out(self.lane.devices[where].take(value), value.stride()))
        return value

    def keep(self, node, where, value):
        self.env[node, where] = value
        self.copies += 1
        self.copied_bytes += value.numel() * value.element_size()
        return value
