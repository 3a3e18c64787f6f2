"""Measures the results of a few operators on a CPU by running them once, on zeros.

PyTorch's formulas for fake tensors predict the results of operators. On a CPU some are wrong:
oneDNN's LSTM saves a workspace whose size only oneDNN knows, norms of bfloat16 with float32 weights
(as under autocast) save their statistics as float32, and a few results have other strides. A plan
names each saved tensor by its shape, dtype and strides, so a plan from wrong formulas could not be
executed. For these operators only, one call runs on zeros for each signature of the arguments. It
takes the memory and the time of that call.

The operators were found by comparing formulas and results over PyTorch's samples for operators and
modules (600 operators of torch 2.11, in float32 and bfloat16, contiguous, transposed and
channels-last). Some formulas are right in later versions (RIGHT_SINCE), and are used there.

Not here: operators on sparse tensors, which cannot be captured; and the means of losses. Their
formula has the right shape and dtype, but not a storage as large as the loss before the mean.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten


def _always(tensors):
    return True


def _mixed(tensors):
    return len({tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point}) > 1


def _strided(tensors):
    return any(not tensor.is_contiguous() for tensor in tensors)


def _either(tensors):
    return _mixed(tensors) or _strided(tensors)


# Operator → the first version of torch whose formula is right.
RIGHT_SINCE = {"select_scatter": "2.12", "slice_scatter": "2.12", "diagonal_scatter": "2.13",
               "replication_pad2d": "2.13", "mkldnn_rnn_layer_backward": "2.13",
               "max_unpool2d": "2.14"}
# Operator or overload → a test for the tensors for which PyTorch's formula may be wrong.
DOUBTFUL = {
    **dict.fromkeys(("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_embedding_bag",
                     "multilabel_margin_loss_forward", "_fft_r2c"), _always),
    **dict.fromkeys(("native_layer_norm", "native_group_norm", "native_group_norm_backward"),
                    _mixed),
    **dict.fromkeys(("native_layer_norm_backward", "native_batch_norm",
                     "native_batch_norm_backward", "_native_batch_norm_legit",
                     "_batch_norm_with_update", "batch_norm_backward"), _either),
    **dict.fromkeys(("copysign", "div.Tensor_mode", "floor_divide", "pow.Scalar", "ldexp",
                     "logaddexp", "logical_and", "logical_or", "logical_xor", "heaviside",
                     "diagonal_scatter", "select_scatter", "slice_scatter",
                     "_log_softmax_backward_data", "log_sigmoid_forward", "replication_pad2d",
                     "replication_pad2d_backward", "max_unpool2d", "normal.Tensor_Tensor"),
                    _strided),
}
# The entries of DOUBTFUL that are wrong in this version of torch.
MEASURED = {name: doubtful for name, doubtful in DOUBTFUL.items()
            if name not in RIGHT_SINCE or torch.__version__ < RIGHT_SINCE[name]}


def measures(func, arguments):
    """Returns True if a call of the overload `func` has to run. `arguments` has all arguments."""
    name = func._overloadpacket.__name__
    doubtful = MEASURED.get(name) or MEASURED.get(f"{name}.{func._overloadname}")
    if doubtful is None:
        return False
    tensors = [leaf for leaf in tree_flatten(arguments)[0] if isinstance(leaf, torch.Tensor)]
    return all(tensor.device.type == "cpu" for tensor in tensors) and doubtful(tensors)


class Measured:
    def __init__(self):
        self._known = {}  # (overload, descriptions of arguments) → descriptions of results

    def result(self, func, args, kwargs):
        """Returns the results of the call as empty tensors; call this under the fake mode. Raises
        what the call raises."""
        leaves, spec = tree_flatten((args, kwargs))
        key = (func, tuple(map(_described, leaves)), spec)
        if key not in self._known:
            # The grad mode stays that of the step: without gradients oneDNN saves nothing.
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                args, kwargs = tree_unflatten(list(map(_zeros, leaves)), spec)
                self._known[key] = tree_map(_described, func(*args, **kwargs))
        return tree_map(_made, self._known[key])


class _Tensor:
    """The description of a tensor: shape, strides, dtype, and elements of the storage."""

    def __init__(self, tensor):
        self.fields = (tuple(tensor.shape), tensor.stride(), tensor.dtype,
                       tensor.untyped_storage().nbytes() // tensor.element_size())

    def __eq__(self, other):
        return isinstance(other, _Tensor) and self.fields == other.fields

    def __hash__(self):
        return hash(self.fields)


def _described(leaf):
    if isinstance(leaf, torch.Tensor):
        return _Tensor(leaf)
    return tuple(leaf) if isinstance(leaf, list) else leaf


def _zeros(leaf):
    if not isinstance(leaf, FakeTensor):
        return leaf
    if 0 in leaf.stride():
        return torch.zeros(leaf.shape, dtype=leaf.dtype, device="cpu").as_strided(
            leaf.shape, leaf.stride())
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="cpu").zero_()


def _made(leaf):
    if not isinstance(leaf, _Tensor):
        return leaf
    shape, strides, dtype, items = leaf.fields
    return torch.empty(items, dtype=dtype, device="cpu").as_strided(shape, strides)
