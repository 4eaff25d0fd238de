"""emplace decides where every operation of a neural network should run.

>>> import emplace
>>> problem = emplace.compile("zoo:gnmt-2:batch=8,sequence=4", "2xp100")
>>> answer = emplace.place(problem, "expert")
>>> answer.fits
True

Times are whole nanoseconds, sizes whole bytes, devices numbers (`answer.placement`) or names
(`answer.device_of`). Mistakes raise `emplace.Error`, a ValueError that says what was expected.
Importing this loads neither numpy nor libtorch.
"""

from . import _html, _other_torch, placers
from ._emplace import (
    Answer,
    ChannelUse,
    Cluster,
    DeviceDescription,
    DeviceUse,
    DeviceView,
    Error,
    ExecutionResult,
    Graph,
    LearningSettings,
    LinkRule,
    MethodInfo,
    Model,
    OptionInfo,
    OpDescription,
    OpView,
    Partition,
    PlacerSession,
    Problem,
    ProfileResult,
    Selection,
    TensorDescription,
    TensorReference,
    TensorView,
    Timeline,
    TrainResult,
    ZooModel,
    assess,
    build_cluster,
    build_graph,
    describe_policy,
    device_kinds,
    example_presets,
    features_of,
    list_partition_methods,
    list_placers,
    read_cluster,
    read_model,
    read_placement,
    simulate,
    simulate_all,
    train_settings,
    version,
    zoo_models,
)
from ._execute import profile, run
from ._models import compile, zoo
from ._partition import partition, select, train
from ._place import Comparison, compare, explain, place
from .environment import Environment

__version__ = version()

__all__ = [
    "Answer",
    "ChannelUse",
    "Cluster",
    "Comparison",
    "DeviceDescription",
    "DeviceUse",
    "DeviceView",
    "Environment",
    "Error",
    "ExecutionResult",
    "Graph",
    "LearningSettings",
    "LinkRule",
    "MethodInfo",
    "Model",
    "OpDescription",
    "OpView",
    "OptionInfo",
    "Partition",
    "PlacerSession",
    "Problem",
    "ProfileResult",
    "Selection",
    "TensorDescription",
    "TensorReference",
    "TensorView",
    "Timeline",
    "TrainResult",
    "ZooModel",
    "assess",
    "build_cluster",
    "build_graph",
    "compare",
    "compile",
    "describe_policy",
    "device_kinds",
    "example_presets",
    "explain",
    "features_of",
    "list_partition_methods",
    "list_placers",
    "partition",
    "place",
    "placers",
    "profile",
    "read_cluster",
    "read_model",
    "read_placement",
    "run",
    "select",
    "simulate",
    "simulate_all",
    "train",
    "train_settings",
    "version",
    "zoo",
    "zoo_models",
]

_html.attach()
_other_torch.watch()
