"""ferry.offload in a Python process: the same bits, less memory, and nothing left."""

import contextlib
import json
import pathlib
import tempfile
import unittest

from native.support import MODELS, ferry, mlp, same, step, torch


class Bits(unittest.TestCase):
    """Gradients are those without, to the bit, however tensors travel."""

    def check(self, options, around_backward=False):
        for name, make in MODELS.items():
            with self.subTest(model=name):
                model, x = make()
                step(model, x, contextlib.nullcontext())
                want = [step(model, x, contextlib.nullcontext()) for _ in range(3)]
                offload = ferry.offload(**options)
                got = [step(model, x, offload, around_backward) for _ in range(3)]
                for one, other in zip(want, got):
                    self.assertTrue(same(one, other))
                self.assertTrue(offload.empty())
                counts = offload.statistics()
                self.assertGreater(counts.offloaded_count, 0)
                self.assertGreater(counts.packs, counts.offloaded_count)

    def test_with_defaults(self):
        self.check({})

    def test_with_no_window_and_no_prefetch(self):
        self.check({"window": 0, "prefetch": 0, "hold": 0})

    def test_with_a_small_window_around_backward(self):
        self.check({"window": "64KiB", "prefetch": "64KiB"}, around_backward=True)

    def test_on_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            self.check({"disk": folder, "window": 0})


class Memory(unittest.TestCase):
    def test_what_is_offloaded_leaves_its_storage(self):
        # What the graph alone refers to is gone while the host has it: its storage is freed once
        # the copy is done, which with no window is before the next tensor is packed.
        from torch.multiprocessing.reductions import StorageWeakRef

        def forward(x, guard):
            storages = []
            with guard:
                for _ in range(8):
                    x = x.sin()
                    storages.append(StorageWeakRef(x.untyped_storage()))
            return x.sum(), [storage.expired() for storage in storages[:-2]]
        x = torch.randn(1024, 64, requires_grad=True)
        with tempfile.TemporaryDirectory() as folder:
            kept, gone = forward(x, contextlib.nullcontext())
            self.assertFalse(any(gone))
            loss, gone = forward(x, ferry.offload(disk=folder, window=0, prefetch=0))
            self.assertTrue(all(gone))
            want, = torch.autograd.grad(kept, x)
            self.assertTrue(torch.equal(want, *torch.autograd.grad(loss, x)))


class Kept(unittest.TestCase):
    def test_parameters_are_kept_by_themselves_and_views_of_them(self):
        # A Linear saves a view of its weight: neither it nor the weight moves.
        model, x = mlp()
        offload = ferry.offload(window=0, min_bytes=0)
        step(model, x, offload)
        everything = ferry.offload(window=0, min_bytes=0, parameters=False)
        step(model, x, everything)
        weights = sum(p.numel() * 4 for p in model[3:].parameters() if p.dim() == 2)
        self.assertEqual(everything.statistics().offloaded_bytes
                         - offload.statistics().offloaded_bytes, weights)

    def test_frozen_parameters_and_later_ones_are_kept(self):
        # The base of an adapter does not require grad; another module's parameters come later.
        x = torch.randn(64, 64, requires_grad=True)
        offload = ferry.offload(window=0, min_bytes=0)
        for _ in range(2):
            frozen = torch.nn.Parameter(torch.randn(64, 64), requires_grad=False)
            with offload:
                (x * frozen).sum().backward()
        self.assertEqual(offload.statistics().offloaded_count, 0)
        self.assertEqual(offload.statistics().kept, 2)

    def test_a_module_and_a_tensor_can_be_exempt(self):
        x = torch.randn(64, 64, requires_grad=True)
        offload = ferry.offload(window=0)
        offload.exempt(x)
        with offload:
            x.sin().sum().backward()
        self.assertEqual(offload.statistics().kept, 1)

    def test_no_offload_leaves_a_region_alone(self):
        x = torch.randn(64, 64, requires_grad=True)
        with ferry.offload(window=0) as offload:
            y = x.exp()
            with ferry.no_offload():
                z = y.sin().cos()
            loss = z.exp().sum()
        loss.backward()
        self.assertEqual(offload.statistics().packs, 2)


class Options(unittest.TestCase):
    def test_sizes_are_numbers_or_text(self):
        from torch_ferry.offload import size
        self.assertEqual([size(5), size("7"), size("2KiB"), size("1.5 GiB"), size("0.1KiB"),
                          size("2GB")], [5, 7, 2048, 3 << 29, 102, 2 * 10 ** 9])
        for wrong in ("64Mb", "-1", "much", "1e3"):
            with self.assertRaisesRegex(ValueError, "expected a size in bytes.*MiB"):
                size(wrong)

    def test_what_makes_no_sense_is_refused_with_its_name(self):
        with self.assertRaisesRegex(ValueError, "window_tensors should be at least 1 but is 0"):
            ferry.offload(window_tensors=0)
        with self.assertRaisesRegex(ValueError, "prefetch_tensors should be at least 0 but is -1"):
            ferry.offload(prefetch_tensors=-1)
        with self.assertRaisesRegex(TypeError, "'wnidow'"):
            ferry.offload(wnidow=1)

    def test_old_names_work_and_say_the_new_ones(self):
        model, x = mlp()
        with self.assertWarnsRegex(FutureWarning, "log= is called decisions= now"):
            offload = ferry.offload(log=True, window=0)
        step(model, x, offload)
        with self.assertWarnsRegex(FutureWarning, "take_log is called take_decisions now"):
            self.assertIn('"decision":"pack"', offload.take_log())
        with self.assertRaisesRegex(TypeError, "log is the old name of decisions"):
            ferry.offload(log=True, decisions=True)
        with self.assertWarnsRegex(FutureWarning, "run is called execute now"), \
                self.assertRaisesRegex(TypeError, "expected a plan"):
            ferry.run(None)

    def test_the_decisions_and_the_trace_are_written(self):
        model, x = mlp()
        offload = ferry.offload(decisions=True, trace=True, window=0)
        step(model, x, offload)
        lines = [json.loads(line) for line in offload.take_decisions().splitlines()]
        self.assertEqual(lines[0]["ferry"], "decisions")
        packed = [line["bytes"] for line in lines[1:] if line["decision"] == "pack"]
        self.assertEqual(sum(packed), offload.statistics().offloaded_bytes)
        self.assertGreater(sum(packed), 0)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "trace.json")
            offload.write_trace(path)
            names = {event.get("name") for event in json.loads(path.read_text())["traceEvents"]}
        self.assertIn("aten::addmm", names)

    def test_statistics_print_themselves(self):
        model, x = mlp()
        offload = ferry.offload()
        step(model, x, offload)
        self.assertRegex(str(offload.statistics()), r"\d+ tensors saved: \d+ copied to the host")
        self.assertEqual(offload.step_statistics().packs, offload.statistics().packs)


if __name__ == "__main__":
    unittest.main()
