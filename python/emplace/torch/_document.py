"""A traced step as a graph of emplace.graph/1, and which node is which op."""
import json
import operator
import re

import torch.fx

from ._attributes import attributes_of
from ._flops import flops_of
from ._operators import is_view, operator_name
from ._optimizer import settings_of, state_bytes, update_type


def owner_of(name):
    return name.rpartition(".")[0]


def shapes_in(shape):
    """Of what an op returns: a tensor, or tensors, numbers, and lists of tensors."""
    if isinstance(shape, list):
        return [inner for item in shape for inner in shapes_in(item)]
    return [] if shape is None else [shape]


class Document:
    """Tensors and ops in the order in which they are met.

    `op_of` has the op's name by node (a getitem has its producer's), `update_of` that of the op
    that ends with each trained parameter or changed buffer, by its name.
    """

    def __init__(self, trace, name, source, optimizer=None):
        self.trace, self.optimizer = trace, optimizer
        self.tensors, self.ops = [], []
        self.op_of, self.update_of = {}, {}
        self._names, self._tensors = set(), {}
        self._sources()
        for node in trace.nodes:
            if node.op == "get_attr":
                self._source(node, "constant", node.target, "")
            elif node.op == "call_function":
                self._call(node)
        if trace.training:
            self._updates()
        self._buffer_updates()
        self.value = {"format": "emplace.graph/1", "name": name, "source": source,
                      "tensors": self.tensors, "ops": self.ops}

    def _op(self, name, kind, inputs, outputs, **fields):
        unique, count = name, 1
        while unique in self._names:
            count += 1
            unique = f"{name}_{count}"
        self._names.add(unique)
        op = {"name": unique, "type": kind, "inputs": inputs, "outputs": outputs}
        op.update({key: value for key, value in fields.items() if value not in (None, "", {})})
        self.ops.append(op)
        return unique

    def _tensor(self, shape):
        self.tensors.append({"shape": list(shape.size), "dtype": str(shape.dtype).split(".")[-1]})
        return len(self.tensors) - 1

    def _source(self, node, kind, name, module):
        self._tensors[node] = [self._tensor(self.trace.shapes[node])]
        self.op_of[node] = self._op(name, kind, [], self._tensors[node], module=module)

    def _sources(self):
        trace = self.trace
        for kind, states in (("parameter", trace.parameters), ("buffer", trace.buffers)):
            for state in states:
                self._source(trace.state_nodes[state.name], kind, state.name, owner_of(state.name))
        for name, node in zip(trace.inputs, trace.input_nodes):
            self._source(node, "input", name, "")

    def _call(self, node):
        if node.target is operator.getitem:
            producer, index = node.args
            shapes = self.trace.shapes[producer]
            first = len(shapes_in(shapes[:index]))
            count = len(shapes_in(shapes[index]))
            self._tensors[node] = self._tensors[producer][first:first + count]
            self.op_of[node] = self.op_of[producer]
            return
        leaves = shapes_in(self.trace.shapes[node])
        reads = []
        torch.fx.node.map_arg((node.args, node.kwargs),
                              lambda read: reads.extend(self._tensors[read]) or read)
        self._tensors[node] = [self._tensor(leaf) for leaf in leaves]
        module, kind = node.meta.get("module", ""), operator_name(node.target)
        self.op_of[node] = self._op(
            f"{module}.{kind}" if module else kind, kind, reads, self._tensors[node],
            phase=node.meta.get("phase", "forward"), module=module,
            flops=flops_of(node, self.trace.shapes), view=is_view(node.target) or None,
            attributes=attributes_of(node, self.trace.shapes))

    def _updates(self):
        """An op for each gradient that ends with its parameter."""
        _, gradients, _ = self.trace.results
        for position, gradient in zip(self.trace.trained, gradients):
            if gradient is None:
                continue
            state = self.trace.parameters[position]
            reads = self._tensors[gradient] + self._tensors[self.trace.state_nodes[state.name]]
            kind = update_type(self.optimizer)
            self.update_of[state.name] = self._op(
                f"{state.name}.{kind}", kind, reads, [], phase="update",
                module=owner_of(state.name),
                persistent_bytes=state_bytes(self.optimizer, state.value) or None,
                attributes=settings_of(self.optimizer, state.value))

    def _buffer_updates(self):
        _, _, buffers = self.trace.results
        for state, value in zip(self.trace.buffers, buffers):
            root = self.trace.state_nodes[state.name]
            if value is root:
                continue
            source = next(op for op in self.ops if op["name"] == self.op_of[root])
            source["colocate"] = f"buffer {state.name}"
            self.update_of[state.name] = self._op(
                f"{state.name}.copy_", "copy_", self._tensors[value] + self._tensors[root], [],
                phase="update", module=owner_of(state.name), colocate=source["colocate"])


def to_json(value):
    """Infinities as numbers that no double reaches, as the format has them."""
    return re.sub(r"(?<=[:\[,] )(-?)Infinity(?=[,\]}])|(?<=\[)(-?)Infinity(?=[,\]])",
                  lambda found: f"{found.group(1) or found.group(2) or ''}1e999", json.dumps(value))
