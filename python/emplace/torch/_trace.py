"""From a model to the ops of its step: make_fx over forward pass, loss and gradients, functionalized.

The step is traced on real values, so that every operator shows as it runs. It is traced twice: the
second time as a replay under functionalize, which takes writes into tensors out; who an op belongs
to is carried over. A last run on values notes shapes, dtypes and strides. The result is pure: what
a step changes (buffers) is among its outputs.
"""
import contextlib
import operator
import threading
from dataclasses import dataclass

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx

from . import _compat
from ._errors import Error, contents_hidden, first_line, line_of_error, looks_at_values
from ._inputs import describe
from ._layouts import fix_layouts, keep_rounding, note_layouts
from ._operators import operator_name
from ._origin import Origins, kept_of
from ._rewrite import is_random, simplify, written_placeholders
from ._smoothing import shapes_known
from ._state import Attributes, states_of, swapped, unchanged, written_error
from ._values import Shape, attribute_of, note_shapes
from ._whole import kept_whole, put_back, stand_in


# Tracers are patched for the time of a capture, and random numbers are put back after it, so there is
# one capture at a time.
_LOCK = threading.RLock()


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

    def __post_init__(self):
        placeholders = [node for node in self.nodes if node.op == "placeholder"]
        states = self.parameters + self.buffers
        self.state_nodes = {state.name: node for state, node in zip(states, placeholders)}
        self.input_nodes = placeholders[len(states):]

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


