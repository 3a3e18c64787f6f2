"""Lightning's Trainer with our callback: the same weights, and the module as it was."""

import functools
import importlib
import logging
import unittest
import warnings

from native.support import ferry, mlp, same, torch
from native.test_planning import planning

try:
    lightning = importlib.import_module("lightning.pytorch")
except ImportError:
    try:
        lightning = importlib.import_module("pytorch_lightning")
    except ImportError as error:
        raise unittest.SkipTest(f"no lightning: {error}")

from torch_ferry.lightning import OffloadCallback

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module=r"lightning\.|pytorch_lightning\.")

CARD = "rtx4090"
SAMPLES, BATCH, WIDTH = 22, 4, 128  # the last of six batches is smaller


@functools.cache
def module_of(library=lightning):
    """What a user writes."""

    class Module(library.LightningModule):
        def __init__(self, fail_at=None):
            super().__init__()
            self.body, _ = mlp(WIDTH)
            self.head = torch.nn.Linear(WIDTH, 8)
            self.fail_at, self.losses, self.seen = fail_at, [], []

        def loss(self, x):
            return self.head(self.body(x)).pow(2).mean()

        def training_step(self, x, number):
            if number == self.fail_at:
                raise ValueError("no such sample")
            loss = self.loss(x)
            self.log("loss", loss)
            self.losses.append(loss.detach())
            return loss

        def validation_step(self, x, number):
            with torch.enable_grad():  # so that there is something to be saved
                self.seen.append(self.loss(x).detach())

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    return Module


class Adversaries(lightning.LightningModule):
    """Which optimizes by itself: two forwards and backwards to a step."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.one, self.other = mlp(WIDTH)[0], mlp(WIDTH)[0]
        self.losses = self.seen = ()

    def training_step(self, x, number):
        for part, optimizer in zip((self.one, self.other), self.optimizers()):
            self.manual_backward(part(x).pow(2).mean())
            optimizer.step()
            optimizer.zero_grad()

    def configure_optimizers(self):
        return [torch.optim.AdamW(part.parameters()) for part in (self.one, self.other)]


def trained(*callbacks, module=None, library=lightning, **options):
    """Losses of training and validation, and the weights."""
    module = module or module_of(library)()
    torch.manual_seed(4)
    data = torch.utils.data.DataLoader(torch.randn(SAMPLES, WIDTH), batch_size=BATCH)
    trainer = library.Trainer(**{
        "accelerator": "cpu", "max_epochs": 1, "logger": False, "enable_checkpointing": False,
        "enable_progress_bar": False, "enable_model_summary": False, "val_check_interval": 2,
        "accumulate_grad_batches": 2, "callbacks": [*callbacks], **options})
    torch.manual_seed(5)
    trainer.fit(module, data, data)
    return [*module.losses, *module.seen, *(each.detach() for each in module.parameters())]


def runs(offload):
    return {int(line.split('"run":')[1].split(",")[0])
            for line in offload.take_decisions().splitlines() if '"run":' in line}


class Callback(unittest.TestCase):
    def test_weights_are_the_same_bits_and_each_training_step_is_a_run(self):
        for more in ({}, {"precision": "bf16-mixed"}):
            with self.subTest(**more):
                callback = OffloadCallback(window="4KiB", decisions=True)
                self.assertTrue(same(trained(**more), trained(callback, **more)))
                self.assertGreater(callback.offload.statistics().offloaded_count, 0)
                self.assertTrue(callback.offload.empty())
                self.assertEqual({*range(1, 7)}, runs(callback.offload))

    def test_serves_the_other_package_of_the_name(self):
        try:
            other = importlib.import_module("pytorch_lightning")
        except ImportError as error:
            self.skipTest(f"no pytorch_lightning: {error}")
        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
        callback = OffloadCallback()
        self.assertTrue(same(trained(), trained(callback, library=other)))
        self.assertGreater(callback.offload.statistics().offloaded_count, 0)

    def test_a_module_that_optimizes_by_itself(self):
        options = {"accumulate_grad_batches": 1, "val_check_interval": None,
                   "limit_val_batches": 0}
        callback = OffloadCallback(decisions=True)
        self.assertTrue(same(trained(module=Adversaries(), **options),
                             trained(callback, module=Adversaries(), **options)))
        self.assertEqual(12, len(runs(callback.offload)))
        with self.assertRaisesRegex(ValueError, "Adversaries has automatic_optimization=False"):
            trained(OffloadCallback(card=CARD), module=Adversaries(), **options)

    def test_a_fit_that_raised_leaves_a_callback_that_serves_the_next(self):
        callback = OffloadCallback()
        with self.assertRaisesRegex(ValueError, "no such sample"):
            trained(callback, module=module_of()(fail_at=2))
        before, module = callback.offload.statistics().packs, module_of()()
        trained(callback, module=module)
        self.assertGreater(callback.offload.statistics().packs, before)
        self.assertNotIn("training_step", vars(module.trainer.strategy))
        self.assertFalse(module.head._forward_hooks or module.head._forward_pre_hooks)

    def test_what_the_head_saves_stays(self):
        packs = []
        for keep_head in (False, True):
            callback = OffloadCallback(keep_head=keep_head)
            trained(callback)
            packs.append(callback.offload.statistics().packs)
        self.assertEqual(2 * 6, packs[0] - packs[1])  # its input and its weight


@unittest.skipUnless(planning._PROGRAM.exists(), "the program ferry was not built")
class Plans(unittest.TestCase):
    def test_of_the_modules_own_step(self):
        for more in ({}, {"precision": "bf16-mixed"}):
            with self.subTest(**more):
                callback, module = OffloadCallback(card=CARD, policies="offload"), module_of()()
                self.assertTrue(same(trained(**more), trained(callback, module=module, **more)))
                counts = callback.offload.statistics()
                self.assertEqual((1, "offload"), (counts.other_forwards, callback.plan.policy))
                two = callback.plan.row["offloaded_bytes"]  # forwards, to an optimizer's step
                self.assertGreater(counts.offloaded_bytes, 5 * two // 2)
                self.assertTrue(callback.offload.empty())
                self.assertNotIn("log", vars(module))

    def test_that_is_made_while_it_trains(self):
        callback = OffloadCallback(plan="auto", card=CARD, budget="1GiB", policies="offload",
                                   min_bytes=0)
        self.assertTrue(same(trained(max_epochs=2), trained(callback, max_epochs=2)))
        self.assertRegex(str(callback), r"^10 forwards, plan offload,.* \[4, 128\].*\n"
                                        r"2 forwards, plan offload,.* \[2, 128\][^\n]*$")

    def test_another_shape_may_be_refused(self):
        with self.assertRaisesRegex(ferry.PlanMismatch, r'(?s)\[4, 128\].*other_shapes="offload"'):
            trained(OffloadCallback(card=CARD, policies="offload", other_shapes="raise"))


if __name__ == "__main__":
    unittest.main()
