"""Calls of overloads that PyTorch's samples do not come to, and that are not simple to draw."""

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

aten = torch.ops.aten


def x(*shape):
    return torch.rand(*shape, requires_grad=True)


def images():
    return x(2, 3, 6, 6)


def index(*shape):
    return torch.zeros(*shape, dtype=torch.long)


def normalised():
    weight, bias, mean, var = x(3), x(3), torch.rand(3), torch.rand(3)
    return images(), weight, bias, mean, var


def packed(module):
    sequence = pack_padded_sequence(x(4, 2, 3), torch.tensor([4, 2]))
    outputs, hidden = module(3, 5)(sequence)
    padded, _ = pad_packed_sequence(outputs)
    return [padded, *(hidden if isinstance(hidden, tuple) else [hidden])]


def lists():
    return [x(2, 3), x(4)]


def frozen(tensors):
    return [t.detach().clone() for t in tensors]


def group_norm_backward():
    mean, rstd = torch.rand(2, 1), torch.rand(2, 1)
    return aten.native_group_norm_backward(images(), images(), mean, rstd, x(3), 2, 3, 36, 1,
                                           [True] * 3)


def upsampled(name, dims, *scales):
    output, size = [8] * dims, [2, 3] + [4] * dims
    getattr(aten, name)(x(*size), output, *scales)
    getattr(aten, name + "_backward")(x(*size[:2], *output), output, size, *scales)
    return getattr(aten, name).vec(x(*size), *([None, [2.0] * dims] if "nearest" in name else
                                               [None, False, [2.0] * dims]))


def convolutions():
    yield aten.conv_tbc(x(5, 2, 3), x(3, 3, 4), x(4), 0)
    yield aten.slow_conv_dilated2d(images(), x(4, 3, 2, 2), [2, 2], x(4), [1, 1], [0, 0], [2, 2])
    yield aten._nnpack_spatial_convolution(images(), x(4, 3, 2, 2), x(4), [0, 0])


CALLS = (
    lambda: aten._weight_norm(x(3, 4), x(3, 1), 0),
    lambda: aten._weight_norm_interface(x(3, 4), x(3, 1), 0),
    lambda: aten._weight_norm_interface_backward(x(3, 4), x(3, 4), x(3, 1), torch.rand(3, 1), 0),
    lambda: aten._batch_norm_no_update(*normalised(), 0.1, 1e-5),
    lambda: aten._native_batch_norm_legit_no_training(*normalised(), 0.1, 1e-5),
    group_norm_backward,
    lambda: aten.affine_grid_generator(x(2, 2, 3), [2, 1, 3, 3], False),
    lambda: aten.affine_grid_generator_backward(x(2, 3, 3, 2), [2, 1, 3, 3], False),
    lambda: aten._grid_sampler_2d_cpu_fallback(images(), x(2, 3, 3, 2), 0, 0, False),
    lambda: aten._grid_sampler_2d_cpu_fallback_backward(x(2, 3, 3, 3), images(), x(2, 3, 3, 2), 0,
                                                        0, False),
    lambda: upsampled("_upsample_bicubic2d_aa", 2, False),
    lambda: upsampled("_upsample_bilinear2d_aa", 2, False),
    lambda: upsampled("upsample_nearest2d", 2),
    lambda: upsampled("upsample_nearest3d", 3),
    lambda: upsampled("_upsample_nearest_exact2d", 2),
    lambda: upsampled("_upsample_nearest_exact3d", 3),
    lambda: list(convolutions()),
    lambda: aten.float_power_.Scalar(x(3).double().clone(), 2),
    lambda: aten.float_power_.Tensor(x(3).double().clone(), x(3)),
    lambda: x(3, 3).scatter(0, index(1, 3), torch.ones(1, 3), reduce="add"),
    lambda: x(3, 3).scatter(0, index(1, 3), 2.0, reduce="multiply"),
    lambda: x(3, 3).clone().scatter_(0, index(1, 3), torch.ones(1, 3), reduce="add"),
    lambda: x(3, 3).clone().scatter_(0, index(1, 3), 2.0, reduce="multiply"),
    lambda: aten.glu_jvp(x(2, 2), x(2, 4), x(2, 4), 1),
    lambda: aten.glu_backward_jvp(x(2, 4), x(2, 2), x(2, 4), x(2, 2), x(2, 4), 1),
    lambda: torch.linalg.cond(x(3, 3), "fro"),
    lambda: aten.linalg_norm.ord_str(x(3, 3), "nuc"),
    lambda: aten.norm.ScalarOpt_dtype(x(3, 3), 2, dtype=torch.float64),
    lambda: aten.norm.ScalarOpt_dim_dtype(x(3, 3), 2, [0], False, dtype=torch.float64),
    lambda: aten.nuclear_norm.dim(x(3, 3), [0, 1]),
    lambda: aten.view_as_complex_copy(x(3, 2)),
    lambda: aten._conj_copy(torch.rand(3, dtype=torch.complex64, requires_grad=True)),
    lambda: aten._ctc_loss.Tensor(x(6, 2, 4), torch.ones(2, 3, dtype=torch.long),
                                  torch.tensor([6, 6]), torch.tensor([3, 3])),
    lambda: aten._foreach_addcmul.Tensor(lists(), lists(), lists(), torch.ones(2)),
    lambda: aten._foreach_addcdiv.Tensor(lists(), lists(), lists(), torch.ones(2)),
    lambda: aten._foreach_addcmul_.Tensor(frozen(lists()), lists(), lists(), torch.ones(2)),
    lambda: aten._foreach_addcdiv_.Tensor(frozen(lists()), lists(), lists(), torch.ones(2)),
    lambda: aten._masked_softmax(x(2, 2, 3, 3), torch.zeros(3, 3, dtype=torch.bool), None, 0),
    lambda: aten._masked_softmax_backward(x(3, 3), torch.rand(3, 3),
                                          torch.zeros(3, 3, dtype=torch.bool)),
    lambda: aten.gradient.tensorarray(x(4, 4), [torch.arange(4.0)] * 2),
    lambda: aten.gradient.tensorarrayint(x(4, 4), [torch.arange(4.0)], dim=0),
    lambda: aten.unflatten_dense_tensors(x(10), lists()),
    lambda: torch.nn.RNN(3, 5)(x(4, 2, 3))[0],
    lambda: packed(torch.nn.RNN),
    lambda: packed(lambda n, m: torch.nn.RNN(n, m, nonlinearity="relu")),
    lambda: packed(torch.nn.GRU),
    lambda: packed(torch.nn.LSTM),
    lambda: aten._reshape_alias(x(2, 3), [3, 2], [2, 1]),
    lambda: aten._reshape_from_tensor(x(2, 3), torch.tensor([3, 2])),
    lambda: aten._grouped_mm(x(4, 8, 8).bfloat16(), x(4, 8, 8).bfloat16()),
    lambda: aten._pin_memory(x(3)),
    lambda: aten._test_check_tensor(x(3)),
    lambda: torch.smm(x(3, 3).to_sparse(), x(3, 3)),
    lambda: aten._thnn_differentiable_gru_cell_backward(x(2, 4), x(2, 12), x(2, 12), x(2, 4), x(12),
                                                        x(12)),
)
