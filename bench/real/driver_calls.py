"""What the driver's calls for device memory take of the host, on a GPU.

    driver_calls.py [--held GIB ...] [--json FILE]

Measured are cudaMalloc and cudaFree by size; a cudaMalloc that fails; the calls of which expandable
segments are made, for each piece; and both while the device is busy. Each with so many GiB held
already (0, 20 and 60). Then what PyTorch's caching allocator takes for a segment made and given
back: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True measures that for its pages. The simulator's
figures are medians (kDriverTimes, sim/run/training/hardware_model.h). Exit code 7: there is no GPU.
"""

import argparse
import ctypes
import json
import pathlib
import statistics
import sys
import time

import torch

MIB = 1 << 20
SIZES = (2, 20, 64, 256, 1024, 4096)  # MiB
PIECES = ((2, 1), (2, 10), (20, 1), (20, 8), (20, 50))  # MiB, and how many in a row
PINNED_ON_DEVICE, READ_WRITE, OUT_OF_MEMORY = 1, 3, 2  # CUDA's numbers
size_t, u64 = ctypes.c_size_t, ctypes.c_uint64


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location),
                ("win32", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def loaded(name):
    """The library that torch has loaded."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if name in line:
            return ctypes.CDLL(line.split()[-1])
    sys.exit(f"driver_calls: torch has not loaded {name}")


class Calls:
    """Times by name, in ns."""

    def __init__(self):
        self.times = {}

    def timed(self, name, call, *args, expected=0):
        begin = time.perf_counter_ns()
        code = call(*args)
        self.times.setdefault(name, []).append(time.perf_counter_ns() - begin)
        if code != expected:
            sys.exit(f"driver_calls: {name}: CUDA returned {code}, expected {expected}")

    def rows(self):
        return {name: {"median_ns": int(statistics.median(times)), "least_ns": min(times),
                       "most_ns": max(times), "calls": len(times)}
                for name, times in self.times.items()}


def runtime(calls, held, cuda):
    for mib in SIZES:
        for _ in range(20):
            pointer = ctypes.c_void_p()
            calls.timed(f"{held}: cudaMalloc {mib} MiB", cuda.cudaMalloc, ctypes.byref(pointer),
                        size_t(mib * MIB))
            cuda.cudaMemset(pointer, 0, size_t(mib * MIB))
            torch.cuda.synchronize()
            calls.timed(f"{held}: cudaFree {mib} MiB", cuda.cudaFree, pointer)
    total = torch.cuda.get_device_properties(0).total_memory
    for _ in range(10):
        calls.timed(f"{held}: cudaMalloc that fails", cuda.cudaMalloc,
                    ctypes.byref(ctypes.c_void_p()), size_t(2 * total), expected=OUT_OF_MEMORY)
        cuda.cudaGetLastError()


def pages(calls, held, cuda, driver):
    """As an expandable segment does it: pieces made and mapped, access to all, each given back."""
    where = Location(PINNED_ON_DEVICE, 0)
    properties = Properties(type=PINNED_ON_DEVICE, location=where)
    access = Access(where, READ_WRITE)
    for mib, count in PIECES:
        bytes_, begin = mib * MIB, u64()
        name = f"{held}: {{}}, {count} x {mib} MiB".format
        driver.cuMemAddressReserve(ctypes.byref(begin), size_t(bytes_ * count), size_t(0), u64(0),
                                   u64(0))
        for _ in range(8):
            handles = [u64() for _ in range(count)]
            for number, handle in enumerate(handles):
                at = u64(begin.value + number * bytes_)
                calls.timed(name("cuMemCreate"), driver.cuMemCreate, ctypes.byref(handle),
                            size_t(bytes_), ctypes.byref(properties), u64(0))
                calls.timed(name("cuMemMap"), driver.cuMemMap, at, size_t(bytes_), size_t(0),
                            handle, u64(0))
            calls.timed(name("cuMemSetAccess of all"), driver.cuMemSetAccess, begin,
                        size_t(bytes_ * count), ctypes.byref(access), size_t(1))
            cuda.cudaMemset(ctypes.c_void_p(begin.value), 0, size_t(bytes_ * count))
            torch.cuda.synchronize()
            for number, handle in enumerate(handles):
                at = u64(begin.value + number * bytes_)
                calls.timed(name("cuMemUnmap"), driver.cuMemUnmap, at, size_t(bytes_))
                calls.timed(name("cuMemRelease"), driver.cuMemRelease, handle)
        driver.cuMemAddressFree(begin, size_t(bytes_ * count))


def allocator(calls, held):
    """PyTorch's own: a segment for one tensor, and given back."""
    for mib in SIZES:
        for _ in range(8):
            torch.cuda.empty_cache()
            torch.cuda.synchronize()
            kept = []
            calls.timed(f"{held}: torch.empty {mib} MiB, of nothing", lambda mib=mib: kept.append(
                torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")), expected=None)
            torch.cuda.synchronize()
            kept.clear()
            calls.timed(f"{held}: empty_cache, {mib} MiB", torch.cuda.empty_cache, expected=None)


def busy(calls, cuda):
    """What waits for the device."""
    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def work():
        for _ in range(4):
            matrix @ matrix

    for _ in range(10):
        pointer = ctypes.c_void_p()
        torch.cuda.synchronize()
        work()
        calls.timed("busy: the work alone", torch.cuda.synchronize, expected=None)
        work()
        calls.timed("busy: cudaMalloc", cuda.cudaMalloc, ctypes.byref(pointer), size_t(64 * MIB))
        torch.cuda.synchronize()
        work()
        calls.timed("busy: cudaFree", cuda.cudaFree, pointer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--held", type=int, nargs="+", default=[0, 20, 60], metavar="GIB")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    if not torch.cuda.is_available():
        print("driver_calls: no GPU", file=sys.stderr)
        return 7
    torch.zeros(1, device="cuda")
    cuda, driver, calls = loaded("libcudart.so"), ctypes.CDLL("libcuda.so.1"), Calls()
    for gib in given.held:
        held = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(gib)]
        runtime(calls, f"{gib} GiB held", cuda)
        pages(calls, f"{gib} GiB held", cuda, driver)
        allocator(calls, f"{gib} GiB held")
        del held
        torch.cuda.empty_cache()
    busy(calls, cuda)
    for name, row in calls.rows().items():
        print(f"{name:50} {row['median_ns'] / 1e3:10.1f} us, {row['least_ns'] / 1e3:.1f} to "
              f"{row['most_ns'] / 1e3:.1f}")
    if given.json:
        given.json.write_text(json.dumps({"schema": 1, "device": torch.cuda.get_device_name(),
                                          "calls": calls.rows()}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
