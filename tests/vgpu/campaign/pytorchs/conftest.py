"""PyTorch's own tests of CUDA, said again in words of our own. `# PyTorch: NAME` is the test of
v2.11.0 that the next one says again, in test/test_cuda.py, test_cuda_multigpu.py, test_autograd.py,
test_utils.py or a neighbour; the others are ours. `pytest --ferry` runs them, and judges each.

A `timed` test asks how far the device is, and waits in the device's time. It is left out where a
schedule answers in the time's place.
"""

import gc

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption("--no-timed", action="store_true", help="a schedule answers, not the time")


def pytest_configure(config):
    config.addinivalue_line("markers", "timed: asks how far the device is")


def pytest_collection_modifyitems(config, items):
    if config.option.no_timed:
        for item in items:
            if item.get_closest_marker("timed"):
                item.add_marker(pytest.mark.skip(reason="asks how far the device is"))


@pytest.fixture(autouse=True)
def nothing_left():
    """Each test finds no memory in use, and no cache."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(0)
    yield
