"""PyTorch's tests of hooks of saved tensors, and of save_on_cpu, on CUDA."""

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint


def memory_and_gradients(pinned):
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Sigmoid(),
                                torch.nn.Linear(256, 256), torch.nn.Sigmoid()).cuda()
    x = torch.randn(512, 256, device="cuda")

    def kept(context):
        before = torch.cuda.memory_allocated()
        with context:
            y = model(x)
        taken = torch.cuda.memory_allocated() - before
        y.sum().backward()
        found = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        return taken, found

    plain, wanted = kept(saved_tensors_hooks(lambda t: t, lambda t: t))
    moved, got = kept(save_on_cpu(pin_memory=pinned))
    assert moved < plain
    assert all(map(torch.equal, got, wanted))


# PyTorch: test_graph_save_on_cpu_cuda
@pytest.mark.parametrize("pinned", (True, False))
def test_saves_on_the_host_take_less_memory_and_give_the_same_gradients(pinned):
    memory_and_gradients(pinned)


# PyTorch: test_graph_save_on_cpu
@pytest.mark.parametrize("pinned", (True, False))
def test_what_is_saved_on_the_host_comes_back_equal(pinned):
    x = torch.randn(5, device="cuda", requires_grad=True)
    with save_on_cpu(pin_memory=pinned):
        y = x * x
        assert y.grad_fn._saved_self.device == x.device
        assert torch.equal(y.grad_fn._saved_self, x)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * x)


# PyTorch: test_save_on_cpu_and_checkpoint
def test_saves_on_the_host_and_checkpoints_within_each_other():
    x = torch.randn(2, 2, device="cuda", requires_grad=True)
    wanted = torch.autograd.grad(x.pow(2).pow(2).pow(2).pow(2).sum(), x)[0]

    def squares(given):
        return given.pow(2).pow(2)

    with save_on_cpu():
        first = checkpoint(squares, x, use_reentrant=False).pow(2).pow(2)
    assert torch.equal(torch.autograd.grad(first.sum(), x)[0], wanted)

    def moved(given):
        with save_on_cpu():
            return squares(given)

    second = checkpoint(moved, x, use_reentrant=False).pow(2).pow(2)
    assert torch.equal(torch.autograd.grad(second.sum(), x)[0], wanted)


# PyTorch: test_saved_variable_packing_unpacking_did_not_save_original_with_default_hooks
def test_a_pair_of_hooks_sees_each_saved_tensor_once():
    packed, unpacked = [], []
    x = torch.randn(5, device="cuda", requires_grad=True)
    with saved_tensors_hooks(lambda t: packed.append(t.data_ptr()) or t,
                             lambda t: unpacked.append(t.data_ptr()) or t):
        y = x.exp() * x
    y.sum().backward()
    assert len(packed) == 3
    assert sorted(packed) == sorted(unpacked)


# PyTorch: test_default_saved_tensors_hooks_double_backward
def test_hooks_in_a_second_backward():
    x = torch.randn(5, device="cuda", requires_grad=True)
    with saved_tensors_hooks(lambda t: 2 * t, lambda t: t / 2):
        first = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)[0]
        second = torch.autograd.grad(first.sum(), x)[0]
    torch.testing.assert_close(second, 6 * x)


# PyTorch: test_pack_hook_with_inplace_modification_should_fail
def test_a_hook_that_changes_what_it_is_given_is_refused():
    def changed(tensor):
        tensor += 1
        return tensor

    x = torch.randn(5, device="cuda", requires_grad=True)
    with saved_tensors_hooks(changed, lambda t: t):
        with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input"):
            torch.exp(x)


def test_hooks_with_a_stream_of_their_own():
    side = torch.cuda.Stream()

    def pack(tensor):
        side.wait_stream(torch.cuda.current_stream())
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        with torch.cuda.stream(side):
            host.copy_(tensor, non_blocking=True)
        tensor.record_stream(side)
        return host

    def unpack(host):
        with torch.cuda.stream(side):
            tensor = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        tensor.record_stream(torch.cuda.current_stream())
        return tensor

    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    wanted = torch.autograd.grad(x.sin().exp().tanh().sum(), x)[0]
    with saved_tensors_hooks(pack, unpack):
        y = x.sin().exp().tanh().sum()
    assert torch.equal(torch.autograd.grad(y, x)[0], wanted)
