"""A model whose step runs where a placement says."""
import contextlib
import threading
from typing import Any, Dict, List, NoReturn, Optional

import torch

import emplace

from . import _show
from ._capture import Capture, capture_in_eval, set_modes
from ._devices import Device, devices_from
from ._errors import Error
from ._move import move_state
from ._pass import Pass
from ._types import DeviceLike


class Placed(torch.nn.Module):
    """A model that runs op by op on several devices. In train() a call is the captured step, which takes its
    targets after the model's arguments; in eval() it is the model's forward pass. Parameters, buffers,
    sub-modules and state_dict() are the model's own.

    model      the model itself, whose parameters now are on their devices
    answer     the emplace.Answer: predicted times, memory, explanation
    device_of  from every op's name to its device's name
    """
    model: torch.nn.Module
    answer: emplace.Answer
    device_of: Dict[str, str]
    capture: Capture
    devices: List[Device]
    optimizer: Optional[torch.optim.Optimizer]

    def __init__(self, captured, devices, device_of, answer):
        super().__init__()
        model = captured.model
        vars(self)["model"] = model  # not as a sub-module, whose name would be before those of parameters
        self.capture, self.devices, self.answer = captured, devices, answer
        self.optimizer, self.device_of = captured.optimizer, dict(device_of)
        starts = dict(zip(answer.problem.graph.op_names, answer.timeline.start.tolist()))
        self._parts = list(model.named_modules())  # which takes a while
        self._step = Pass(captured, devices, self.device_of, starts)
        self.program = self._step.program
        self._forward, self._why_no_forward = self._in_eval()
        # Where a pass changes the model, passes follow each other; others may run at once.
        passes = [self._step] if self._forward is None else [self._step, self._forward]
        changing = any(one.changes_the_model for one in passes)
        self._alone = threading.Lock() if changing else contextlib.nullcontext()
        vars(self).update({name: vars(model)[name] for name in (
            "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")})
        self.train(captured.training or any(captured.modes.values()))
        for state in self._states():
            move_state(model, state, devices[self.program.home[state.name]], self.optimizer)

    def _states(self):
        return self.capture.trace.parameters + self.capture.trace.buffers

    def _in_eval(self):
        """(the forward pass in eval(), why there is none); of one captured so, itself."""
        captured = self.capture
        if not captured.training and not any(captured.modes.values()):
            return self._step, ""
        forward, why_not = capture_in_eval(captured)
        if forward is None:  # which those who call it are told
            return None, why_not
        return Pass(forward, self.devices, beside(self._step, self.device_of, forward)), ""

    def train(self, mode: bool = True) -> "Placed":
        """In train() a call is what was captured, with every module in the mode that it had then; in
        eval(), which is train(False), the model's forward pass."""
        self.training = mode
        known = self.capture.modes if mode and self._forward is not self._step else {}
        set_modes((module, known.get(path, mode)) for path, module in self._parts)
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Of a training step: the loss. With an optimizer the parameters are updated; without one,
        gradients are added to each parameter's `.grad`, as backward() does. Else what the model
        returns."""
        chosen = self._step if self.training else self._forward
        if chosen is None:
            raise Error(f"eval(): the forward pass could not be captured: {self._why_no_forward}")
        self._check_modes(chosen.capture.modes)
        inputs = chosen.capture.inputs.match(args, kwargs)
        with self._alone:
            return chosen.run(inputs, self.optimizer)

    def _check_modes(self, expected):
        if self.training and self._forward is self._step:
            raise Error("train(): the model was captured in eval() and without a loss; expected a call in eval(), or a "
                        "loss")
        for path, module in self._parts:
            if module.training != expected[path]:
                what = f"module '{path}'" if path else "the model"
                is_, was = ("train()", "eval()") if module.training else ("eval()", "train()")
                raise Error(f"{what}: is in {is_} mode; expected {was}, as captured. The placed model's own train() and "
                            "eval() choose between its step and its forward pass")

    # The model's: here a name may be that of an attribute of ours before that of a part of the model.
    def get_submodule(self, target: str) -> torch.nn.Module:
        return self.model.get_submodule(target)

    def get_parameter(self, target: str) -> torch.nn.Parameter:
        return self.model.get_parameter(target)

    def get_buffer(self, target: str) -> torch.Tensor:
        return self.model.get_buffer(target)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """The model's own."""
        return self.model.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Into the model, where its parameters are."""
        return self.model.load_state_dict(*args, **kwargs)

    def _apply(self, *args, **kwargs):
        """Of to(), cuda(), half() and others of nn.Module."""
        raise Error("a placed model stays as it was placed; expected gather(), which brings it to one device and returns "
                    "the model")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise Error("a placed model cannot be copied or pickled; expected its state_dict()")

    def gather(self, device: DeviceLike = "cpu") -> torch.nn.Module:
        """Brings the model back to one device; this object is of no use then. Returns the model."""
        (target,) = devices_from([device])
        for state in self._states():
            move_state(self.model, state, target, self.optimizer)
        return self.model

    def to_dict(self) -> Dict[str, Any]:
        return {"name": self.capture.name, "device_of": self.device_of, "answer": self.answer.to_dict()}

    def _repr_html_(self):
        return _show.placed(self)

    def __repr__(self):
        names = ", ".join(device.name for device in self.devices)
        return f"<emplace.torch.Placed {self.capture.name} on {names}>"


def beside(step, device_of, captured):
    """Devices for the ops of another pass through a placed model: those of the step's ops of the same names, as its
    parameters must be, and otherwise those of what they read first."""
    names, program = captured.document.op_of, step.program
    chosen = {}
    for node, name in names.items():
        if name in chosen:
            continue
        home = program.home.get(name) if node.op == "placeholder" else None
        if home is not None:
            chosen[name] = program.devices[home].name
        elif name in device_of:
            chosen[name] = device_of[name]
        else:
            chosen[name] = next((chosen[names[read]] for read in node.all_input_nodes), program.devices[0].name)
    return chosen
