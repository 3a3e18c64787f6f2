"""A capture changes nothing that was there before it: tensors of any kind in any place, gradients,
flags, hooks and random generators are the same afterwards, also where the step raises."""

import contextlib
import pathlib
import random
import sys
import tempfile
import unittest
from unittest import mock

from captures import WHY_NOT, ferry_capture, torch

if torch:
    from drawn_worlds import COUNTER, DTYPES, GENERATOR, WRITES, Raised, World, bytes_of, name_of
    from torch_ferry import copies, recorder
    from torch_ferry import script as ferry_script

SEEDS = range(14)
# What a script, and a function that makes a model, do to what was there before them.
CHANGES = """
import random
import torch
import drawn_worlds
from torch import nn

def make():
    torch.manual_seed(1)
    random.seed(2)
    drawn_worlds.GENERATOR.manual_seed(3)
    drawn_worlds.COUNTER.add_(4)
    drawn_worlds.COUNTER.numpy()[1] = 5
    return nn.Linear(4, 4), (torch.randn(2, 4),), lambda y: (y + drawn_worlds.COUNTER).sum()
"""
SCRIPT = CHANGES + """
net, (x,), loss = make()
loss(net(x)).backward()
"""


def devices():
    return ("cpu", "cuda") if torch.version.cuda else ("cpu",)


def changed(seed, ends_in=Raised if torch else None):
    """What of a drawn world a capture of its step changes; `ends_in`: what it may raise."""
    world = World(seed)
    before = world.state()
    with contextlib.suppress(ends_in):
        ferry_capture.capture(world.net, world.inputs, world.loss,
                              device=devices()[seed % len(devices())])
    return [(was, now) for was, now in zip(before, world.state()) if was != now]


@unittest.skipIf(torch is None, WHY_NOT)
class Untouched(unittest.TestCase):
    def test_whatever_a_step_writes_is_as_it_was(self):
        World.counts.clear()
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.assertEqual(changed(seed), [])
        counts = World.counts
        for write in WRITES:
            self.assertGreater(counts[write.__name__], 2, write)
        for place in ("buffer", "plain", "nested", "input", "global", "closure"):
            self.assertGreater(sum(counts[place, name_of(each)] for each in DTYPES), 5, place)
        for dtype in DTYPES:
            self.assertTrue(counts["buffer", name_of(dtype)] + counts["closure", name_of(dtype)])
        self.assertGreater(counts["raised"], 3)
        self.assertGreater(counts["finished"], 3)

    def test_each_of_what_holds_this_is_needed(self):
        without = (mock.patch.object(copies, "_copy", lambda tensor: tensor),
                   mock.patch.object(recorder, "Twins", lambda trace: contextlib.nullcontext()),
                   mock.patch("torch_ferry.untouched.untouched",
                              lambda *objects: contextlib.nullcontext()))
        for number, patch in enumerate(without):
            with self.subTest(number), patch:
                self.assertTrue(any(changed(seed, Exception) for seed in SEEDS))

    def test_a_weight_that_a_loss_alone_knows_is_a_parameter(self):
        weight, shift = torch.ones(4, requires_grad=True), torch.ones(4)
        for device in devices():  # autograd on "cuda" met a tensor of the CPU here
            program = ferry_capture.capture(torch.nn.Linear(4, 4), (torch.ones(2, 4),),
                                            lambda y: (y * weight + shift).sum(), device=device)
            found = {line["kind"]: line.get("grad") for line in program.globals
                     if line["name"].startswith("constant.")}
            self.assertEqual(found, {"parameter": True, "buffer": None})
            self.assertIsNone(weight.grad)

    def test_forms_that_run_a_users_code_to_make_the_model(self):
        def state():
            return [bytes_of(each) for each in (COUNTER, GENERATOR.get_state(),
                                                torch.get_rng_state())] + [random.getstate()]
        before = state()
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(sys, "path", [folder, *sys.path]):
            pathlib.Path(folder, "ferry_changes.py").write_text(CHANGES)
            pathlib.Path(folder, "script.py").write_text(SCRIPT)
            ferry_script.Script(str(pathlib.Path(folder, "script.py")), [], "cpu", ()).run()
            self.assertEqual(state(), before)
            _, *step, _ = ferry_capture.build("ferry_changes:make")
            self.assertEqual(state(), before)
            ferry_capture.capture(*step, device="cpu")
            self.assertEqual(state(), before)


if __name__ == "__main__":
    unittest.main()
