"""PyTorch's tests of backward on streams: each node runs on its forward's, and the engine waits."""

import pytest
import torch

SLEEP = 10_000_000  # clock cycles


class StreamOf(torch.autograd.Function):
    """Passes on, and notes the stream of its backward."""

    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.seen.append(torch.cuda.current_stream())
        return gradient.clone(), None


# PyTorch: test_streaming_backwards_sync
def test_backward_runs_on_forwards_stream():
    side, seen = torch.cuda.Stream(), []
    x = torch.randn(5, 5, device="cuda", requires_grad=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = StreamOf.apply(x, seen)
    torch.cuda.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side]
    assert torch.equal(x.grad.cpu(), torch.ones(5, 5))


# PyTorch: test_streaming_backwards_multiple_streams
def test_gradients_of_two_streams_meet():
    class TwoStreams(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.streams = torch.cuda.Stream(), torch.cuda.Stream()

        def forward(self, x):
            made, before = [], torch.cuda.current_stream()
            for factor, stream in zip((2, 3), self.streams, strict=True):
                stream.wait_stream(before)
                x.record_stream(stream)
                with torch.cuda.stream(stream):
                    made.append(x * factor)
            for each, stream in zip(made, self.streams, strict=True):
                before.wait_stream(stream)
                each.record_stream(before)
            return made[0] + made[1]

    model, first = TwoStreams(), torch.cuda.Stream()
    for _ in range(5):
        first.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(first):
            x = torch.full((1000,), 10.0, device="cuda", requires_grad=True)
            x.sum().backward()
            x.grad = None
            model(x).sum().backward()
            assert torch.equal(x.grad.cpu(), torch.full((1000,), 5.0))


# PyTorch: test_streaming_backwards_sync_graph_root
@pytest.mark.parametrize("gradient_on_side", (True, False))
def test_backward_waits_for_the_gradient_that_it_is_given(gradient_on_side):
    backward, forward = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.full((2000,), 10.0, device="cuda", requires_grad=True)
    forward.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(forward):
        y = x * 3
    backward.wait_stream(torch.cuda.current_stream())
    backward.wait_stream(forward)
    with torch.cuda.stream(backward if gradient_on_side else torch.cuda.current_stream()):
        torch.cuda._sleep(SLEEP)
        gradient = torch.full((2000,), 2.0, device="cuda")
        torch.autograd.backward(y, gradient)
        assert x.grad.sum().item() == 12000


# PyTorch: test_streaming_backwards_callback
def test_a_final_callback_sees_gradients_that_are_whole():
    x = torch.full((1000,), 1.0, device="cuda", requires_grad=True)
    side, read = torch.cuda.Stream(), []
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        made = StreamOf.apply(x, [])
        torch.cuda._sleep(SLEEP)

    def at_the_end():
        read.append(x.grad.sum().item())

    x.register_hook(lambda _: torch.autograd.Variable._execution_engine.queue_callback(at_the_end))
    torch.cuda.current_stream().wait_stream(side)
    made.sum().backward()
    assert read == [1000]


# PyTorch: test_side_stream_backward_overlap
def test_backwards_of_two_streams_are_each_their_own():
    side, seen = torch.cuda.Stream(), []
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    y = StreamOf.apply(x, seen)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        z = StreamOf.apply(x, seen)
        z.record_stream(torch.cuda.current_stream())
        z.sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side, torch.cuda.default_stream()]
    assert torch.equal(x.grad.cpu(), torch.full((64, 64), 2.0))


class Producer(torch.autograd.Function):
    """Its gradient takes long, on its forward's stream."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        torch.cuda._sleep(SLEEP)
        return gradient.clone().mul_(2)


# PyTorch: test_consumer_to_single_producer_case_2_correctness
def test_a_leafs_gradient_waits_for_another_streams_producer():
    side = torch.cuda.Stream()
    x = torch.ones(4096, device="cuda", requires_grad=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = Producer.apply(x)
        loss = y.sum()
    torch.cuda.current_stream().wait_stream(side)
    loss.backward()
    assert x.grad.sum().item() == 8192


# PyTorch: test_consumer_to_multi_producer_case_4_correctness
def test_a_consumers_gradient_is_the_sum_of_two_streams_producers():
    streams = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.ones(4096, device="cuda", requires_grad=True)
    middle = x.clone()
    losses = []
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            losses.append(Producer.apply(middle).sum())
    for stream, loss in zip(streams, losses, strict=True):
        torch.cuda.current_stream().wait_stream(stream)
        loss.record_stream(torch.cuda.current_stream())
    (losses[0] + losses[1]).backward()
    assert torch.equal(x.grad.cpu(), torch.full((4096,), 4.0))


# PyTorch: test_scalar_grad_mixed_device
def test_a_scalar_of_the_host_has_its_gradient_there():
    x = torch.tensor(1.0, requires_grad=True)
    y = torch.randn(2, 2, device="cuda")
    (x * y).sum().backward()
    assert x.grad.device.type == "cpu"
    assert x.grad.item() == y.sum().item()


def test_a_gradient_is_used_on_another_stream_after_a_wait():
    side = torch.cuda.Stream()
    x = torch.ones(512, device="cuda", requires_grad=True)
    (x * 3).sum().backward()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        total = x.grad.sum()
        x.grad.record_stream(side)
    torch.cuda.current_stream().wait_stream(side)
    assert total.item() == 1536


# PyTorch: test_reentrant_parent_error_on_cpu
def test_an_error_within_a_nested_backward_ends_both():
    x = torch.rand(10, 10, device="cuda", requires_grad=True)

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, given):
            return given.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise RuntimeError("Simulate error")

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, given):
            ctx.given = given.detach().requires_grad_()
            with torch.enable_grad():
                ctx.made = Fails.apply(ctx.given).sum()
            return ctx.made.detach()

        @staticmethod
        def backward(ctx, gradient):
            ctx.made.backward()
            return ctx.given.grad

    with pytest.raises(RuntimeError, match="Simulate error"):
        Nested.apply(x).backward()
    assert x.grad is None
    (x * 2).sum().backward()
    assert torch.equal(x.grad.cpu(), torch.full((10, 10), 2.0))
