"""How tensors lie in memory. Functionalize makes new tensors where a step writes into old ones, and
these may lie otherwise."""
import math

import torch
import torch.fx

from ._errors import Error
from ._operators import is_view, operator_name
from ._values import Shape, note_shapes


def note_layouts(module, values):
    """How tensors lay in memory that were then read by position (as_strided): by what identifies
    such a view, the Shape of what is viewed. Functionalize does not keep layouts."""
    views = [node for node in module.graph.nodes if node.op == "call_function"
             and operator_name(node.target) == "as_strided"]
    if not views:
        return {}
    layouts, shapes = {}, note_shapes(module, values)
    for node in views:
        base = shapes[node.args[0]]
        known = layouts.setdefault(_view_key(base, node.args[1:]), base)
        if (known.stride, known.offset) != (base.stride, base.offset):
            raise Error(f"{node.meta.get('line', '')}: two tensors that lie differently in memory are "
                        "read by position in the same way, which cannot be told apart")
    return layouts


def _view_key(base, geometry):
    size, stride, offset = (*geometry, None, None)[:3]
    return base.size, tuple(size), tuple(stride), offset


def by_position(target, layouts, shapes, node):
    """as_strided, or as_strided_scatter, of a tensor that is laid out as when it was traced."""
    geometry = node.args[1:] if operator_name(target) == "as_strided" else node.args[2:]
    actual = shapes[node.args[0]]
    base = layouts.get(_view_key(actual, geometry), actual)

    def run(tensor, *args):
        if tuple(tensor.stride()) != base.stride:
            tensor = tensor.new_empty_strided(base.size, base.stride).copy_(tensor)
        inputs, (size, stride, offset) = args[:-3], args[-3:]
        first = tensor.storage_offset() + (0 if offset is None else offset - base.offset)
        return target(tensor, *inputs, size, stride, first)
    run.__name__ = operator_name(target)
    run._schema = target._schema
    return run


def fix_layouts(module, layouts, shapes):
    for node in module.graph.nodes:
        if node.op == "call_function" and operator_name(node.target) in ("as_strided",
                                                                 "as_strided_scatter"):
            inputs = 1 if operator_name(node.target) == "as_strided" else 2
            node.args = (*node.args, *[None] * (inputs + 3 - len(node.args)))
            node.target = by_position(node.target, layouts, shapes, node)


# Whose results do not depend on how many numbers a processor takes at once: each number of them is
# a copy, a comparison, or rounded after every operation.
_EXACT = {"add", "sub", "mul", "div", "neg", "abs", "sqrt", "relu", "threshold_backward", "where",
          "sigmoid_backward", "clone", "copy", "_to_copy", "fill", "zero", "masked_fill", "clamp",
          "maximum", "minimum", "cat", "stack", "eq", "ne", "lt", "le", "gt", "ge"}
# A tensor that was a small part of a large one is not given that much memory again.
MOST_ROOM = 4


def keep_rounding(module, shapes):
    """Operators of which a processor computes the numbers at the end of a row in another way than the
    rest (tanh, sums) get tensors that lie as they did when the step was first traced. Recurrent
    networks write into parts of their gates, which functionalize makes tensors of their own."""
    for node in module.graph.nodes:
        before = node.meta.get("replayed")
        if node.op != "call_function" or before is None or before.op != "call_function" or (
                operator_name(node.target) in _EXACT and "alpha" not in node.kwargs) or is_view(
                    node.target):
            continue
        if operator_name(before.target).rstrip("_") == operator_name(node.target).rstrip("_"):
            strides = _other_strides(node.args, before.args, shapes)
            if strides:
                node.target = laid_out(node.target, strides)


def _other_strides(args, before, shapes):
    """By position of an argument: its size and strides in the first trace, where they differ."""
    strides = {}
    for position, (now, then) in enumerate(zip(args, before)):
        known = then.meta.get("tensor_meta") if isinstance(then, torch.fx.Node) else None
        shape = shapes[now] if isinstance(now, torch.fx.Node) else None
        if known is not None and isinstance(shape, Shape) and 0 not in known.stride and (
                shape.size == tuple(known.shape) and shape.stride != tuple(known.stride)
                and room_of(known.shape, known.stride) <= MOST_ROOM * math.prod(shape.size)):
            strides[position] = shape.size, tuple(known.stride)
    return strides


def room_of(shape, strides):
    """From a tensor's first number to its last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))


def laid_out(target, strides):
    """The operator, whose arguments at these positions are copied into tensors with these strides."""
    def run(*args, **kwargs):
        args = list(args)
        for position, (size, stride) in strides.items():
            args[position] = args[position].new_empty_strided(size, stride).copy_(args[position])
        return target(*args, **kwargs)
    run.__name__ = operator_name(target)
    run._schema = target._schema
    return run
