"""What the functions of this package take."""
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Sequence, Tuple, Union

import torch

import emplace

if TYPE_CHECKING:
    from ._capture import Capture
    from ._devices import Device

Path = Union[str, "os.PathLike[str]"]
Model = Union[torch.nn.Module, "Capture", Any]  # or what torch.export gives
ExampleInputs = Union[torch.Tensor, Sequence[Any], Mapping[str, Any], None]
Targets = Union[torch.Tensor, Sequence[Any]]
Loss = Union[Callable[..., torch.Tensor], None]
DeviceLike = Union[str, torch.device, "Device"]
Devices = Union[DeviceLike, Sequence[DeviceLike]]
Memory = Union[int, str]
ClusterLike = Union[emplace.Cluster, str, None]
Placement = Union[emplace.Answer, Mapping[str, str], None]
Links = List[Dict[str, Any]]
Times = Mapping[str, Mapping[str, float]]
Document = Dict[str, Any]
StepResult = Union[Any, Tuple[torch.Tensor, Dict[str, Any]]]