@contextlib.contextmanager
def casts_shared(shared):
    """make_fx turns off autocast's cache, without which a weight that is used twice is cast twice
    and its gradient summed in another precision."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(shared)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)
        torch.clear_autocast_cache()


class Tracer:
    """One capture of one model."""

    def __init__(self, model, inputs, loss, portable):
        self.model, self.inputs, self.loss, self.portable = model, inputs, loss, portable
        self.parameters = states_of(model, "_parameters")
        self.buffers = states_of(model, "_buffers")
        self.trained = [i for i, state in enumerate(self.parameters) if state.value.requires_grad]
        self.origins = Origins(model)
        self.output_structure = None
        self._returned = False  # the model, in this attempt
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
        self._returned = False
        with swapped(self.model, self.parameters + self.buffers, parameters + buffers) as read:
            if self.loss is None:
                with torch.no_grad():
                    output = self.model(*args, **kwargs)
                return self._outputs(output), [], self._new_buffers(read(), parameters)
            output = self.model(*args, **kwargs)
            self._returned = True
            loss = self.loss(output, *targets)
            buffers = [buffer.detach() for buffer in self._new_buffers(read(), parameters)]
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            what = describe(loss) if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise Error(f"loss: returned {what}; expected a tensor of one number")
        if loss.grad_fn is None:
            raise Error("loss: does not depend on any parameter that requires a gradient")
        self.origins.begin_backward(loss)
        with _compat.autocast_off():
            gradients = torch.autograd.grad(loss, [parameters[i] for i in self.trained],
                                            allow_unused=True)
            gradients = [_hooked(self.parameters[i], gradient)
                         for i, gradient in zip(self.trained, gradients)]
        return [loss], gradients, buffers

    def _new_buffers(self, values, parameters):
        """Of the model's values after its call; parameters must be those that it had before."""
        for state, before, after in zip(self.parameters, parameters, values):
            if after is not before:
                raise written_error(state.name)
        return values[len(parameters):]

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
        with _LOCK, contextlib.ExitStack() as stack:
            drawn = stack.enter_context(_compat.random_state_kept())
            stack.enter_context(_compat.sources_dropped())
            stack.enter_context(shapes_known())
            stack.enter_context(_compat.without_nested_tensors(self.model))
            stack.enter_context(_compat.portable_kernels() if self.portable
                                else _compat.traceable_kernels(self.model))
            _compat.loaded()
            traced = self._without_memory()
            if drawn():  # or another thread has
                traced = self._without_memory()
                if drawn():
                    raise Error(f"{type(self.model).__name__}: draws random numbers of Python's or numpy's, which "
                                "would be the same ones in every step; expected PyTorch's")
            trace = Trace(traced, self.parameters, self.buffers, self.inputs.names, {},
                          self.trained, self.output_structure, self.loss is not None)
            # Before tensors of which only the sizes are used are gone.
            with _compat.autocast_off():
                trace.shapes = note_shapes(trace.module, self.values(differentiable=False))
                refuse_unknown_shapes(trace)
                simplify(trace.module)
                trace.shapes = note_shapes(trace.module, self.values(differentiable=False))
            fix_layouts(trace.module, self.layouts, trace.shapes)
            keep_rounding(trace.module, trace.shapes)
            refuse_second_draws(trace)
            keep_own_notes(trace)
        return trace

    def _without_memory(self):
        """What was traced; refused where it reads what an earlier call has left in an attribute."""
        first = Attributes(self.model)
        try:
            traced = self._traced(first)
            if any(old is None for _, _, old in first.changed()):  # made by the first call, for the second perhaps
                second = Attributes(self.model)
                _refuse_memory(self._traced(second), second)
            else:
                _refuse_memory(traced, first)
        finally:
            first.restore()
        return traced

    def _traced(self, attributes):
        try:
            return self._attempt_twice()
        except Error:
            written = attributes.written()
            if written:
                raise _memory_error(*written[0], "writes into the tensor") from None
            raise

    def _attempt_twice(self):
        try:
            return self._attempt()
        except Exception as error:
            if isinstance(error, Error):
                raise
            return self._attempt_otherwise(error)

    def _attempt(self):
        """make_fx, then make_fx of a functionalized replay."""
        self.origins = origins = Origins(self.model)
        with origins.recorded():
            def step(parameters, buffers, tensors):  # 1.13 counts the `self` of a method
                with casts_shared(shared):
                    return self.step(parameters, buffers, tensors)

            shared = torch.is_autocast_cache_enabled()
            with unchanged(self.parameters):
                with contents_hidden(), kept_whole():
                    written = make_fx(step)(*self.values(self.loss is not None))
                self._refuse_written_parameters(written)
            origins.forget()
            with _compat.autocast_off():
                self.layouts = note_layouts(written, self.values(differentiable=False))

            class Replay(torch.fx.Interpreter):
                def run_node(self, node):
                    origins.at(node)
                    return super().run_node(node)

                def call_function(self, target, args, kwargs):
                    return super().call_function(stand_in(target), args, kwargs)

            def replay(*values):
                return Replay(written).run(*_compat.flatten(values)[0], enable_io_processing=False)

            with torch.no_grad(), _compat.autocast_off():
                return put_back(make_fx(_compat.functionalize(replay))(*self.values(False)))

    def _refuse_written_parameters(self, written):
        for position, node in written_placeholders(written.graph):
            if position < len(self.parameters):
                raise written_error(self.parameters[position].name, node.meta.get("line", ""))

    def _attempt_otherwise(self, error):
        """Libraries look at fewer values when they are told that they are compiled."""
        try:
            with _compat.as_if_compiling():
                return self._attempt()
        except Exception:
            raise self._explained(error) from error

    def _explained(self, error):
        """What is wrong, in the user's terms."""
        at = f"{line_of_error(error) or self._what()}: "
        if looks_at_values(error):
            return Error(f"{at}looks at a tensor's contents, on which the step would depend; "
                         "expected a step whose ops are the same for every input")
        failure = self._eager_failure()
        if isinstance(failure, Error):
            return failure
        if failure is not None:
            line = line_of_error(failure)
            return Error((f"{line}: " if line else "") + f"{self._refused()} ({first_line(failure)})")
        return Error(f"{at}cannot be traced ({first_line(error)})")

    def _what(self):
        """What was being called, where no line of the user's was."""
        if self._returned:
            return "the loss"
        path = self.origins.module
        return f"module '{path}'" if path else type(self.model).__name__

    def _refused(self):
        if not self._returned:
            return "the model does not take its example inputs"
        if not self.inputs.targets:
            return "the loss does not take the model's output alone; expected targets, where it needs them"
        return "the loss does not take the model's output and the targets"

    def _eager_failure(self):
        try:
            with unchanged(self.parameters):
                self.step(*self.values(differentiable=True))
        except Exception as failure:
            return failure
        finally:
            self.origins.forget()
        return None


