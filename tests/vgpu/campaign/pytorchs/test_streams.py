"""PyTorch's tests of streams."""

import copy
import pickle
import threading

import pytest
import torch

SLEEP = 50_000_000  # clock cycles: many milliseconds on every card


# PyTorch: test_current_stream
def test_the_default_stream_is_the_current_one():
    device = torch.cuda.current_device()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.cuda.current_stream(device) == torch.cuda.default_stream(f"cuda:{device}")
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.current_stream(torch.device("cpu"))


# PyTorch: test_default_stream
def test_the_default_stream_stays_the_default_one_within_another():
    default = torch.cuda.default_stream()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        assert torch.cuda.default_stream() == default
        assert torch.cuda.current_stream() != default
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        torch.cuda.default_stream(torch.device("cpu"))


# PyTorch: test_stream_context
def test_a_context_sets_the_stream_and_puts_the_earlier_one_back():
    outer, inner = torch.cuda.Stream(), torch.cuda.Stream()
    before = torch.cuda.current_stream()
    with torch.cuda.stream(outer):
        assert torch.cuda.current_stream() == outer
        with torch.cuda.stream(inner):
            assert torch.cuda.current_stream() == inner
        with torch.cuda.stream(None):
            assert torch.cuda.current_stream() == outer
        assert torch.cuda.current_stream() == outer
    assert torch.cuda.current_stream() == before


def test_a_context_puts_the_stream_back_after_an_exception():
    before = torch.cuda.current_stream()
    with pytest.raises(KeyError):
        with torch.cuda.stream(torch.cuda.Stream()):
            raise KeyError
    assert torch.cuda.current_stream() == before


# PyTorch: test_streams
@pytest.mark.timed
def test_a_stream_is_done_when_its_work_is():
    default, user = torch.cuda.current_stream(), torch.cuda.Stream()
    assert default.cuda_stream == 0
    assert user.cuda_stream != 0
    assert default != user
    assert user.query()
    with torch.cuda.stream(user):
        torch.cuda._sleep(SLEEP)
        assert not user.query()
        user.synchronize()
        assert user.query()
    assert default.query()


# PyTorch: test_stream_event_repr
def test_a_stream_and_an_event_say_what_they_are():
    stream = torch.cuda.current_stream()
    assert "torch.cuda.Stream" in repr(stream)
    event = torch.cuda.Event()
    assert "torch.cuda.Event" in repr(event)
    stream.record_event(event)
    assert "torch.cuda.Event" in repr(event)


def test_a_wait_for_an_event_that_was_never_recorded_is_none():
    side, event = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_event(event)
    assert event.query()
    event.synchronize()
    with torch.cuda.stream(side):
        assert torch.ones(4, device="cuda").sum().item() == 4


# PyTorch: test_streams_priority
def test_a_priority_is_kept_and_held_within_what_there_is():
    low, high = torch.cuda.Stream.priority_range()
    assert low == 0 and high < 0
    for asked, given in ((low, low), (high, high), (high - 1, high), (low + 1, low)):
        stream = torch.cuda.Stream(priority=asked)
        assert stream.priority == given
        assert stream.device == torch.device("cuda:0")


# PyTorch: test_external_streams
def test_a_stream_of_a_raw_handle():
    raw = torch.cuda.Stream()
    external = torch.cuda.ExternalStream(raw.cuda_stream)
    assert external.cuda_stream == raw.cuda_stream
    with torch.cuda.stream(external):
        made = torch.full((16,), 3.0, device="cuda")
    external.synchronize()
    assert made.sum().item() == 48


# PyTorch: test_generic_stream_event
def test_torchs_own_streams_and_events_are_cudas():
    stream, cuda = torch.Stream("cuda"), torch.cuda.Stream()
    assert stream.device_index == cuda.device_index
    assert isinstance(cuda, torch.Stream)
    first = torch.Event("cuda", enable_timing=True)
    last = torch.Event("cuda", enable_timing=True)
    given = torch.randn(1000)
    with torch.cuda.stream(cuda):
        first.record(cuda)
        there = given.to("cuda", non_blocking=True)
        last.record(cuda)
    last.synchronize()
    assert last.query()
    assert first.elapsed_time(last) > 0
    assert torch.equal(there.cpu(), given)


# PyTorch: test_stream_compatibility
def test_a_stream_made_of_another_ones_numbers_is_that_stream():
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.set_stream(stream)
    try:
        assert torch.accelerator.current_stream().stream_id == stream.stream_id
        torch.accelerator.set_stream(other)
        assert torch.cuda.current_stream().stream_id == other.stream_id
    finally:
        torch.cuda.set_stream(torch.cuda.default_stream())
    again = torch.cuda.Stream(stream_id=stream.stream_id, device_index=stream.device_index,
                              device_type=stream.device_type)
    assert again == stream
    assert hash(again) == hash(stream)


# PyTorch: test_streams_multi_gpu_eq
def test_streams_are_equal_by_what_they_are():
    stream = torch.cuda.Stream()
    assert stream != torch.cuda.Stream()
    assert stream != "stream"
    assert len({stream, stream}) == 1


# PyTorch: test_cuda_init_race
def test_threads_may_begin_at_once():
    failed = []

    def begin():
        try:
            torch.zeros(1, device="cuda").sum().item()
        except RuntimeError as error:
            failed.append(error)

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


# PyTorch: test_cuda_synchronize
def test_a_device_can_be_waited_for_by_each_of_its_names():
    for device in ((), ("cuda",), ("cuda:0",), (0,), (torch.device("cuda:0"),)):
        torch.cuda.synchronize(*device)
    for wrong in (torch.device("cpu"), "cpu"):
        with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
            torch.cuda.synchronize(wrong)


def test_the_current_stream_is_a_threads_own():
    side, seen = torch.cuda.Stream(), []
    with torch.cuda.stream(side):
        thread = threading.Thread(target=lambda: seen.append(torch.cuda.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.cuda.default_stream()]


def test_a_copy_back_follows_what_came_before_it_on_its_stream():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        made = torch.arange(1000, device="cuda").mul_(3)
        host = torch.empty(1000, dtype=torch.long, pin_memory=True)
        host.copy_(made, non_blocking=True)
    side.synchronize()
    assert torch.equal(host, 3 * torch.arange(1000))


def test_a_tensor_is_copied_and_pickled_on_a_side_stream():
    with torch.cuda.stream(torch.cuda.Stream()):
        made = torch.arange(8.0, device="cuda")
        again = copy.deepcopy(made)
        other = pickle.loads(pickle.dumps(made))
        assert torch.equal(again, made)
        assert other.device == made.device
        assert torch.equal(other, made)
    torch.cuda.synchronize()
