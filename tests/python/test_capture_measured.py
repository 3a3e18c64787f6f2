"""What a capture for a CPU says that an operator makes is what it makes there, also where PyTorch's
formula for fake tensors says another thing."""

import unittest

from captures import WHY_NOT, is_since, torch

if torch:
    from torch import nn
    from torch.nn import functional
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map_only
    from torch_ferry.measured import DOUBTFUL, MEASURED, RIGHT_SINCE
    from torch_ferry.values import ValueMode

    aten = torch.ops.aten
    HALF = torch.bfloat16


def turned(*shape, dtype=None):
    """Its last two dimensions lie the other way round in memory."""
    return torch.rand(*shape[:-2], shape[-1], shape[-2], dtype=dtype).transpose(-1, -2)


def expanded(*shape):
    return torch.rand(()).expand(shape)


def norm(dtype, weight, x=None):
    x = torch.rand(4, 6, 5, dtype=dtype) if x is None else x
    return x, torch.rand(6, dtype=weight), torch.rand(6, dtype=weight)


def lstm():
    weights = [torch.rand(64, 8), torch.rand(64, 16), torch.rand(64), torch.rand(64)]
    return (torch.rand(5, 2, 8), *weights, torch.rand(2, 16), torch.rand(2, 16), False, [], 2, 16,
            1, True, False, False, True)


