"""PyTorch's tests of checkpoints, on CUDA."""

import pytest
import torch
from torch.utils.checkpoint import (CheckpointPolicy, checkpoint, checkpoint_sequential,
                                    create_selective_checkpoint_contexts)

KINDS = pytest.mark.parametrize("reentrant", (True, False))


def gradients(model, x):
    taken = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    return taken + ([x.grad.clone()] if x.grad is not None else [])


# PyTorch: test_checkpoint_rng_gpu
@KINDS
def test_dropout_is_drawn_again_alike(reentrant):
    for _ in range(5):
        state = torch.cuda.get_rng_state()
        x = torch.randn(20000, device="cuda", requires_grad=True)
        torch.nn.functional.dropout(x).sum().backward()
        wanted = x.grad.clone()
        torch.cuda.set_rng_state(state)
        x = torch.randn(20000, device="cuda").detach().requires_grad_()
        checkpoint(torch.nn.functional.dropout, x, use_reentrant=reentrant).sum().backward()
        assert torch.equal(x.grad, wanted)
        assert 0.4 < (wanted == 0).float().mean().item() < 0.6


# PyTorch: test_checkpoint_not_preserve_rng_state_and_without_reentrant
@KINDS
def test_dropout_is_drawn_anew_where_that_is_asked_for(reentrant):
    x = torch.randn(20000, device="cuda", requires_grad=True)
    y = checkpoint(torch.nn.functional.dropout, x, use_reentrant=reentrant,
                   preserve_rng_state=False)
    mask = y.detach() != 0
    y.sum().backward()
    assert not torch.equal(x.grad != 0, mask)


# PyTorch: test_checkpoint_module_list
@KINDS
def test_a_list_of_modules_in_segments_has_the_same_gradients(reentrant):
    parts = [torch.nn.Linear(100, 50), torch.nn.ReLU(), torch.nn.Linear(50, 20), torch.nn.ReLU(),
             torch.nn.Linear(20, 5), torch.nn.ReLU()]
    model = torch.nn.Sequential(*parts).cuda()
    for segments in (1, 2, len(parts)):
        x = torch.randn(1, 100, device="cuda", requires_grad=True)
        model(x).sum().backward()
        wanted = gradients(model, x)
        again = x.detach().clone().requires_grad_()
        checkpoint_sequential(model, segments, again, use_reentrant=reentrant).sum().backward()
        assert all(map(torch.equal, gradients(model, again), wanted))


# PyTorch: test_checkpointing_without_reentrant_memory_savings
@KINDS
def test_a_checkpoint_takes_less_memory(reentrant):
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(),
                                                      torch.nn.GELU()) for _ in range(6))).cuda()

    def kept(call):
        x = torch.ones(512, 512, device="cuda", requires_grad=True)
        before = torch.cuda.memory_allocated()
        for part in model:
            x = call(part, x)
        taken = torch.cuda.memory_allocated() - before
        x.sum().backward()
        return taken

    plain = kept(lambda part, x: part(x))
    assert kept(lambda part, x: checkpoint(part, x, use_reentrant=reentrant)) < 0.5 * plain


# PyTorch: test_checkpointing_non_reentrant_autocast_gpu
@KINDS
def test_autocast_is_as_it_was(reentrant):
    layer, seen = torch.nn.Linear(16, 16).cuda(), []

    def part(x):
        seen.append(torch.is_autocast_enabled("cuda"))
        return layer(x)

    with torch.autocast("cuda", torch.bfloat16):
        x = torch.randn(4, 16, device="cuda", requires_grad=True)
        y = checkpoint(part, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16
    assert seen == [True, True]


# PyTorch: test_checkpoint_trigger
def test_the_function_runs_again_once():
    runs = []

    def part(x):
        runs.append(None)
        return x.sin().cos()

    x = torch.ones(8, device="cuda", requires_grad=True)
    y = checkpoint(part, x, use_reentrant=False)
    assert len(runs) == 1
    y.sum().backward()
    assert len(runs) == 2


# PyTorch: test_checkpoint_non_tensor_inputs_outputs
def test_inputs_and_outputs_may_be_no_tensors():
    def part(given, factor, word):
        return given * factor, word, None

    x = torch.ones(4, device="cuda", requires_grad=True)
    made, word, none = checkpoint(part, x, 5, "word", use_reentrant=True)
    made.sum().backward()
    assert (word, none) == ("word", None)
    assert torch.equal(x.grad.cpu(), torch.full((4,), 5.0))


# PyTorch: test_checkpoint_partial_grad
def test_an_input_may_need_no_gradient():
    def part(one, other):
        return one * 2, other * 3

    x = torch.ones(4, device="cuda", requires_grad=True)
    y = torch.ones(4, device="cuda")
    first, second = checkpoint(part, x, y, use_reentrant=True)
    first.sum().backward()
    assert second.requires_grad is False or second.grad_fn is not None
    assert torch.equal(x.grad.cpu(), torch.full((4,), 2.0))


# PyTorch: test_checkpoint_detects_non_determinism
def test_another_recomputation_is_found_out():
    runs = []

    def part(x):
        runs.append(None)
        return (x[:2] if len(runs) > 1 else x).sin()

    x = torch.ones(4, device="cuda", requires_grad=True)
    y = checkpoint(part, x, use_reentrant=False)
    with pytest.raises(torch.utils.checkpoint.CheckpointError, match="different metadata"):
        y.sum().backward()


# PyTorch: test_policy_with_state
def test_what_a_policy_keeps_is_not_computed_again():
    runs = []

    class Counted(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            runs.append(function)
            return function(*args, **(kwargs or {}))

    def contexts():
        return create_selective_checkpoint_contexts(
            lambda _, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE
            if op == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE)

    weight = torch.randn(64, 64, device="cuda", requires_grad=True)
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    part = lambda given: torch.mm(given, weight).sin()  # noqa: E731
    wanted = torch.autograd.grad(part(x).sum(), (x, weight))
    y = checkpoint(part, x, use_reentrant=False, context_fn=contexts)
    with Counted():
        got = torch.autograd.grad(y.sum(), (x, weight))
    assert all(map(torch.equal, got, wanted))
    assert runs.count(torch.ops.aten.mm.default) == 2  # backward's own


# PyTorch: test_nested_checkpoint
def test_checkpoints_within_checkpoints():
    def inner(x):
        return x.sin().exp()

    def outer(x):
        return checkpoint(inner, x.cos(), use_reentrant=False).tanh()

    x = torch.randn(256, device="cuda", requires_grad=True)
    wanted = torch.autograd.grad(outer(x).sum(), x)[0]
    got = torch.autograd.grad(checkpoint(outer, x, use_reentrant=False).sum(), x)[0]
    assert torch.equal(got, wanted)
