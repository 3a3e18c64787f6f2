"""What goes wrong reaches the user as it is, leaves nothing behind, and the next step works."""

import contextlib
import gc
import subprocess
import sys
import tempfile
import unittest

from native.support import ferry, torch


def leaf():
    return torch.linspace(-1, 1, 4096).requires_grad_()


class Raising(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, error):
        ctx.save_for_backward(x)
        ctx.error = error
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.saved_tensors
        raise ctx.error


class Errors(unittest.TestCase):
    def check(self, offload, run, kind, text):
        """`run` raises that; then nothing is left, and a step works."""
        with self.assertRaisesRegex(kind, text):
            run()
        gc.collect()
        self.assertTrue(offload.empty())
        x = leaf()
        with offload:
            loss = x.exp().sin().sum()
        loss.backward()
        want = leaf()
        want.exp().sin().sum().backward()
        self.assertTrue(torch.equal(x.grad, want.grad))

    def test_in_forward(self):
        offload = ferry.offload(window=0)

        def run():
            with offload:
                y = leaf().exp().sin()
                raise KeyError(f"in forward {y.dim()}")
        self.check(offload, run, KeyError, "in forward 1")

    def test_in_backward_by_a_function_a_hook_and_ctrl_c(self):
        for error in (ValueError("told to"), KeyboardInterrupt("told to")):
            offload = ferry.offload(window=0)

            def run():
                with offload:
                    x = leaf()
                    # Two ways back: the one that did not run is dropped with the failed task.
                    loss = Raising.apply(x.exp().sin(), error).sum() + x.cos().exp().sum()
                loss.backward()
            self.check(offload, run, type(error), "told to")

    def test_what_is_left_of_a_failed_backward_goes_with_its_graph(self):
        # LibTorch leaves what was ready in the thread's queue until the next backward.
        offload, x = ferry.offload(window=0), leaf()
        with offload:
            loss = x.cos().exp().sum() + Raising.apply(x.exp().sin(), ValueError()).sum()
        with self.assertRaises(ValueError):
            loss.backward()
        del loss
        self.assertTrue(offload.empty())

    def test_a_tensor_written_in_place_after_it_was_saved(self):
        offload = ferry.offload(window="1GiB")

        def run():
            with offload:
                y = leaf().exp()
                z = y.sin()
                y.mul_(2)
            z.sum().backward()
        self.check(offload, run, RuntimeError, "modified by an inplace operation")

    def test_what_a_full_disk_has_no_room_for_is_kept(self):
        def gradient(hooks):
            x = leaf()
            with hooks:
                y = x.exp().sin().cos().sum()
            y.backward()
            return x.grad
        with tempfile.TemporaryDirectory() as folder:
            offload = ferry.offload(disk=folder, disk_bytes_max="16KiB", window=0,
                                    keep_when_full=True)
            self.assertTrue(torch.equal(gradient(offload), gradient(contextlib.nullcontext())))
            statistics = offload.statistics()
            self.assertGreater(statistics.offloaded_count, 0)
            self.assertGreater(statistics.full, 0)
            self.assertIn("for want of room on the host", str(statistics))
            self.assertTrue(offload.empty())

    def test_a_full_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            offload = ferry.offload(disk=folder, disk_bytes_max="8KiB", window=0)
            x = leaf()
            with self.assertRaises(ferry.DiskFull) as caught, offload:
                x.exp().sin().sum().backward()
            self.assertIsInstance(caught.exception, OSError)
            self.assertIn("8192", str(caught.exception))
            gc.collect()
            self.assertTrue(offload.empty())


def python(script):
    # One thread: OpenMP's do not survive a fork either.
    begin = ("import warnings, torch, torch_ferry as ferry\ntorch.set_num_threads(1)\n"
             "warnings.filterwarnings('ignore', 'this offload saves no memory')\n")
    return subprocess.run([sys.executable, "-c", begin + script], capture_output=True, text=True,
                          timeout=120)


class Ends(unittest.TestCase):
    """The interpreter's end, and its children."""

    def check(self, script, said="", code=0):
        done = python(script)
        self.assertEqual((done.returncode, done.stderr, done.stdout.strip()), (code, "", said))

    def test_exit_with_work_in_flight(self):
        for options in ("window=0", "window='1GiB'", "disk='/tmp', window=0"):
            with self.subTest(options=options):
                self.check(f"""
offload = ferry.offload({options})
offload.__enter__()
x = torch.randn(1 << 20, requires_grad=True)
loss = x
for _ in range(20):
    loss = loss.sin()
print("left")
""", "left")

    def test_a_loaders_workers_with_an_offloader_alive(self):
        self.check("""
from torch.utils.data import DataLoader
offload = ferry.offload(window=0)
x = torch.randn(1 << 16, requires_grad=True)
def step(scale):
    with offload:
        loss = (x * scale.sum()).sin().exp().sum()
    loss.backward()
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        y = torch.ones(2048, requires_grad=True)
        y.sin().sum().backward()  # what a worker saves is its own
        return y.grad
step(torch.ones(1))
with offload:
    for batch in DataLoader(Data(), num_workers=2, multiprocessing_context="fork"):
        step(batch)
print(offload.empty(), offload.statistics().offloaded_count)
""", "True 18")

    def test_a_child_that_uses_what_its_parent_made(self):
        self.check("""
import os, gc
offload = ferry.offload(window=0)
x = torch.randn(1 << 16, requires_grad=True)
offload.__enter__()
loss = x.sin().exp().sum()
if os.fork() == 0:
    y = torch.ones(4096, requires_grad=True)
    y.sin().sum().backward()  # under the parent's guard: nobody sees it
    for use in (offload.__enter__, offload.statistics, loss.backward):
        try:
            use()
        except RuntimeError as error:
            assert "fork" in str(error), error
        else:
            os._exit(1)
    with ferry.no_offload(), ferry.offload(window=0) as own:
        z = y.exp().sin().sum()
    z.backward()
    assert own.empty() and own.statistics().packs == 2
    del loss, offload, own
    gc.collect()
    os._exit(0)
assert os.wait()[1] == 0
offload.__exit__(None, None, None)
loss.backward()
print(offload.empty())
""", "True")


if __name__ == "__main__":
    unittest.main()
