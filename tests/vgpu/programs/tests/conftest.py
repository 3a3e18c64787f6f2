import pytest
import torch


@pytest.fixture(scope="session")
def side():
    """Used by every test, so that their logs share a stream, an event and memory."""
    stream = torch.cuda.Stream()
    stream.buffer = torch.empty(256, device="cuda")
    stream.filled = torch.cuda.Event()
    return stream


def fill(side, value):
    with torch.cuda.stream(side):
        side.buffer.fill_(value)  # the fill
        side.filled.record()


@pytest.fixture
def filled(side):
    fill(side, 1.0)
    return side


@pytest.fixture
def unordered_end(side):
    yield
    fill(side, 2.0)
    side.buffer.add_(1)
