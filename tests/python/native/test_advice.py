"""What a plan says where nothing fits, and what statistics say of the memory that was saved."""

import re
import tempfile
import unittest
import warnings

from native.support import ferry, mlp, torch
from native.test_planning import planning, wide
from torch import nn
from torch_ferry import batches

CLASSES = 8000


def language_model(samples):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Embedding(CLASSES, 64), nn.Linear(64, 256), nn.GELU(),
                          nn.Linear(256, 64), nn.Linear(64, CLASSES))
    return model, torch.randint(0, CLASSES, (samples, 256))


def loss_of(output):
    wanted = torch.zeros(output.shape[0] * output.shape[1], dtype=torch.long)
    return nn.functional.cross_entropy(output.flatten(0, 1), wanted)


def planned(samples, loss_fn=loss_of, **options):
    model, tokens = language_model(samples)
    return ferry.plan(model, tokens, loss_fn, card="rtx4090", **options)


class Batches(unittest.TestCase):
    def test_the_largest_is_found_by_few_tries(self):
        for batch, budget, need in ((64, 700, lambda size: 100 + 10 * size),
                                    (64, 101, lambda size: 100 + size),
                                    (1000, 500, lambda size: 100 + 10 * size + size % 7),
                                    (300, 5000, lambda size: size * size // 3)):
            tried = []

            def least(size):
                tried.append(size)
                return need(size), need(size) <= budget
            want = max(size for size in range(1, batch) if need(size) <= budget)
            self.assertEqual((want, need(want)),
                             batches.largest(least, batch, need(batch), budget))
            self.assertLessEqual(len(tried), 14)
            self.assertEqual(len(tried), len(set(tried)))

    def test_one_sample_may_be_too_much(self):
        self.assertEqual((0, 9), batches.largest(lambda size: (9 * size, False), 4, 36, 8))

    def test_what_has_the_batch_is_cut_and_nothing_else(self):
        given = {"ids": torch.arange(12).view(4, 3), "mask": torch.ones(3, 3),
                 "scale": torch.ones(()), "more": [torch.zeros(4, requires_grad=True)]}
        self.assertEqual(4, batches.batch_of(given))
        cut = batches.cut(given, 4, 2)
        self.assertTrue(torch.equal(cut["ids"], given["ids"][:2]))
        self.assertEqual(6 * 8, cut["ids"].untyped_storage().nbytes())
        self.assertIs(cut["mask"], given["mask"])
        self.assertTrue(cut["more"][0].requires_grad)
        self.assertEqual((2,), tuple(cut["more"][0].shape))
        self.assertIsNone(batches.batch_of([torch.ones(())]))


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class NothingFits(unittest.TestCase):
    def refused(self, samples, budget, loss_fn=loss_of):
        with self.assertRaises(ferry.DoesNotFit) as refused:
            planned(samples, loss_fn, budget=budget)
        return str(refused.exception)

    def test_labels_that_the_loss_reads_from_outside_have_the_batch_as_well(self):
        labels = torch.zeros(12, 256, dtype=torch.long)

        def loss(output, scale=torch.ones(12)):
            return nn.functional.cross_entropy(output.flatten(0, 1), labels.flatten()) * scale.sum()
        budget = planned(5, policies="offload").row["least_bytes"]
        self.assertRegex(self.refused(12, budget, loss),
                         r"\nThe largest batch that fits is ([5-9]|1[01]) of these 12")

    def test_a_step_that_is_another_with_fewer_samples_is_told(self):
        def loss(output):
            return loss_of(output) if output.shape[0] == 12 else 1 // 0
        self.assertRegex(self.refused(12, "100MiB", loss),
                         r"\nThe largest batch was not found: with fewer samples the step raised "
                         "ZeroDivisionError: ")

    def test_the_largest_batch_fits_and_one_more_does_not(self):
        budget = planned(5, policies="offload").row["least_bytes"]
        said = re.search(r"\nThe largest batch that fits is (\d+) of these 12: it needs [\d.]+ MiB",
                         self.refused(12, budget))
        size = int(said[1])
        self.assertGreaterEqual(size, 5)
        self.assertTrue(planned(size, budget=budget).row["fits"])
        with self.assertRaises(ferry.DoesNotFit):
            planned(size + 1, budget=budget)

    def test_a_batch_that_only_the_best_plan_fits_counts(self):
        least = planned(3, policies="offload").row["least_bytes"]
        self.assertIn("\nThe largest batch that fits is 3 of these 5: it needs ",
                      self.refused(5, min(least - 1, 119 << 20)))

    def test_one_sample_that_is_too_much_says_so(self):
        self.assertRegex(self.refused(3, "1MiB"),
                         r"\nNo smaller batch fits: one sample needs [\d.]+ MiB\.$")

    def test_the_loss_is_named_and_what_to_write_is_pythons(self):
        said = self.refused(12, planned(12, policies="offload").row["least_bytes"] // 2)
        self.assertRegex(said, r"^Sequential on rtx4090: Nothing fits in ")
        self.assertIn("\nWhat would help, each planned:\n  the loss in 8 slices (yours is 3072 x 8000 "
                      "at once): needs ", said)
        self.assertNotIn("--", said)
        with self.assertRaises(ferry.DoesNotFit) as refused:
            ferry.plan(*mlp(1024, 12), lambda output: output.sum(), card="rtx4090",
                       budget="150MiB", optimizer_implementation="foreach")
        self.assertNotIn("--", str(refused.exception))
        for way in ("in backward (torch_ferry.optimizer(…, in_backward=True)): needs ",
                    'optimizer="sgd", which has no '):
            self.assertIn(way, str(refused.exception))

    def test_a_table_says_what_is_needed_first_and_what_to_write_last(self):
        step = *wide(), lambda output: output.sum()
        keep = ferry.plan(*step, card="rtx4090", policies="keep")
        self.assertNotIn("torch_ferry.execute", str(keep))
        budget = keep.row["least_bytes"] * 9 // 10
        lines = str(ferry.plan(*step, card="rtx4090", budget=budget)).splitlines()
        self.assertEqual(["policy", "needs", "allocated"], lines[2].split()[:3])
        self.assertEqual("with torch_ferry.execute(plan): loss = …; then loss.backward()",
                         lines[-1])


class MemoryThatWasSaved(unittest.TestCase):
    def step(self, **options):
        model, _ = mlp(512, 8)
        x = torch.randn(4096, 512)
        offload = ferry.offload(**options)
        with offload:
            loss = model(x).sum()
        loss.backward()
        return offload.statistics()

    def test_with_a_disk_the_process_has_less_than_it_would_have(self):
        with tempfile.TemporaryDirectory() as folder:
            counts = self.step(disk=folder, window="8MiB")
        self.assertGreater(counts.offloaded_bytes, 100 << 20)
        self.assertGreater(counts.peak_bytes, 0)
        self.assertGreater(counts.peak_without_bytes, counts.offloaded_bytes)
        self.assertGreater(counts.peak_without_bytes, counts.peak_bytes + (20 << 20))
        self.assertRegex(str(counts), r"^peak memory [\d.]+ MiB, without moving at least [\d.]+ "
                                      r"MiB; \d+ tensors saved: ")

    def test_on_a_cpu_without_one_it_says_that_nothing_is_saved(self):
        with self.assertWarnsRegex(UserWarning, "saves no memory: .* disk="):
            counts = self.step()
        self.assertEqual((0, 0), (counts.peak_bytes, counts.peak_without_bytes))
        self.assertRegex(str(counts), r"^no memory saved \(on the CPU, without a disk\); \d+ ten")
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("error")
            self.step(disk=folder)
            self.step(min_bytes="1GB")  # nothing moves


if __name__ == "__main__":
    unittest.main()
