"""PyTorch models in and out: capture a step, place it, run it placed.

This package imports torch; `import emplace` does not.
"""
from ._capture import Capture, capture
from ._device_map import DeviceMap, device_map
from ._devices import Device
from ._dispatch import dispatch, undispatch
from ._onnx import onnx_model
from ._place import place
from ._placed import Placed
from ._profile import Profile, profile

__all__ = ["Capture", "Device", "DeviceMap", "Placed", "Profile", "capture", "device_map", "dispatch",
           "onnx_model", "place", "profile", "undispatch"]
