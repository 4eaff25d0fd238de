"""From a model to the ops of its step: make_fx over forward pass, loss and gradients, functionalized.

The step is traced on real values, so that every operator shows as it runs. It is traced twice: the
second time as a replay under functionalize, which takes writes into tensors out; who an op belongs
to is carried over. A last run on values notes shapes, dtypes and strides. The result is pure: what
a step changes (buffers) is among its outputs.
"""
import contextlib
import inspect
import operator
from dataclasses import dataclass, field

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx

from . import _compat
from ._errors import Error, first_line, line_of_error, looks_at_values
from ._origin import Origins
from ._rewrite import fix_layouts, note_layouts, simplify
from ._values import Shape, note_shapes


@dataclass
class State:
    """A parameter or buffer, once, under all the names that the model has for it."""
    names: list
    value: torch.Tensor

    @property
    def name(self):
        return self.names[0]


@dataclass
class Trace:
    """A step as a graph of aten operators.

    Its placeholders are parameters, buffers and inputs, in this order; its outputs those of the
    model (or the loss alone), a gradient for each of `trained` (None where the loss does not depend
    on it), and the buffers' new values.
    """
    module: torch.fx.GraphModule
    parameters: list
    buffers: list
    inputs: list        # names
    shapes: dict        # by node: a Shape, or a list of Shapes and Nones
    trained: list       # positions in `parameters`
    output_structure: object = None
    training: bool = False
    roots: dict = field(default_factory=dict)  # placeholder of a state or input, by name

    @property
    def nodes(self):
        return self.module.graph.nodes

    @property
    def results(self):
        """Nodes of (outputs, gradients, buffers)."""
        leaves = _leaves(next(node for node in self.nodes if node.op == "output").args[0])
        buffers = len(leaves) - len(self.buffers)
        gradients = buffers - len(self.trained) if self.training else buffers
        return leaves[:gradients], leaves[gradients:buffers], leaves[buffers:]


def _leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


def states_of(model, kind):
    """Tied ones once; 1.13's named_parameters() cannot be asked for every name."""
    found = {}
    for path, module in model.named_modules(remove_duplicate=False):
        for key, value in getattr(module, kind).items():
            if value is not None:
                name = f"{path}.{key}" if path else key
                found.setdefault(id(value), State([], value)).names.append(name)
    return list(found.values())


@contextlib.contextmanager
def swapped(model, states, values):
    """The model with other parameters and buffers, under all their names. What its code makes of
    them (a buffer may be assigned anew) is read from `read()` before the end."""
    slots = []
    for state in states:
        for name in state.names:
            path, _, key = name.rpartition(".")
            owner = model.get_submodule(path)
            table = owner._parameters if key in owner._parameters else owner._buffers
            slots.append((table, key, table[key]))
    recurrent = [module for module in model.modules() if isinstance(module, torch.nn.RNNBase)]
    flat = [module._flat_weights for module in recurrent]
    try:
        position = 0
        for state, value in zip(states, values):
            for _ in state.names:
                table, key, _ = slots[position]
                table[key] = value
                position += 1
        for module in recurrent:  # keeps a list of its own
            module._flat_weights = [getattr(module, name, None)
                                    for name in module._flat_weights_names]

        def read():
            found, first = [], 0
            for state in states:
                table, key, _ = slots[first]
                found.append(table[key])
                first += len(state.names)
            return found

        yield read
    finally:
        for table, key, value in slots:
            table[key] = value
        for module, weights in zip(recurrent, flat):
            module._flat_weights = weights


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
        targets = (targets,) if isinstance(targets, torch.Tensor) else tuple(targets)
        self.keys = list(kwargs)
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
    return f"{str(tensor.dtype).split('.')[-1]} of shape {list(tensor.shape)}"


def _counted(args, kwargs):
    return f"{len(args)} arguments" + (f" and {', '.join(kwargs)}" if kwargs else "")