def _hooked(parameter, gradient):
    """What the hooks of a parameter make of its gradient."""
    if getattr(parameter.value, "_post_accumulate_grad_hooks", None):
        raise Error(f"parameter '{parameter.name}': has a hook for when its gradient is accumulated; expected none, "
                    "as the step itself updates parameters")
    if gradient is not None:
        for hook in (parameter.value._backward_hooks or {}).values():
            changed = hook(gradient)
            gradient = gradient if changed is None else changed
    return gradient


def _refuse_memory(traced, attributes):
    """Tensors in attributes are constants of a step. What has an old one's memory is taken for it, unless an attribute
    that no call changes has that memory, too: of that, calls may leave views."""
    read = [attribute_of(traced, node.target)
            for node in traced.graph.nodes if node.op == "get_attr" and node.users]
    memory = {_memory_of(value) for value in read} - {_memory_of(value) for value in attributes.constant()} - {0}
    for module, key, old in attributes.changed():
        if old is not None and (any(value is old for value in read) or _memory_of(old) in memory):
            raise _memory_error(module, key, "reads what an earlier call has left")


def _memory_of(tensor):
    """Where it begins; sparse ones have no one place, and empty ones none."""
    return tensor.data_ptr() if tensor.layout == torch.strided else 0


def _memory_error(module, key, does):
    return Error(f"'{key}' of {type(module).__name__}: forward {does} in this attribute; expected a buffer "
                 "(register_buffer), which a step hands on")


_SHAPE_FROM_VALUES = {"nonzero", "masked_select", "unique_consecutive", "unique_dim", "_unique2",
                      "bincount", "_pack_padded_sequence"}


def refuse_unknown_shapes(trace):
    """Ops whose results' shapes depend on values were traced for one of them."""
    for node in trace.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        name = operator_name(node.target)
        if name == "index":
            by_values = any(
                isinstance(index, torch.fx.Node) and isinstance(trace.shapes[index], Shape)
                and trace.shapes[index].dtype in (torch.bool, torch.uint8)
                for index in node.args[1])
        elif name == "repeat_interleave":
            by_values = node.kwargs.get("output_size") is None and len(node.args) < 3
        else:
            by_values = (name in _SHAPE_FROM_VALUES
                         or "dynamic_output_shape" in _compat.tags_of(node.target))
        if by_values:
            line = node.meta.get("line", "")
            raise Error((f"{line}: " if line else "") + f"'{name}' makes a tensor whose shape "
                        "depends on values; expected shapes that are the same for every input")


def refuse_second_draws(trace):
    """A forward pass that runs again in the backward pass (activation checkpointing) sets the random
    numbers back, which no op does."""
    for node in trace.nodes:
        if node.meta.get("phase") != "backward" or not is_random(node):
            continue
        name = operator_name(node.target)
        if "backward" not in name:  # native_dropout_backward takes the mask
            module = node.meta.get("module", "")
            raise Error((f"module '{module}': " if module else "") + f"'{name}' draws random numbers "
                        "in the backward pass, as activation checkpointing with dropout does; "
                        "expected them to be drawn in the forward pass alone")


def keep_own_notes(trace):
    """PyTorch 2 leaves a fake tensor at every node, each with a mode of its own."""
    for node in trace.nodes:
        node.meta = kept_of(node)
