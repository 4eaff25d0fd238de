"""Makes a traced graph smaller and pure: no writes, no views that show nothing new, no dead ops, and
none that depend on how a tensor happens to lie in memory."""
import operator

import torch

from . import _compat
from ._errors import Error
from ._values import note_shapes

_SAME = {"detach", "alias", "lift_fresh", "lift"}


def _name(target):
    schema = getattr(target, "_schema", None)
    return schema.name.split("::")[-1] if schema is not None else ""


def out_of_place(target):
    """The operator, applied to a copy of its first argument: what functionalize left in place
    (random numbers written into a fresh tensor) writes nothing that others see."""
    def run(first, *args, **kwargs):
        return target(first.clone(), *args, **kwargs)
    run.__name__ = _name(target)
    run._schema = target._schema
    run.in_place = target
    return run


def note_layouts(module, values):
    """How tensors lay in memory that were then read by position (as_strided): by what identifies
    such a view, the Shape of what is viewed. Functionalize does not keep layouts."""
    views = [node for node in module.graph.nodes if node.op == "call_function"
             and _name(node.target) == "as_strided"]
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
    geometry = node.args[1:] if _name(target) == "as_strided" else node.args[2:]
    actual = shapes[node.args[0]]
    base = layouts.get(_view_key(actual, geometry), actual)

    def run(tensor, *args):
        if tuple(tensor.stride()) != base.stride:
            tensor = tensor.new_empty_strided(base.size, base.stride).copy_(tensor)
        inputs, (size, stride, offset) = args[:-3], args[-3:]
        first = tensor.storage_offset() + (0 if offset is None else offset - base.offset)
        return target(tensor, *inputs, size, stride, first)
    run.__name__ = _name(target)
    run._schema = target._schema
    return run


def fix_layouts(module, layouts, shapes):
    for node in module.graph.nodes:
        if node.op == "call_function" and _name(node.target) in ("as_strided",
                                                                 "as_strided_scatter"):
            inputs = 1 if _name(node.target) == "as_strided" else 2
            node.args = (*node.args, *[None] * (inputs + 3 - len(node.args)))
            node.target = by_position(node.target, layouts, shapes, node)


def _writes(target):
    schema = getattr(target, "_schema", None)
    return (schema is not None and bool(schema.arguments)
            and schema.arguments[0].alias_info is not None
            and schema.arguments[0].alias_info.is_write)


def is_random(node):
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    name = _name(node.target)
    return ("nondeterministic_seeded" in _compat.tags_of(node.target)
            or any(word in name for word in ("bernoulli", "dropout", "rand", "normal_", "uniform_",
                                             "multinomial", "exponential_")))


def simplify(module):
    graph = module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        name = _name(node.target)
        if name in _SAME:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif name == "copy_" and node.args[0].op == "placeholder":
            # The new value of a buffer, which is among the outputs.
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
        elif name == "_reshape_alias":
            # Carries the strides of one copy of the tensor.
            node.target, node.args = torch.ops.aten.reshape.default, node.args[:2]
        elif _writes(node.target):
            node.target = out_of_place(node.target)
    for node in reversed(list(graph.nodes)):
        # Random ops stay, as those after them would draw other numbers.
        if node.op in ("call_function", "get_attr") and not node.users and not is_random(node):
            graph.erase_node(node)
    graph.lint()
