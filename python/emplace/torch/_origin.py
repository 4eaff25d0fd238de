"""Which module an op belongs to, in the forward and in the backward pass.

Hooks of the modules keep a stack of those that are being called; ops that are traced belong to the
innermost. When a module returns, the autograd nodes that it made are marked as its own, and hooks
of these nodes keep the same stack while the backward pass runs. What no module made (the loss, sums
of gradients) belongs to the model itself.
"""
import contextlib
import sys

import torch
import torch.fx

from . import _compat
from ._errors import line_of_frame


def kept_of(node):
    """What is known of where an op comes from."""
    return {key: node.meta[key] for key in ("module", "phase", "line") if key in node.meta}


class Origins:
    def __init__(self, model):
        self._model = model
        self._stack = [""]
        self._phase = "forward"
        self._owners = {}  # by autograd node
        self._handles = []

    @property
    def module(self):
        """The innermost of those that are being called."""
        return self._stack[-1]

    def at(self, node):
        """What is traced next is made of this node: for replays."""
        self._replayed = node

    _replayed = None

    @contextlib.contextmanager
    def recorded(self):
        """Nodes that are traced get `module`, `phase` and `line` in their meta."""
        create = torch.fx.proxy.TracerBase.create_node

        def create_node(tracer, *args, **kwargs):
            node = create(tracer, *args, **kwargs)
            again = self._replayed
            if again is not None:
                node.meta.update(kept_of(again), replayed=again)
                return node
            line = line_of_frame(sys._getframe(1)) if self._phase == "forward" else ""
            node.meta.update(module=self._stack[-1], phase=self._phase, line=line)
            return node

        torch.fx.proxy.TracerBase.create_node = create_node
        try:
            for path, module in self._model.named_modules():
                self._watch(module, path)
            yield
        finally:
            torch.fx.proxy.TracerBase.create_node = create
            self.forget()

    def forget(self):
        """Hooks refer to this object, and autograd's nodes cannot be collected as a cycle."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._owners.clear()

    def begin_backward(self, loss):
        self._own(loss, "")
        self._phase = "backward"
        for node, path in self._owners.items():
            self._handles.append(node.register_prehook(self._entering(path)))
            self._handles.append(node.register_hook(self._left))

    def _entering(self, path):
        def enter(_gradients):
            self._stack.append(path)
        return enter

    def _left(self, _inputs, _outputs):
        self._stack.pop()

    def _watch(self, module, path):
        def enter(_module, *arguments):
            self._own(arguments, self._stack[-1])
            self._stack.append(path)

        def leave(_module, _arguments, output):
            self._own(output, path)
            self._stack.pop()

        self._handles.append(_compat.before_forward(module, enter))
        self._handles.append(module.register_forward_hook(leave))

    def _own(self, value, path):
        """Autograd nodes behind the value that nobody owns yet."""
        todo = [leaf.grad_fn for leaf in _compat.flatten(value)[0]
                if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None]
        while todo:
            node = todo.pop()
            if node in self._owners:
                continue
            self._owners[node] = path
            todo.extend(inner for inner, _ in node.next_functions if inner is not None)