class Tracer:
    """One capture of one model."""

    def __init__(self, model, inputs, loss, portable):
        self.model, self.inputs, self.loss, self.portable = model, inputs, loss, portable
        self.parameters = states_of(model, "_parameters")
        self.buffers = states_of(model, "_buffers")
        self.trained = [i for i, state in enumerate(self.parameters) if state.value.requires_grad]
        self.origins = Origins(model)
        self.output_structure = None
        self.layouts = {}
        self._check_devices()

    def _check_devices(self):
        """A model on one device, and inputs beside it, are what can be traced."""
        of_model = {state.value.device for state in self.parameters + self.buffers}
        if len(of_model) > 1:
            names = ", ".join(sorted(map(str, of_model)))
            raise Error(f"the model is spread over {names}; expected all of it on one device")
        for name, tensor in zip(self.inputs.names, self.inputs.tensors):
            for device in of_model:
                if tensor.device != device:
                    raise Error(f"input '{name}': is on {tensor.device} and the model on {device}; "
                                "expected both on one device")
        if self.loss is not None and not self.trained:
            raise Error("the model has no parameter that requires a gradient; expected one, as a "
                        "loss is given")

    def step(self, parameters, buffers, tensors):
        """The whole step as a function of values."""
        args, kwargs, targets = self.inputs.arguments(tensors)
        with swapped(self.model, self.parameters + self.buffers, parameters + buffers) as read:
            if self.loss is None:
                with torch.no_grad():
                    output = self.model(*args, **kwargs)
                return self._outputs(output), [], read()[len(parameters):]
            loss = self.loss(self.model(*args, **kwargs), *targets)
            buffers = [buffer.detach() for buffer in read()[len(parameters):]]
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            what = describe(loss) if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise Error(f"loss: returned {what}; expected a tensor of one number")
        if loss.grad_fn is None:
            raise Error("loss: does not depend on any parameter that requires a gradient")
        self.origins.begin_backward(loss)
        gradients = torch.autograd.grad(loss, [parameters[i] for i in self.trained],
                                        allow_unused=True)
        return [loss], list(gradients), buffers

    def _outputs(self, output):
        leaves, structure = _compat.flatten(output)
        for leaf in leaves:
            if not isinstance(leaf, torch.Tensor) and leaf is not None:
                raise Error(f"the model returns a {type(leaf).__name__}; expected tensors, or "
                            "tuples, lists and dictionaries of them")
        self.output_structure = (structure, [leaf is not None for leaf in leaves])
        return [leaf for leaf in leaves if leaf is not None]

    def values(self, differentiable):
        # Tensors of our own: tracers leave their marks on what they are given.
        parameters = [state.value.detach() for state in self.parameters]
        if differentiable:
            for parameter, state in zip(parameters, self.parameters):
                parameter.requires_grad_(state.value.requires_grad)
        buffers = [state.value.detach().clone() for state in self.buffers]
        return parameters, buffers, [tensor.clone() for tensor in self.inputs.tensors]

    def run(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(_compat.random_state_kept())
            stack.enter_context(_compat.sources_dropped())
            if self.portable:
                stack.enter_context(_compat.portable_kernels())
            try:
                traced = self._attempt()
            except Exception as error:
                if isinstance(error, Error):
                    raise
                traced = self._attempt_otherwise(error)
            trace = Trace(traced, self.parameters, self.buffers, self.inputs.names, {},
                          self.trained, self.output_structure, self.loss is not None)
            simplify(trace.module)
            trace.shapes = note_shapes(trace.module, self.values(differentiable=False))
            fix_layouts(trace.module, self.layouts, trace.shapes)
            refuse_unknown_shapes(trace)
        return trace

    def _attempt(self):
        """make_fx, then make_fx of a functionalized replay."""
        self.origins = origins = Origins(self.model)
        with origins.recorded():
            def step(parameters, buffers, tensors):  # 1.13 counts the `self` of a method
                return self.step(parameters, buffers, tensors)

            written = make_fx(step)(*self.values(self.loss is not None))
            origins.forget()
            self.layouts = note_layouts(written, self.values(differentiable=False))

            class Replay(torch.fx.Interpreter):
                def run_node(self, node):
                    origins.at(node.meta.get("module", ""), node.meta.get("phase", "forward"),
                               node.meta.get("line", ""))
                    return super().run_node(node)

            def replay(*values):
                return Replay(written).run(*_compat.flatten(values)[0], enable_io_processing=False)

            with torch.no_grad():
                return make_fx(_compat.functionalize(replay))(*self.values(False))

    def _attempt_otherwise(self, error):
        """Libraries look at fewer values when they are told that they are compiled."""
        try:
            with _compat.as_if_compiling():
                return self._attempt()
        except Exception:
            raise self._explained(error) from error

    def _explained(self, error):
        """What is wrong, in the user's terms."""
        line = line_of_error(error)
        at = f"{line}: " if line else ""
        if looks_at_values(error):
            return Error(f"{at}looks at a tensor's contents, on which the step would depend; "
                         "expected a step whose ops are the same for every input")
        failure = self._eager_failure()
        if failure is not None:
            return Error(f"{line_of_error(failure) or at}: the model does not take its example "
                         f"inputs ({first_line(failure)})")
        return Error(f"{at}cannot be traced ({first_line(error)})")

    def _eager_failure(self):
        try:
            self.step(*self.values(differentiable=True))
        except Exception as failure:
            return failure
        finally:
            self.origins.forget()
        return None


_SHAPE_FROM_VALUES = {"nonzero", "masked_select", "unique_consecutive", "_unique2", "bincount"}


def refuse_unknown_shapes(trace):
    """Ops whose results' shapes depend on values were traced for one of them."""
    for node in trace.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        name = operator_name(node.target)
        by_mask = name == "index" and any(
            isinstance(index, torch.fx.Node) and isinstance(trace.shapes[index], Shape)
            and trace.shapes[index].dtype in (torch.bool, torch.uint8)
            for index in node.args[1])
        if by_mask or name in _SHAPE_FROM_VALUES or (
                name == "repeat_interleave" and len(node.args) < 3):
            line = node.meta.get("line", "")
            raise Error((f"{line}: " if line else "") + f"'{name}' makes a tensor whose shape "
                        "depends on values; expected shapes that are the same for every input")


def operator_name(target):
    """"convolution" of aten.convolution.default."""
    schema = getattr(target, "_schema", None)
    name = schema.name if schema is not None else getattr(target, "__name__", str(target))
    return name.split("::")[-1]
