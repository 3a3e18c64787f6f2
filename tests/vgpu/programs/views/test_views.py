"""What the host does with page-locked memory past the operators. A test's name says its verdict:

    races       the access itself is reported
    unjudged    a view of the bytes was there while work on them was pending
    judged      neither, and nothing is said
"""

import ctypes
import io

import numpy as np
import torch

READS = {
    "tolist": lambda host: host.tolist(),
    "numpy": lambda host: host.numpy().sum(),
    "asarray": lambda host: np.asarray(host).sum(),
    "dlpack": lambda host: np.from_dlpack(host).sum(),
    "capsule": lambda host: torch.utils.dlpack.to_dlpack(host),
    "memoryview": lambda host: bytes(memoryview(host.numpy())[:1]),
    "element": lambda host: host.untyped_storage()[0],
    "save": lambda host: torch.save(host, io.BytesIO()),
}


def page_locked():
    return torch.zeros(64, pin_memory=True)


def on_device():
    return torch.full((64,), 5.0, device="cuda")


def pytest_generate_tests(metafunc):
    if "read" in metafunc.fixturenames:
        metafunc.parametrize("read", READS.values(), ids=READS)


def test_races_before_the_result_is_there(read):
    host = page_locked()
    host.copy_(on_device(), non_blocking=True)
    read(host)


def test_judged_once_the_result_is_there(read):
    host = page_locked()
    for _ in range(2):  # what was read by is gone when the next copy begins
        host.copy_(on_device(), non_blocking=True)
        torch.cuda.synchronize()
        read(host)


def test_races_where_a_storage_is_filled_under_a_copy():
    host = page_locked()
    there = host.to("cuda", non_blocking=True)
    host.untyped_storage().fill_(1)
    del there


def test_unjudged_array_that_is_older_than_the_copy():
    host = page_locked()
    view = host.numpy()
    host.copy_(on_device(), non_blocking=True)  # the copy
    assert view.shape == (64,)


def test_unjudged_array_that_is_filled_again():
    host = page_locked()
    view = host.numpy()
    there = []
    for step in range(3):
        view[:] = step
        there.append(host.to("cuda", non_blocking=True))
    torch.cuda.synchronize()


def test_unjudged_slice_of_an_array_that_is_gone():
    host = page_locked()
    part = host.numpy()[8:]
    host.copy_(on_device(), non_blocking=True)
    del part


def test_unjudged_memoryview():
    host = page_locked()
    part = memoryview(host.numpy())[8:]
    host.copy_(on_device(), non_blocking=True)
    del part


def test_unjudged_array_by_dlpack():
    host = page_locked().to(torch.complex64).pin_memory()
    view = np.from_dlpack(host)
    host.copy_(on_device(), non_blocking=True)
    del view


def test_unjudged_tensor_by_dlpack_of_a_type_that_numpy_has_not():
    host = torch.ones(64, 2, dtype=torch.bfloat16).pin_memory().t()
    same = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(host))
    assert (same.dtype, same.shape, same.stride()) == (host.dtype, host.shape, host.stride())
    assert torch.equal(same, host) and same.data_ptr() == host.data_ptr()
    host.t().copy_(torch.zeros(64, 2, device="cuda", dtype=torch.bfloat16), non_blocking=True)


def test_unjudged_array_that_is_asked_for_while_its_copy_to_the_device_is_pending():
    host = page_locked()
    there = host.to("cuda", non_blocking=True)
    host.numpy()
    del there


def test_unjudged_address_that_is_asked_for_while_a_copy_is_pending():
    host = page_locked()
    host.copy_(on_device(), non_blocking=True)
    (ctypes.c_float * 64).from_address(host.data_ptr())[0]


def test_unjudged_address_of_a_storage():
    host = page_locked()
    host.copy_(on_device(), non_blocking=True)
    assert host.untyped_storage().data_ptr()


def test_unjudged_address_of_a_storage_with_a_type():
    host = page_locked()
    there = host.to("cuda", non_blocking=True)
    assert torch.TypedStorage(wrap_storage=host.untyped_storage(), dtype=host.dtype).data_ptr()
    del there


def test_judged_file_of_what_a_copy_reads():
    host = page_locked()
    there = host.to("cuda", non_blocking=True)
    torch.save(host, io.BytesIO())
    del there


def test_judged_address_that_was_asked_for_before():
    host = page_locked()
    assert host.data_ptr() == host.untyped_storage().data_ptr()
    host.copy_(on_device(), non_blocking=True)


def test_judged_array_under_a_copy_that_waits():
    host = page_locked()
    view = host.numpy()
    host.copy_(on_device())
    assert view.sum() == 320
    view[:] = 1
    assert host.to("cuda").sum() == 64


def test_judged_array_of_other_bytes():
    host = page_locked()
    view = host[:32].numpy()
    host[32:].copy_(on_device()[32:], non_blocking=True)
    assert view.sum() == 0


def test_judged_array_of_memory_that_is_not_page_locked():
    host = torch.zeros(64)
    view = host.numpy()
    there = host.to("cuda", non_blocking=True)
    assert view.tolist() == host.tolist()
    del there


def test_judged_batches_of_a_loader():
    rows = [(np.full(8, i, np.float32), i % 2) for i in range(12)]
    loader = torch.utils.data.DataLoader(rows, batch_size=4, pin_memory=True)
    model = torch.nn.Linear(8, 2, device="cuda")
    for data, label in loader:
        data, label = data.to("cuda", non_blocking=True), label.to("cuda", non_blocking=True)
        loss = torch.nn.functional.cross_entropy(model(data), label)
        loss.backward()
        assert loss.detach().cpu().numpy() == loss.item()


OLD = None


def test_judged_array_without_a_copy():
    global OLD
    host = page_locked()
    OLD = (host, host.numpy())
    torch.ones(64).pin_memory().to("cuda", non_blocking=True)


def test_unjudged_array_of_an_earlier_test():
    OLD[0].copy_(on_device(), non_blocking=True)
