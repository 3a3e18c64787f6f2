"""PyTorch's tests of events."""

import pytest
import torch

SLEEP = 50_000_000  # clock cycles


def timed(**kinds):
    return torch.cuda.Event(enable_timing=True, **kinds)


# PyTorch: test_events
@pytest.mark.timed
def test_an_event_is_reached_when_the_work_before_it_is_done():
    stream = torch.cuda.current_stream()
    event = timed()
    assert event.query()
    start = timed()
    stream.record_event(start)
    torch.cuda._sleep(SLEEP)
    stream.record_event(event)
    assert not event.query()
    event.synchronize()
    assert event.query()
    assert start.elapsed_time(event) > 0


# PyTorch: test_events_wait
@pytest.mark.timed
def test_another_stream_waits_for_an_event():
    first, second = torch.cuda.current_stream(), torch.cuda.Stream()
    torch.cuda._sleep(SLEEP)
    event = first.record_event()
    second.wait_event(event)
    with torch.cuda.stream(second):
        torch.ones(1, device="cuda")
    assert not second.query()
    event.synchronize()
    second.synchronize()
    assert first.query() and second.query()


# PyTorch: test_events_multi_gpu_elapsed_time
def test_time_between_events_of_two_streams():
    first, last, side = timed(), timed(), torch.cuda.Stream()
    first.record()
    torch.cuda._sleep(SLEEP)
    side.wait_event(first)
    with torch.cuda.stream(side):
        torch.cuda._sleep(2 * SLEEP)
        last.record()
    last.synchronize()
    first.synchronize()
    assert first.elapsed_time(last) > 0


def test_time_is_not_told_of_events_that_have_none():
    plain, other = torch.cuda.Event(), torch.cuda.Event()
    plain.record()
    other.record()
    torch.cuda.synchronize()
    with pytest.raises((ValueError, RuntimeError)):
        plain.elapsed_time(other)
    with pytest.raises((ValueError, RuntimeError)):
        timed().elapsed_time(timed())


def test_an_event_that_is_recorded_again_is_reached_later():
    first, second, third = timed(), timed(), timed()
    first.record()
    torch.cuda._sleep(SLEEP)
    second.record()
    second.synchronize()
    once = first.elapsed_time(second)
    torch.cuda._sleep(SLEEP)
    second.record()
    third.record()
    third.synchronize()
    assert first.elapsed_time(second) > 1.5 * once


def test_a_wait_is_for_what_the_event_held_then():
    side, event = torch.cuda.Stream(), torch.cuda.Event()
    made = torch.ones(64, device="cuda")
    event.record()
    side.wait_event(event)
    event.record(side)  # of the side stream from here on
    with torch.cuda.stream(side):
        assert (made + 1).sum().item() == 128


def test_an_event_may_block_the_host():
    event = torch.cuda.Event(blocking=True)
    made = torch.full((64,), 2.0, device="cuda")
    host = torch.empty(64, pin_memory=True)
    host.copy_(made, non_blocking=True)
    event.record()
    event.synchronize()
    assert host.sum().item() == 128


def test_a_stream_records_an_event_of_its_own_or_a_given_one():
    side = torch.cuda.Stream()
    given = torch.cuda.Event()
    assert side.record_event(given) is given
    assert isinstance(side.record_event(), torch.cuda.Event)


def test_an_events_handle_is_there_once_it_was_recorded():
    event = torch.cuda.Event()
    assert event.cuda_event == 0
    event.record()
    assert event.cuda_event != 0


def test_waiting_for_a_stream_orders_all_that_it_has():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
        made = torch.arange(512, device="cuda")
    torch.cuda.current_stream().wait_stream(side)
    assert made.sum().item() == 511 * 256
    made.record_stream(torch.cuda.current_stream())
