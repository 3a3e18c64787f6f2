"""What `pytest --ferry` is to say of each test is in its name."""

import subprocess
import sys

import pytest
import torch


def test_clean(filled):
    torch.cuda.current_stream().wait_event(filled.filled)
    assert (filled.buffer + 1).sum().item() == 512


def test_racing(filled):
    filled.buffer + 1  # the use


def test_clean_after_the_racing_one(filled):
    torch.cuda.current_stream().wait_event(filled.filled)
    filled.buffer + 1


def test_clean_with_what_an_earlier_test_left(side):
    side.buffer + 1


def test_failing(filled):
    torch.cuda.current_stream().wait_event(filled.filled)
    assert (filled.buffer + 1).sum().item() == 0


def test_failing_and_racing(filled):
    filled.buffer + 1
    assert False, "a reason of its own"


@pytest.mark.xfail(strict=True)
def test_racing_as_expected(filled):
    filled.buffer + 1


@pytest.mark.skip
def test_skipped(filled):
    filled.buffer + 1


def test_without_cuda():
    assert torch.ones(2).sum() == 2


def test_whose_child_asks_for_a_device():
    asks = "import ctypes; ctypes.CDLL(None).cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))"
    subprocess.run([sys.executable, "-c", asks], check=True)


def test_racing_at_its_end(unordered_end):
    pass