def of_backward(overload, forward):
    """The overload, and its arguments in the backward of what `forward` makes."""
    found = []

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is overload:
                found.append((func, args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    result = forward()
    with Look():
        result.backward(turned(*result.shape, dtype=result.dtype))
    return found[0]


def backwards():
    """As `calls`."""
    x, weight, bias = (each.requires_grad_() for each in norm(HALF, torch.float32))
    wide = turned(5, 5, 5).requires_grad_()
    image = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).requires_grad_()
    running = torch.zeros(5), torch.ones(5)
    cases = {
        "mkldnn_rnn_layer_backward": lambda: nn.LSTM(8, 16, bias=False)(
            torch.rand(5, 2, 8))[0],
        "native_layer_norm_backward": lambda: functional.layer_norm(wide, (5,)),
        "native_group_norm_backward": lambda: functional.group_norm(x, 3, weight, bias),
        "native_batch_norm_backward": lambda: functional.batch_norm(wide, *running, training=True),
        "batch_norm_backward": lambda: aten._batch_norm_with_update(
            wide, torch.ones(5, requires_grad=True), torch.ones(5), *running, 0.1, 1e-5)[0],
        "replication_pad2d_backward": lambda: functional.pad(image, (1, 1, 1, 1), "replicate"),
    }
    return {name: of_backward(getattr(aten, name).default, forward)
            for name, forward in cases.items()}


def calls():
    """{entry of DOUBTFUL: (overload, arguments)} that a formula of PyTorch's is wrong of."""
    x, weight, bias = norm(HALF, torch.float32)
    stats = torch.zeros(6), torch.ones(6)
    a, b = turned(10, 5), torch.rand(5)
    batch = (turned(5, 5, 5), None, None, torch.zeros(5), torch.ones(5), True, 0.1, 1e-5)
    made = {
        "mkldnn_rnn_layer": (aten.mkldnn_rnn_layer.default, lstm()),
        "_embedding_bag": (aten._embedding_bag.default,
                           (torch.rand(9, 3, dtype=HALF), torch.arange(5),
                            torch.tensor([0, 2]), False, 0)),
        "multilabel_margin_loss_forward": (aten.multilabel_margin_loss_forward.default,
                                           (torch.rand(4), torch.tensor([1, 2, -1, 0]), 0)),
        "_fft_r2c": (aten._fft_r2c.default, (expanded(8, 6, 7), [0], 0, True)),
        "native_layer_norm": (aten.native_layer_norm.default,
                              (torch.rand(4, 6, dtype=HALF), [6], weight, bias, 1e-5)),
        "native_group_norm": (aten.native_group_norm.default,
                              (x, weight, bias, 4, 6, 5, 3, 1e-5)),
        "native_batch_norm": (aten.native_batch_norm.default,
                              (x, weight, bias, *stats, True, 0.1, 1e-5)),
        "_native_batch_norm_legit": (aten._native_batch_norm_legit.default, batch),
        "_batch_norm_with_update": (aten._batch_norm_with_update.default,
                                    (*batch[:5], 0.1, 1e-5)),
        "copysign": (aten.copysign.Tensor, (a, b)),
        "div.Tensor_mode": (aten.div.Tensor_mode, (a, b), {"rounding_mode": "floor"}),
        "floor_divide": (aten.floor_divide.default, (a, b)),
        "pow.Scalar": (aten.pow.Scalar, (2.0, a)),
        "logical_and": (aten.logical_and.default, (torch.rand(()), a)),
        "logical_or": (aten.logical_or.default, (torch.rand(()), a)),
        "logical_xor": (aten.logical_xor.default, (torch.rand(()), a)),
        "heaviside": (aten.heaviside.default, (torch.rand(()), a)),
        "logaddexp": (aten.logaddexp.default, (torch.rand(()), a)),
        "ldexp": (aten.ldexp.Tensor, (torch.rand(()), a)),
        "diagonal_scatter": (aten.diagonal_scatter.default, (expanded(4, 4), torch.rand(4))),
        "select_scatter": (aten.select_scatter.default, (expanded(4, 4), torch.rand(4), 0, 1)),
        "slice_scatter": (aten.slice_scatter.default,
                          (expanded(4, 4), torch.rand(2, 4), 0, 1, 3)),
        "_log_softmax_backward_data": (aten._log_softmax_backward_data.default,
                                       (turned(2, 3), turned(2, 3), 1, torch.float32)),
        "log_sigmoid_forward": (aten.log_sigmoid_forward.default, (turned(5, 4),)),
        "replication_pad2d": (aten.replication_pad2d.default,
                              (torch.rand(2, 3, 4, 5).contiguous(
                                  memory_format=torch.channels_last), [1, 1, 1, 1])),
        "max_unpool2d": (aten.max_unpool2d.default,
                         (torch.rand(1, 2, 2, 3).contiguous(memory_format=torch.channels_last),
                          torch.arange(12).view(1, 2, 2, 3) % 6, [3, 6])),
        "normal.Tensor_Tensor": (aten.normal.Tensor_Tensor, (torch.rand(()), turned(4, 2))),
    }
    return {name: (call[0], call[1], call[2] if len(call) > 2 else {})
            for name, call in made.items()} | backwards()


def described(results):
    return [(each.dtype, each.shape,
             [step for step, size in zip(each.stride(), each.shape) if size > 1])
            for each in tree_leaves(results) if isinstance(each, torch.Tensor)]


def formula(mode, func, args, kwargs):
    args, kwargs = tree_map_only(torch.Tensor, mode.from_tensor, (args, kwargs))
    with mode:
        return described(func(*args, **kwargs))


def pytorchs(*call):
    try:
        return formula(FakeTensorMode(), *call)
    except TypeError:  # of batch norms without weights it has none
        return None


@unittest.skipIf(torch is None, WHY_NOT)
class Measured(unittest.TestCase):
    def test_a_capture_knows_what_pytorchs_formula_says_otherwise(self):
        drawn = calls()
        self.assertEqual(set(drawn), set(DOUBTFUL))
        right = {name for name, since in RIGHT_SINCE.items() if is_since(since)}
        self.assertEqual(set(MEASURED), set(DOUBTFUL) - right)
        for name, (func, args, kwargs) in drawn.items():
            with self.subTest(name):
                made = described(func(*args, **kwargs))
                self.assertEqual(formula(ValueMode(), func, args, kwargs), made)
                formulas = pytorchs(func, args, kwargs)
                if name in MEASURED:
                    self.assertNotEqual(formulas, made, "no longer needed")
                else:
                    self.assertEqual(formulas, made, "needed here")


if __name__ == "__main__":
    unittest.main()
