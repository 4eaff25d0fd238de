"""Models through ONNX, and programs of torch.export: other ways in than `capture`'s own."""
import os
import tempfile
import warnings
from typing import Optional

import torch

import emplace

from ._errors import Error, first_line, line_of_error
from ._inputs import Inputs
from ._trace import Tracer
from ._types import ExampleInputs, Path

_OPSET = 17


def onnx_model(model: torch.nn.Module, example_inputs: ExampleInputs, *, path: Optional[Path] = None,
               training: bool = False, optimizer: Optional[str] = None,
               opset: int = _OPSET) -> emplace.Model:
    """The model through PyTorch's exporter to ONNX, as `emplace.read_model` reads it: operators that
    `emplace.partition` can divide.

    example_inputs  as `capture` takes them
    path            where the ONNX file is to be kept; else it is removed again
    training        makes the training step of the exported forward pass, with a gradient that is
                    emplace's own and the last output as the loss; `optimizer` is then sgd, momentum
                    or adam
    opset           of ONNX, 17 at most

    Parameters keep their names, and nothing is folded. Code that depends on a tensor's contents is
    refused, where the exporter would silently keep one branch of it.

    >>> import torch, emplace.torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> model = emplace.torch.onnx_model(net, torch.zeros(3, 4))
    >>> model.graph.parameters, "Gemm" in {model.graph.op(i).type for i in range(len(model.graph))}
    (58, True)
    """
    if not isinstance(model, torch.nn.Module):
        raise Error(f"model: expected a torch.nn.Module, not {type(model).__name__}")
    if optimizer is not None and not training:
        raise Error("optimizer: is of no use without training=True")
    inputs = Inputs(model, example_inputs, ())
    Tracer(model, inputs, None, False).run()  # refuses what depends on values
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, f"{type(model).__name__}.onnx")
        _export(model, inputs, file, opset)
        if path is not None:
            from emplace._files import write

            with open(file, "rb") as made:
                write(path, made.read())
        return emplace.read_model(file, training=training, optimizer=optimizer)


def _export(model, inputs, file, opset):
    args, kwargs, _ = inputs.arguments(inputs.tensors)
    was_training = {module: module.training for module in model.modules()}
    # The exporter runs the model, as in training: running statistics change.
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    options = {}
    if hasattr(torch.onnx, "ExportedProgram") or hasattr(torch.onnx, "ONNXProgram"):
        options["dynamo"] = False  # the exporter that traces: the other does not keep names
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, (*args, kwargs) if kwargs else args, file, opset_version=opset,
                              input_names=inputs.names, do_constant_folding=False,
                              training=torch.onnx.TrainingMode.TRAINING, **options)
    except (RuntimeError, TypeError, ValueError) as error:
        line = line_of_error(error)
        raise Error(f"{line + ': ' if line else ''}could not be exported to ONNX: "
                    f"{first_line(error)}") from error
    finally:
        for module, mode in was_training.items():
            module.training = mode
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def is_exported(model):
    """Whether it is what torch.export.export gives (PyTorch 2.1 and later)."""
    return not isinstance(model, torch.nn.Module) and hasattr(model, "graph_signature") \
        and callable(getattr(model, "module", None))


def unpacked(program, example_inputs):
    """The module in an exported program, and what it is called with: its own examples, if none are
    given."""
    if example_inputs is None:
        examples = getattr(program, "example_inputs", None)
        if not examples:
            raise Error("example_inputs: the exported program has none of its own; expected the "
                        "arguments that it is called with")
        args, kwargs = examples
        if args and kwargs:
            raise Error("example_inputs: the exported program's are both positional and named; "
                        "expected a dictionary of named ones")
        example_inputs = dict(kwargs) if kwargs else tuple(args)
    return program.module(), example_inputs
