"""Functions whose ops have other shapes than they need, or look at values.

Cross entropy with smoothed labels: PyTorch 1.13 selects the targets that count, and the result's
shape then depends on values; here those that do not count become zeros. Results are the same bit for
bit where all targets count, and but for the last bits where some are ignored.

one_hot looks whether its classes are as many as it was told; here it does not."""
import contextlib

import torch
import torch.nn.functional as F

_MEAN, _SUM = 1, 2  # as torch.nn._reduction numbers them


@contextlib.contextmanager
def shapes_known():
    """For the time of a capture, of which there is one at once."""
    with contextlib.ExitStack() as stack:
        for owner in (torch._C._nn, F):
            stack.enter_context(_replaced(owner, "one_hot", _one_hot))
        if torch.__version__.startswith("1."):
            stack.enter_context(_replaced(torch._C._nn, "cross_entropy_loss", _cross_entropy_loss))
        yield


@contextlib.contextmanager
def _replaced(owner, name, make):
    theirs = getattr(owner, name)
    setattr(owner, name, make(theirs))
    try:
        yield
    finally:
        setattr(owner, name, theirs)


def _one_hot(theirs):
    def one_hot(tensor, num_classes=-1):
        if num_classes <= 0 or tensor.dtype != torch.int64:
            return theirs(tensor, num_classes)
        return tensor.new_zeros((*tensor.shape, num_classes)).scatter(-1, tensor.unsqueeze(-1), 1)
    return one_hot


def _cross_entropy_loss(theirs):

    def cross_entropy_loss(scores, target, weight=None, reduction=_MEAN, ignore_index=-100,
                           label_smoothing=0.0):
        if not label_smoothing > 0 or target.is_floating_point():
            return theirs(scores, target, weight, reduction, ignore_index, label_smoothing)
        return _smoothed(scores, target, weight, reduction, ignore_index, label_smoothing)

    return cross_entropy_loss


def _smoothed(scores, target, weight, reduction, ignore_index, smoothing):
    """What the right class costs, and what all classes cost on average, in these shares."""
    if smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")
    classes = 0 if scores.dim() == 1 else 1
    logs = F.log_softmax(scores, classes)
    right = F.nll_loss(logs, target, weight, ignore_index=ignore_index,
                       reduction={_MEAN: "mean", _SUM: "sum"}.get(reduction, "none"))
    if weight is None:
        every = -logs.sum(classes)
    else:
        every = -(logs * weight.view([-1 if i == classes else 1 for i in range(logs.dim())])).sum(classes)
    ignored = target == ignore_index
    every = every.masked_fill(ignored, 0.0)
    if reduction == _MEAN:
        every = every.sum() / _count(target, weight, ignored)
    elif reduction == _SUM:
        every = every.sum()
    return (1 - smoothing) * right + every * (smoothing / scores.shape[classes])


def _count(target, weight, ignored):
    """Of the targets that are not ignored, each by its class's weight."""
    if weight is None:
        return ignored.logical_not().sum()
    weights = weight.gather(0, target.masked_fill(ignored, 0).flatten())
    return weights.masked_fill(ignored.flatten(), 0.0).sum()
