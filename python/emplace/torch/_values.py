"""Runs a traced step on values, node by node."""
from dataclasses import dataclass

import torch
import torch.fx

from . import _compat


@dataclass(frozen=True)
class Shape:
    """What is known of a tensor without its contents."""
    size: tuple
    dtype: torch.dtype
    stride: tuple
    offset: int

    @property
    def shape(self):
        return self.size

    @staticmethod
    def of(value):
        if isinstance(value, torch.Tensor):
            return Shape(tuple(value.shape), value.dtype, tuple(value.stride()),
                         value.storage_offset())
        if isinstance(value, (tuple, list)):
            return [Shape.of(item) for item in value]
        return None


def last_uses(graph):
    """By node: the nodes that nobody reads after it."""
    last = {}
    for node in graph.nodes:
        for read in node.all_input_nodes:
            last[read] = node
    free = {}
    for read, node in last.items():
        free.setdefault(node, []).append(read)
    return free


def attribute_of(module, target):
    for part in target.split("."):
        module = getattr(module, part)
    return module


def note_shapes(module, values):
    """By node."""
    shapes, env, free = {}, {}, last_uses(module.graph)
    given = iter(_compat.flatten(values)[0])
    with torch.no_grad():
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = attribute_of(module, node.target)
            elif node.op == "call_function":
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), env.__getitem__)
                env[node] = node.target(*args, **kwargs)
                del args, kwargs
            else:
                break
            shapes[node] = Shape.of(env[node])
            for read in free.get(node, ()):
                env.pop(read, None)
            if not node.users:
                env.pop(node)
    return shapes
