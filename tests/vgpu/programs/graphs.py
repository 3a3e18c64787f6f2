"""CUDA graphs on the virtual GPU: what they compute, and what CUDA refuses. Prints "right" at its
end. No part of it is a mistake."""

import torch

N = 1 << 16


def network(dropout):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Dropout(dropout),
                               torch.nn.ReLU(), torch.nn.Linear(64, 32)).cuda()


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(model, optimizer, batch):
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    return loss


BATCHES = [torch.randn(16, 32, generator=torch.Generator().manual_seed(i)) for i in range(4)]


def eager(dropout):
    model = network(dropout)
    optimizer = optimizer_of(model)
    return [step(model, optimizer, batch.cuda()).item() for batch in BATCHES]


def graphed(dropout):
    """A graph of the whole step, as PyTorch's documentation has it."""
    model = network(dropout)
    optimizer = optimizer_of(model)
    before = [p.detach().clone() for p in model.parameters()]
    static = torch.zeros(16, 32, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step(model, optimizer, static)
    torch.cuda.current_stream().wait_stream(side)
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), before):
            parameter.copy_(value)
        for state in optimizer.state.values():
            state["momentum_buffer"].zero_()
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step(model, optimizer, static)
    losses = []
    for batch in BATCHES:
        static.copy_(batch)
        graph.replay()
        losses.append(loss.item())
    return losses


def test_a_step_is_replayed_with_the_eager_losses():
    assert graphed(0.0) == eager(0.0), (graphed(0.0), eager(0.0))


def test_each_replay_draws_other_numbers():
    x = torch.ones(N, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.nn.functional.dropout(x, 0.5)
    drawn = []
    for _ in range(3):
        graph.replay()
        drawn.append(y.cpu())
    assert not torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[1], drawn[2])
    for each in drawn:
        assert abs(each.mean().item() - 1) < 0.05
    # A saved state brings the same numbers back.
    state = torch.cuda.get_rng_state()
    graph.replay()
    once = y.cpu()
    torch.cuda.set_rng_state(state)
    graph.replay()
    assert torch.equal(y.cpu(), once)


def test_a_capture_runs_nothing():
    x = torch.zeros(N, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
    assert x[0].item() == 0
    for _ in range(3):
        graph.replay()
    assert x[0].item() == 3


def test_side_branches():
    x = torch.ones(N, device="cuda")
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        here = torch.cuda.current_stream()
        a = x * 2
        side.wait_stream(here)
        with torch.cuda.stream(side):
            b = a * 3
        c = a + 1
        here.wait_stream(side)
        d = b + c
    x.fill_(5)
    graph.replay()
    assert d[0].item() == 41


def test_graphed_callables():
    batch = torch.randn(16, 32, device="cuda", requires_grad=True)
    plain = network(0.0)
    expected = plain(batch)
    expected.sum().backward()
    model = network(0.0)
    made = torch.cuda.make_graphed_callables(model, (torch.randn(16, 32, device="cuda",
                                                                 requires_grad=True),))
    out = made(batch)
    assert torch.equal(out, expected)
    out.sum().backward()
    for parameter, other in zip(model.parameters(), plain.parameters()):
        assert torch.equal(parameter.grad, other.grad)


def test_two_graphs_of_one_pool_in_their_order():
    x = torch.ones(N, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        a = x * 2
        out = (a + 1).sum()
        del a
    with torch.cuda.graph(second, pool=first.pool()):
        b = x * 5
        other = (b + 1).sum()
        del b
    for value in (1, 2):
        x.fill_(value)
        first.replay()
        second.replay()
        assert out.item() == N * (2 * value + 1) and other.item() == N * (5 * value + 1)


def test_what_cuda_refuses():
    x = torch.ones(4, device="cuda")
    before = torch.cuda.Event()
    before.record()
    for wrong, error in (
            (lambda: torch.cuda.current_stream().wait_event(before),
             "dependency created on uncaptured work in another stream"),
            (lambda: (x * 2).sum().item(), "operation not permitted when stream is capturing"),
            (lambda: torch.cuda.current_stream().synchronize(),
             "operation not permitted when stream is capturing")):
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                wrong()
        except RuntimeError as raised:
            assert error in str(raised.__context__), raised.__context__
            assert "previous error during capture" in str(raised), raised
        else:
            raise AssertionError("it was let through")
    side = torch.cuda.Stream()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x * 3
    except RuntimeError as raised:
        assert "unjoined work" in str(raised), raised
    else:
        raise AssertionError("a branch was not joined")
    assert (x + 1)[0].item() == 2  # the next work is right


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name[5:].replace("_", " "), flush=True)
print("right")
