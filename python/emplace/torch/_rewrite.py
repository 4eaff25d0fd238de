"""Makes a traced graph smaller and pure: no writes, no views that show nothing new, no dead ops, and
none that depend on how a tensor happens to lie in memory."""
import operator

import torch
import torch.fx

from . import _compat
from ._operators import operator_name
from ._origin import kept_of

_SAME = {"detach", "alias", "lift_fresh", "lift"}


def out_of_place(target):
    """The operator, applied to a copy of its first argument: what functionalize left in place
    (random numbers written into a fresh tensor) writes nothing that others see."""
    def run(first, *args, **kwargs):
        return target(first.clone(), *args, **kwargs)
    run.__name__ = operator_name(target)
    run._schema = target._schema
    run.in_place = target
    return run


def fills_a_fresh_tensor(node):
    """Whether it is what PyTorch 2 makes of random numbers written into a fresh tensor. Its own
    operator draws them in the order of the indices, not in that of the tensor's memory."""
    made_by = node.args[0] if node.args else None
    return (node.target is torch.ops.aten.bernoulli.p and isinstance(made_by, torch.fx.Node)
            and operator_name(made_by.target) == "empty_like")


def written_placeholders(graph):
    """(position of the placeholder, node) for every write into one, also by a view of it."""
    positions = {node: i for i, node in enumerate(
        node for node in graph.nodes if node.op == "placeholder")}
    shown = dict(positions)  # by node: the placeholder whose memory it is
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or (schema is None and node.target is not operator.getitem):
            continue
        if schema is None:
            if node.args[0] in shown:
                shown[node] = shown[node.args[0]]
            continue
        names = [argument.name for argument in schema.arguments]
        given = {**dict(zip(names, node.args)), **node.kwargs}
        for argument in schema.arguments:
            read = given.get(argument.name)
            if argument.alias_info is None or not isinstance(read, torch.fx.Node) or (
                    read not in shown):
                continue
            shown[node] = shown[read]
            if argument.alias_info.is_write:
                yield shown[read], node


def _writes(target):
    schema = getattr(target, "_schema", None)
    return (schema is not None and bool(schema.arguments)
            and schema.arguments[0].alias_info is not None
            and schema.arguments[0].alias_info.is_write)


def _silent_statistics(node):
    """Positions of the running statistics that a batch norm writes although its schema does not say
    so (native_batch_norm of 1.13, cudnn_batch_norm); none where it writes nothing."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or "batch_norm" not in operator_name(node.target) or "backward" in operator_name(node.target):
        return []
    names = [argument.name for argument in schema.arguments]
    if "training" not in names or "running_mean" not in names:
        return []
    given = dict(zip(names, node.args))
    positions = [names.index("running_mean"), names.index("running_var")]
    silent = all(schema.arguments[i].alias_info is None for i in positions)
    there = all(isinstance(given.get(names[i]), torch.fx.Node) for i in positions)
    functional = len(schema.returns) >= 5
    return positions if silent and there and given.get("training") and not functional else []


def with_statistics(target, positions):
    """The batch norm, with the new statistics as two more results."""
    def run(*args, **kwargs):
        args = list(args)
        for position in positions:
            args[position] = args[position].clone()
        return (*target(*args, **kwargs), *(args[position] for position in positions))
    run.__name__ = operator_name(target)
    run._schema = target._schema
    return run


def _return_statistics(graph, node, positions):
    """Whoever reads the statistics after the node gets the new ones."""
    results = len(node.target._schema.returns)
    after = set()
    at = node
    while at.op != "root":
        after.add(at)
        at = at.next
    after.remove(node)
    old = [node.args[position] for position in positions]
    node.target = with_statistics(node.target, positions)
    with graph.inserting_after(node):
        new = [graph.call_function(operator.getitem, (node, results + i)) for i in range(2)]
    for before, fresh in zip(old, new):
        fresh.meta.update(kept_of(node))
        for user in list(before.users):
            if user in after:
                user.replace_input_with(before, fresh)


def is_random(node):
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    name = operator_name(node.target)
    return ("nondeterministic_seeded" in _compat.tags_of(node.target)
            or any(word in name for word in ("bernoulli", "dropout", "rand", "normal_", "uniform_",
                                             "multinomial", "exponential_")))


def simplify(module):
    graph = module.graph
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        name = operator_name(node.target)
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
        elif fills_a_fresh_tensor(node):
            node.target = out_of_place(torch.ops.aten.bernoulli_.float)
        elif positions := _silent_statistics(node):
            _return_statistics(graph, node, positions)
    for node in reversed(list(graph.nodes)):
        # Random ops stay, as those after them would draw other numbers.
        if node.op in ("call_function", "get_attr") and not node.users and not is_random(node):
            graph.erase_node(node)
    graph.lint()
