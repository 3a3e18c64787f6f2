"""PyTorch's tests of the caching allocator of device memory."""

import gc

import pytest
import torch

MIB = 1 << 20


def allocated():
    return torch.cuda.memory_allocated()


# PyTorch: test_memory_allocation
def test_memory_is_counted_while_a_tensor_lives():
    gc.collect()
    before = allocated()
    tensor = torch.empty(300, dtype=torch.float, device="cuda")
    assert allocated() == before + 1536  # in blocks of 512 bytes
    assert torch.cuda.max_memory_allocated() >= before + 1536
    del tensor
    assert allocated() == before


# PyTorch: test_memory_stats
def test_statistics_have_what_was_allocated_and_freed():
    first = torch.cuda.memory_stats()
    tensors = [torch.empty(MIB, dtype=torch.uint8, device="cuda") for _ in range(3)]
    then = torch.cuda.memory_stats()
    assert then["allocated_bytes.all.current"] - first["allocated_bytes.all.current"] == 3 * MIB
    assert then["allocation.all.allocated"] - first["allocation.all.allocated"] == 3
    del tensors
    last = torch.cuda.memory_stats()
    assert last["allocation.all.freed"] - then["allocation.all.freed"] == 3
    assert last["allocated_bytes.all.peak"] >= 3 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert (torch.cuda.memory_stats()["allocated_bytes.all.peak"] ==
            last["allocated_bytes.all.current"])


def test_what_is_reserved_is_kept_until_the_cache_is_emptied():
    before = torch.cuda.memory_reserved()
    tensor = torch.empty(40 * MIB, dtype=torch.uint8, device="cuda")
    held = torch.cuda.memory_reserved()
    assert held >= before + 40 * MIB
    del tensor
    assert torch.cuda.memory_reserved() == held
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before


def test_a_block_is_given_again_on_its_stream():
    tensor = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    address = tensor.data_ptr()
    del tensor
    assert torch.empty(5 * MIB, dtype=torch.uint8, device="cuda").data_ptr() == address


def test_a_block_is_not_given_to_another_stream():
    tensor = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    address = tensor.data_ptr()
    del tensor
    with torch.cuda.stream(torch.cuda.Stream()):
        other = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    assert other.data_ptr() != address


# PyTorch: test_out_of_memory
def test_too_much_is_refused_and_the_rest_still_works():
    tensor = torch.zeros(1024, device="cuda")
    for size in (1 << 40, 1 << 50):
        with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
            torch.empty(size, dtype=torch.int8, device="cuda")
    tensor.fill_(1)
    assert (tensor == 1).all()


# PyTorch: test_out_of_memory_retry
def test_memory_in_the_cache_is_given_back_before_there_is_too_little():
    free, total = torch.cuda.mem_get_info()
    half = int(total * 0.5)
    tensor = torch.empty(half, dtype=torch.int8, device="cuda")
    del tensor
    retries = torch.cuda.memory_stats()["num_alloc_retries"]
    tensor = torch.empty(int(total * 0.7), dtype=torch.int8, device="cuda")
    assert torch.cuda.memory_stats()["num_alloc_retries"] == retries + 1
    assert tensor.numel() < free


# PyTorch: test_set_per_process_memory_fraction
def test_a_process_may_be_given_a_share():
    with pytest.raises(TypeError):
        torch.cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError):
        torch.cuda.set_per_process_memory_fraction(-0.1)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.5)
    try:
        tensor = torch.empty(int(total * 0.499) - torch.cuda.max_memory_reserved(),
                             dtype=torch.int8, device="cuda")
        del tensor
        torch.cuda.empty_cache()
        with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
            torch.empty(int(total * 0.5) + 1, dtype=torch.int8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_the_device_has_less_once_memory_is_taken():
    torch.cuda.synchronize()
    before, total = torch.cuda.mem_get_info()
    tensor = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
    after, same = torch.cuda.mem_get_info(0)
    assert (before - after, same) == (64 * MIB, total)
    assert tensor.is_cuda


# PyTorch: test_check_error
def test_an_error_code_is_told_by_its_text():
    torch.cuda.check_error(0)
    for code, text in ((2, "out of memory|hipErrorOutOfMemory"), (1, "invalid argument")):
        with pytest.raises(torch.cuda.CudaError, match=text):
            torch.cuda.check_error(code)


def test_an_index_beyond_two_gibibytes():
    big = torch.empty((1 << 31) + 8, dtype=torch.int8, device="cuda")
    big[-1] = 7
    big[1 << 31] = 5
    assert big[(1 << 31):].cpu()[[0, -1]].tolist() == [5, 7]


# PyTorch: test_memory_snapshot
def test_a_snapshot_has_each_segment_and_block():
    tensor = torch.rand(311, 411, device="cuda")
    segments = torch.cuda.memory_snapshot()
    found = [block for segment in segments for block in segment["blocks"]
             if block["state"] == "active_allocated" and block["requested_size"] == 311 * 411 * 4]
    assert len(found) == 1
    assert sum(segment["total_size"] for segment in segments) == torch.cuda.memory_reserved()
    assert tensor.numel() == 311 * 411


# PyTorch: test_memory_snapshot
def test_the_history_has_each_allocation_and_free():
    torch.cuda.memory._record_memory_history("all", context=None)
    try:
        tensor = torch.rand(511, 311, device="cuda")
        del tensor
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        kinds = [entry["action"] for entry in trace if entry["size"] >= 511 * 311 * 4]
        assert kinds[-3:] == ["alloc", "free_requested", "free_completed"]
    finally:
        torch.cuda.memory._record_memory_history(None)


# PyTorch: test_notifies_oom
def test_somebody_who_listens_is_told_when_there_is_too_little():
    told = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *seen: told.append(seen))
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 45, dtype=torch.int8, device="cuda")
    assert len(told) == 1
    assert told[0][1] >= 1 << 45


# PyTorch: test_mempool_context
def test_a_pool_of_ones_own_gives_back_what_it_held():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    outside = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    addresses = [segment["address"] for segment in pool.snapshot()]
    assert any(at <= inside.data_ptr() < at + 20 * MIB for at in addresses)
    assert inside.data_ptr() != outside.data_ptr()
    assert pool.use_count() >= 1


# PyTorch: test_caching_allocator_record_stream_oom
def test_memory_that_another_stream_uses_is_waited_for_before_there_is_too_little():
    torch.cuda.empty_cache()
    third = int(torch.cuda.mem_get_info()[0] * 0.3)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        noise = torch.zeros(1, device="cuda")
    for _ in range(6):
        tensor = torch.empty(third, dtype=torch.int8, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            noise += tensor[0]
            tensor.record_stream(side)
        del tensor
    side.synchronize()
    assert torch.cuda.max_memory_allocated() > third
