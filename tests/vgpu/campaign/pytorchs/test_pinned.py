"""PyTorch's tests of page-locked memory, of copies that do not block, and of record_stream."""

import pytest
import torch

SLEEP = 50_000_000  # clock cycles


# PyTorch: test_caching_pinned_memory
@pytest.mark.timed
def test_a_host_block_is_given_again_once_its_copy_is_done():
    tensor = torch.FloatTensor([1]).pin_memory()
    address = tensor.data_ptr()
    del tensor
    tensor = torch.FloatTensor([1]).pin_memory()
    assert tensor.data_ptr() == address, "given again at once"
    device = torch.FloatTensor([0]).cuda()
    torch.cuda._sleep(SLEEP)  # the copy waits
    device.copy_(tensor, non_blocking=True)
    del tensor
    tensor = torch.FloatTensor([1]).pin_memory()
    assert tensor.data_ptr() != address, "given again too early"
    assert list(device) == [1]


# PyTorch: test_pinned_memory_empty_cache
def test_a_host_cache_is_emptied():
    first = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] >= 1 << 20
    del first
    torch._C._host_emptyCache()
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] == 0


# PyTorch: test_host_memory_stats
def test_host_memory_is_counted():
    torch._C._host_emptyCache()
    torch.cuda.reset_peak_host_memory_stats()
    before = torch.cuda.host_memory_stats()
    kept = [torch.ones(1 << 16, pin_memory=True) for _ in range(2)]
    stats = torch.cuda.host_memory_stats()
    assert stats["active_requests.current"] - before["active_requests.current"] == len(kept)
    assert stats["active_bytes.current"] - before["active_bytes.current"] == 2 * 4 << 16
    calls = stats["num_host_alloc"]
    del kept[1]
    kept.append(torch.ones(1 << 16, pin_memory=True))
    assert torch.cuda.host_memory_stats()["num_host_alloc"] == calls


# PyTorch: test_pin_memory
def test_a_pinned_copy_equals_its_source_and_is_not_it():
    plain = torch.randn(3, 5)
    assert not plain.is_pinned()
    pinned = plain.pin_memory()
    assert pinned.is_pinned()
    assert torch.equal(pinned, plain)
    assert pinned.data_ptr() != plain.data_ptr()
    assert pinned.pin_memory() is pinned


# PyTorch: test_noncontiguous_pinned_memory
def test_a_pinned_view_that_is_not_dense_arrives_whole():
    pinned = torch.arange(0, 10).view(2, 5)
    assert torch.equal(pinned.t().pin_memory(), pinned.t())
    there = pinned.t().pin_memory().to("cuda", non_blocking=True)
    assert torch.equal(there.cpu(), pinned.t())


# PyTorch: test_copy_non_blocking
@pytest.mark.timed
def test_a_copy_between_pinned_memory_and_the_device_does_not_wait():
    for to_host in (True, False):
        device = torch.zeros(1000, device="cuda")
        host = torch.ones(1000, pin_memory=True)
        target, source = (host, device) if to_host else (device, host)
        event = torch.cuda.Event()
        torch.cuda._sleep(SLEEP)
        target.copy_(source, non_blocking=True)
        event.record()
        assert not event.query()
        event.synchronize()
        assert torch.equal(host, device.cpu())


# PyTorch: test_to_non_blocking
@pytest.mark.timed
def test_to_waits_unless_it_is_told_not_to():
    source = torch.randn(1000, pin_memory=True)
    stream = torch.cuda.current_stream()
    there = source.to("cuda")
    for non_blocking in (False, True):
        torch.cuda.synchronize()
        torch.cuda._sleep(SLEEP)
        back = there.to("cpu", non_blocking=non_blocking)
        assert stream.query() is not non_blocking
        stream.synchronize()
        assert torch.equal(back, source)
        assert back.is_pinned() is non_blocking


# PyTorch: test_to_cpu_blocking_by_default
@pytest.mark.timed
def test_to_the_host_waits_by_default():
    device = torch.randn(1000, device="cuda")
    torch.cuda.synchronize()
    torch.cuda._sleep(SLEEP)
    host = device.to("cpu")
    assert torch.cuda.current_stream().query()
    assert torch.equal(device.cpu(), host)
    assert not host.is_pinned()


# PyTorch: test_record_stream
@pytest.mark.timed
def test_memory_that_another_stream_reads_is_not_given_again():
    def perform_copy():
        """A copy on a side stream, of memory that is dropped at once."""
        filled = torch.FloatTensor([1, 2, 3, 4]).pin_memory()
        stream, result = torch.cuda.Stream(), torch.cuda.FloatTensor(4)
        with torch.cuda.stream(stream):
            arrived = filled.cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
        address = arrived.data_ptr()
        arrived.record_stream(torch.cuda.current_stream())
        torch.cuda._sleep(SLEEP)
        result.copy_(arrived)
        return stream, result, address

    stream, result, address = perform_copy()
    with torch.cuda.stream(stream):
        other = torch.cuda.FloatTensor([0, 0, 0, 0])
        assert other.data_ptr() != address, "given again too early"
    assert result.tolist() == [1, 2, 3, 4]
    torch.cuda.current_stream().synchronize()
    with torch.cuda.stream(stream):
        again = torch.cuda.FloatTensor([0, 0, 0, 0])
        assert again.data_ptr() == address


# PyTorch: test_record_stream_on_shifted_view
@pytest.mark.timed
def test_a_view_that_begins_later_keeps_the_whole_block():
    def shifted():
        base = torch.cuda.FloatTensor([10, 10, 10])
        return base[1:]

    recorded, side = shifted(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
    assert recorded.storage_offset() > 0
    recorded.record_stream(side)
    address = recorded.data_ptr() - 4
    del recorded
    assert torch.cuda.FloatTensor([1, 2, 3]).data_ptr() != address


# PyTorch: test_sequential_pin_memory
def test_a_loader_gives_pinned_batches():
    samples = torch.utils.data.TensorDataset(torch.arange(12.0), torch.arange(12))
    loader = torch.utils.data.DataLoader(samples, batch_size=3, pin_memory=True)
    seen = []
    for inputs, targets in loader:
        assert inputs.is_pinned() and targets.is_pinned()
        seen.append(inputs.to("cuda", non_blocking=True))
    assert torch.equal(torch.cat(seen).cpu(), torch.arange(12.0))


def test_what_is_pinned_is_known_by_any_view_of_it():
    pinned = torch.empty(100, pin_memory=True)
    assert pinned[10:20].is_pinned()
    assert pinned.view(10, 10).t().is_pinned()
    assert not torch.empty(100).is_pinned()
