"""Makes a traced graph smaller and pure: no writes, no views that show nothing new, no dead ops."""
import operator

import torch

from . import _compat

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
