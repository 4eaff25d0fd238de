"""What a model is called with: a flat list of tensors, and back."""
import inspect

import torch

from . import _compat
from ._errors import Error


class Inputs:
    """Example inputs as a flat list of tensors with names, and back to arguments of the model."""

    def __init__(self, model, example_inputs, targets):
        if isinstance(example_inputs, torch.Tensor):
            example_inputs = (example_inputs,)
        if isinstance(example_inputs, dict):
            args, kwargs = (), dict(example_inputs)
        elif isinstance(example_inputs, (tuple, list)):
            args, kwargs = tuple(example_inputs), {}
        else:
            raise Error("example_inputs: expected a tensor, a tuple of arguments or a dictionary "
                        f"of named ones, not {type(example_inputs).__name__}")
        if not isinstance(targets, (torch.Tensor, tuple, list)):
            raise Error("targets: expected a tensor or a tuple of them, not "
                        f"{type(targets).__name__}")
        targets = (targets,) if isinstance(targets, torch.Tensor) else tuple(targets)
        self.keys, self.targets = list(kwargs), targets
        leaves, self.structure = _compat.flatten((args, kwargs, targets))
        self.constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self.tensors = [leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self.names = self._names(model, args, kwargs, targets)
        if not self.tensors:
            raise Error("example_inputs: has no tensor; expected the arguments of "
                        f"{type(model).__name__}.forward")

    def _names(self, model, args, kwargs, targets):
        """Of the tensors: the parameters of forward() that they are (in)."""
        try:
            words = list(inspect.signature(model.forward).parameters)
        except (TypeError, ValueError):
            words = []
        words += [f"input{i}" for i in range(len(words), len(args))]
        wanted = ["target" if len(targets) == 1 else f"target{i}" for i in range(len(targets))]

        def labelled(value, label):
            return _compat.tree_map(lambda _: label, value)

        labels, _ = _compat.flatten((
            tuple(labelled(value, word) for value, word in zip(args, words)),
            {key: labelled(value, key) for key, value in kwargs.items()},
            tuple(labelled(value, word) for value, word in zip(targets, wanted))))
        labels = [label for label, is_tensor in zip(labels, self.is_tensor) if is_tensor]
        return [label if labels.count(label) == 1 else f"{label}.{labels[:i].count(label)}"
                for i, label in enumerate(labels)]

    def arguments(self, tensors):
        """(args, kwargs, targets) with these tensors."""
        tensors = iter(tensors)
        leaves = [next(tensors) if is_tensor else constant
                  for is_tensor, constant in zip(self.is_tensor, self.constants)]
        return _compat.unflatten(leaves, self.structure)

    def without_targets(self, model):
        args, kwargs, _ = self.arguments(self.tensors)
        return Inputs(model, kwargs or args, ())

    def match(self, args, kwargs):
        """The tensors of a call, checked against the examples. Targets follow the arguments."""
        count = len(self.arguments(self.tensors)[0])
        ordered = {key: kwargs[key] for key in self.keys if key in kwargs}
        call = (tuple(args[:count]), {**ordered, **kwargs}, tuple(args[count:]))
        leaves, structure = _compat.flatten(call)
        if structure != self.structure:
            raise Error(f"called with {_counted(args, kwargs)}; expected what was captured: "
                        + ", ".join(self.names))
        tensors = []
        for leaf, is_tensor, constant in zip(leaves, self.is_tensor, self.constants):
            if is_tensor and isinstance(leaf, torch.Tensor):
                tensors.append(leaf)
            elif is_tensor or (leaf is not constant and leaf != constant):
                raise Error(f"called with {leaf!r} where it was captured with "
                            + ("a tensor" if is_tensor else repr(constant)))
        for name, tensor, example in zip(self.names, tensors, self.tensors):
            if tensor.shape != example.shape or tensor.dtype != example.dtype:
                raise Error(f"input '{name}': is {describe(tensor)}; expected "
                            f"{describe(example)}, as captured")
        return tensors


def describe(tensor):
    """A tensor, or the Shape of one."""
    return f"{str(tensor.dtype).split('.')[-1]} of shape {list(tensor.shape)}"


def _counted(args, kwargs):
    return f"{len(args)} arguments" + (f" and {', '.join(kwargs)}" if kwargs else "")
