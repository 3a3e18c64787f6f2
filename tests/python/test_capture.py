"""What torch_ferry.capture writes, on modules small enough to say what is right by hand."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from captures import (WHY_NOT, body_of, captured, forward_of, is_since,  # noqa: E402
                      module, node_of, saved_of, torch)
if torch:
    from torch import nn

try:
    import transformers
    NO_MODELS = None
except ImportError as error:
    transformers, NO_MODELS = None, f"no transformers: {error}"

from torch_ferry import capture as ferry_capture  # noqa: E402
from torch_ferry.check import check  # noqa: E402
from torch_ferry.program import load  # noqa: E402
from torch_ferry.summary import summarize  # noqa: E402


@unittest.skipIf(torch is None, WHY_NOT)
class Capture(unittest.TestCase):
    def test_tiny_mlp(self):
        made = nn.Sequential(nn.Linear(4, 8, bias=False), nn.ReLU(), nn.Linear(8, 2, bias=False))
        program = captured(made, (3, 4))
        self.assertEqual([(line["kind"], line["name"]) for line in program.globals],
                         [("parameter", "0.weight"), ("parameter", "2.weight"),
                          ("input", "input.0")])
        f32 = {"dtype": "f32"}
        self.assertEqual(program.main.statements, [{"call": 1, "in": [], "out": [3, 4]},
                                                   {"backward": [3]}])
        self.assertEqual(forward_of(program), [
            {"enter": "0"},
            {"node": "TBackward0", "id": 0, "in": [0], "out": [3], "body": 2},
            {"node": "MmBackward0", "id": 1, "in": [3], "out": [4], "saved": [2], "body": 3},
            {"view": 5, "of": 0, **f32, "shape": [4, 8], "strides": [1, 4]},
            {"op": "aten.mm", "in": [2, 5], "out": [{"slot": 6, **f32, "shape": [3, 8]}],
             "flops": 192, "read": 176, "written": 96, "matmul": [1, 3, 8, 4]},
            {"leave": "0"},
            {"enter": "1"},
            {"node": "ReluBackward0", "id": 2, "in": [4], "out": [7], "body": 4},
            {"op": "aten.relu", "in": [6], "out": [{"slot": 8, **f32, "shape": [3, 8]}],
             "read": 96, "written": 96},
            {"save": 2, "slots": [8]},
            {"leave": "1"},
            {"free": [6]},
            {"enter": "2"},
            {"node": "TBackward0", "id": 3, "in": [1], "out": [9], "body": 5},
            {"view": 10, "of": 1, **f32, "shape": [8, 2], "strides": [1, 8]},
            {"node": "MmBackward0", "id": 4, "in": [7, 9], "out": [11], "saved": [10, 8],
             "body": 6},
            {"op": "aten.mm", "in": [8, 10], "out": [{"slot": 12, **f32, "shape": [3, 2]}],
             "flops": 96, "read": 160, "written": 24, "matmul": [1, 3, 2, 8],
             "aligned": 8},
            {"leave": "2"},
            {"free": [8]},
            {"node": "SumBackward0", "id": 5, "in": [11], "out": [13], "body": 7},
            {"op": "aten.sum", "in": [12], "out": [{"slot": 14, **f32, "shape": []}],
             "read": 24, "written": 4},
            {"free": [12]},
        ])
        self.assertEqual(body_of(program, "ReluBackward0").statements, [
            {"op": "aten.threshold_backward", "in": [3, 4],
             "out": [{"slot": 5, **f32, "shape": [3, 8]}], "read": 192, "written": 96}])

    def test_a_view_is_a_window_on_its_storage_and_appears_where_it_is_used(self):
        program = captured(module(lambda m, x: ((x * m.w)[1:, ::2].t() * 2).exp(),
                                  ("w", (4, 4))))
        made = next(line for line in forward_of(program, "op") if line["op"] == "aten.mul")
        views = forward_of(program, "view")
        self.assertEqual(len(views), 1)  # slicing twice and transposing leaves one window
        self.assertEqual(views[0]["of"], made["out"][0]["slot"])
        self.assertEqual([views[0][key] for key in ("shape", "strides", "offset")],
                         [[2, 3], [2, 4], 4])

    def test_an_in_place_op_writes_its_argument_and_makes_no_storage(self):
        program = captured(module(lambda m, x: (x * m.w).add_(1).exp(), ("w", (4, 4))))
        made, added = [line for line in forward_of(program, "op")][:2]
        self.assertEqual(added["op"], "aten.add_")
        self.assertEqual(added["in"], [made["out"][0]["slot"]])
        self.assertEqual(added["writes"], [0])
        self.assertEqual(added["out"], [])

    def test_writing_a_view_in_place(self):
        def forward(m, x):
            y = x * m.w
            y[0].mul_(m.w[1])
            return y.exp()
        program = captured(module(forward, ("w", (4, 4))))
        self.assertEqual(len(saved_of(program, "CopySlices")), 2)
        self.assertTrue(body_of(program, "CopySlices").statements)

    def test_one_storage_saved_twice(self):
        def forward(m, x):
            y = x * m.w
            return y * y
        program = captured(module(forward, ("w", (4, 4))))
        first, second = [line for line in forward_of(program, "node")
                         if line["node"] == "MulBackward0"]
        self.assertEqual(len(second["saved"]), 2)
        self.assertEqual(second["saved"][0], second["saved"][1])
        self.assertEqual(second["in"], first["out"] * 2)
        body = program.codes[second["body"]]
        self.assertEqual(len(set(body.slots("saved"))), 2)
        self.assertEqual(len(summarize(program).activations), 2)  # x, y

    def test_tied_weights_share_a_storage_and_an_edge_target(self):
        made = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
        made[1].weight = made[0].weight
        program = captured(made)
        self.assertEqual(program.globals[1]["name"], "1.weight")
        self.assertEqual(program.globals[1]["alias"], 0)
        edges = [line["in"] for line in forward_of(program, "node")
                 if line["node"] == "TBackward0"]
        self.assertEqual(edges, [[0], [0]])

    def test_a_branch_without_gradient_has_ops_but_no_nodes(self):
        def forward(m, x):
            with torch.no_grad():
                scale = (x * m.w).exp()
            return m.w * scale
        program = captured(module(forward, ("w", (4, 4))))
        names = [line["node"] for line in forward_of(program, "node")]
        self.assertEqual(names, ["MulBackward0", "SumBackward0"])
        self.assertEqual(node_of(program, "MulBackward0")["in"], [0])
        self.assertEqual(len(saved_of(program, "MulBackward0")), 1)
        body = body_of(program, "MulBackward0")
        self.assertEqual(len(body.slots("results")), 1)

    def test_a_branch_that_dies_in_forward_frees_its_edges(self):
        def forward(m, x):
            unused = (x * m.w).exp()
            del unused
            return m.w * 2
        program = captured(module(forward, ("w", (4, 4))))
        dead = node_of(program, "ExpBackward0")
        freed = sum((line["free"] for line in forward_of(program, "free")), [])
        self.assertIn(dead["out"][0], freed)
        self.assertIn(dead["in"][0], freed)
        self.assertEqual(body_of(program, "ExpBackward0").statements, [])

    def test_a_saved_tensor_lives_no_longer_than_the_model_keeps_it(self):
        program = captured(module(lambda m, x: (x * m.w).exp().sin(), ("w", (4, 4))))
        saved = saved_of(program, "SinBackward0")[0]
        freed = sum((line["free"] for line in forward_of(program, "free")), [])
        self.assertIn(saved, freed)

    def test_what_the_model_keeps_outlives_forward(self):
        def forward(m, x):
            m.cache = x * 2
            return m.cache * m.w
        program = captured(module(forward, ("w", (4, 4))))
        kept = forward_of(program, "op")[0]["out"][0]["slot"]
        self.assertIn(kept, program.codes[1].slots("results"))

    def test_sums_of_gradients_are_in_no_body(self):
        def forward(m, x):
            y = x * m.w
            return y.exp() + y.sin()
        program = captured(module(forward, ("w", (4, 4))))
        ops = [line["op"] for code in program.codes[2:] for line in code.statements
               if "op" in line]
        self.assertNotIn("aten.add", ops)
        self.assertNotIn("aten.add_", ops)

    def test_what_no_replay_runs_again(self):
        def forward(m, x):
            running = torch.zeros(4), torch.ones(4)
            y = nn.functional.batch_norm(x * m.w, *running, training=False)
            y = nn.functional.batch_norm(y, *running, training=True)
            return nn.functional.batch_norm(y, None, None, training=True).exp()
        program = captured(module(forward, ("w", (4, 4))))
        once = [line["op"] for line in program.codes[1].statements if line.get("once")]
        self.assertEqual(once, ["aten.native_batch_norm"])

    def test_a_custom_function(self):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y, x + y

            @staticmethod
            def backward(ctx, first, second):
                x, y = ctx.saved_tensors
                return first * y + second, None
        program = captured(module(lambda m, x: Double.apply(m.w, x)[1].exp(), ("w", (4, 4))))
        self.assertEqual(saved_of(program, "DoubleBackward"), [0, 1])
        body = body_of(program, "DoubleBackward")
        self.assertEqual(len(body.slots("arguments")), 2)
        self.assertEqual(len(body.slots("results")), 1)  # x needs none: it has no edge

    def test_backward_that_keeps_tensors_elsewhere_is_refused(self):
        class Hidden(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.kept = x.exp()
                return ctx.kept.clone()

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.kept
        with self.assertRaisesRegex(Exception, "save_for_backward"):
            captured(module(lambda m, x: Hidden.apply(m.w * x), ("w", (4, 4))))

    def test_checkpoints_of_pytorchs_are_segments(self):
        from torch.utils.checkpoint import checkpoint
        for reentrant in (False, True):
            def forward(m, x):
                made = checkpoint(lambda y: (y * m.w).exp().sin(), x * m.w, use_reentrant=reentrant)
                return made * 2
            program = captured(module(forward, ("w", (4, 4))))
            calls = forward_of(program, "enter")
            self.assertEqual([call["enter"] for call in calls], ["checkpoint.0"])
            made = next(line for line in forward_of(program, "op"))["out"][0]["slot"]
            node = node_of(program, "MulBackward0")["out"][0]
            self.assertEqual(calls[0]["arguments"], [made, node])
            self.assertEqual(program.about["checkpoints"], "torch.utils.checkpoint")
            body = [list(line)[0] for line in forward_of(program)]
            self.assertLess(body.index("enter"), body.index("leave"))

    def test_a_reentrant_checkpoint_of_no_gradient_gives_none(self):
        from torch.utils.checkpoint import checkpoint

        def forward(m, x):  # as PyTorch, which warns: what the function closes over is not seen
            return checkpoint(lambda y: y * m.w, x, use_reentrant=True) + m.w
        program = captured(module(forward, ("w", (4, 4))))
        self.assertEqual([line["node"] for line in forward_of(program, "node")],
                         ["AddBackward0", "SumBackward0"])
        self.assertEqual(forward_of(program, "enter"), [])

    def test_a_checkpoint_that_others_wrote_is_refused(self):
        class Checkpoint(torch.autograd.Function):
            @staticmethod
            def forward(ctx, function, x):
                ctx.function = function
                ctx.save_for_backward(x)
                with torch.no_grad():
                    return function(x)

            @staticmethod
            def backward(ctx, gradient):
                x = ctx.saved_tensors[0].detach().requires_grad_()
                with torch.enable_grad():
                    torch.autograd.backward(ctx.function(x), gradient)
                return None, x.grad
        with self.assertRaisesRegex(Exception, r"test_capture.py:\d+ .*a checkpoint that is not"):
            captured(module(lambda m, x: Checkpoint.apply(lambda y: y.exp().sin(), x * m.w),
                            ("w", (4, 4))))

    def test_a_gradient_of_a_gradient_is_refused(self):
        def forward(m, x):
            y = (x * m.w).exp().sum()
            return torch.autograd.grad(y, m.w, create_graph=True)[0]
        with self.assertRaisesRegex(ferry_capture.CaptureError, "a gradient of a gradient"):
            captured(module(forward, ("w", (4, 4))))

    def test_what_a_node_unpacked_is_gone_when_gradients_are_summed(self):
        def forward(m, x):
            return torch.addmm(m.bias, x, m.w)
        program = captured(module(forward, ("bias", (4,)), ("w", (4, 4))))
        body = body_of(program, "AddmmBackward0")
        last = [line for line in body.statements if "op" in line][-1]
        self.assertEqual(last["op"], "aten.sum")  # of the gradient, to the bias's shape
        before = body.statements[:body.statements.index(last)]
        freed = [slot for line in before for slot in line.get("free", [])]
        self.assertLessEqual(set(body.slots("saved")), set(freed))

    def test_factories_and_constants(self):
        constant = torch.ones(4)

        def forward(m, x):
            return m.w * torch.arange(4.0) * constant * torch.tensor(2.0)
        program = captured(module(forward, ("w", (4, 4))))
        arange = next(line for line in forward_of(program, "op") if "arange" in line["op"])
        self.assertEqual(arange["in"], [])
        self.assertIn(("buffer", "constant.0"),
                      [(line["kind"], line["name"]) for line in program.globals])

    def test_attention_is_the_gpus(self):
        def forward(m, x):
            heads = (x.to(torch.bfloat16) * m.w.to(torch.bfloat16)).view(1, 2, 8, 16)
            return nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        program = captured(module(forward, ("w", (16, 16))), (16, 16),
                           lambda y: y.float().sum())
        self.assertEqual(len(saved_of(program, "ScaledDotProductFlashAttentionBackward0")), 7)

    def test_equal_layers_share_their_bodies(self):
        def layers(count):
            return captured(nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in range(count)]))
        self.assertEqual(len(layers(3).codes), len(layers(9).codes))

    def test_the_module_stays_as_it_is(self):
        made = nn.Linear(4, 4)
        before = made.weight.clone()
        captured(made)
        self.assertTrue(torch.equal(made.weight, before))
        self.assertIsNone(made.weight.grad)

    def test_two_captures_are_the_same_bytes(self):
        def text():
            return captured(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))).text()
        self.assertEqual(text(), text())

    def test_a_loss_without_gradient_is_refused(self):
        with self.assertRaisesRegex(ferry_capture.CaptureError, "gradient"):
            captured(nn.Linear(4, 4), loss=lambda y: y.detach().sum())
        with self.assertRaisesRegex(ferry_capture.CaptureError, "one element"):
            captured(nn.Linear(4, 4), loss=lambda y: y)


STEP = """
import torch
def step():
    return torch.nn.Linear(1 << 20, 1 << 20), (torch.zeros(2, 1 << 20),), lambda y: y.sum()
def sized(batch=1, tokens=2):
    return torch.nn.Linear(4, 4), (torch.zeros(batch, tokens, 4),), lambda y: y.sum()
def broken():
    return torch.nn.Linear(4, 4), (torch.zeros(3, 5),), lambda y: y.sum()
"""


@unittest.skipIf(torch is None, WHY_NOT)
class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "mine.py").write_text(STEP)
        self.path = self.folder / "out.jsonl"

    def run_it(self, *arguments):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, "-m", "torch_ferry.capture", *arguments],
                              cwd=self.folder, env=environment, capture_output=True, text=True)

    def refused(self, *arguments):
        result = self.run_it(*arguments, "-o", str(self.path))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual([each.name for each in self.folder.iterdir()
                          if each.suffix != ".py" and each.name != "__pycache__"], [])

    def test_two_processes_write_the_same_bytes_and_allocate_nothing(self):
        texts = []
        for seed in ("1", "2"):
            with mock.patch.dict(os.environ, PYTHONHASHSEED=seed):
                result = self.run_it("mine:step", "-o", str(self.path))  # 4 TiB of weights
            self.assertEqual(result.returncode, 0, result.stderr)
            texts.append(self.path.read_bytes())
        self.assertEqual(*texts)
        check(load(self.path))

    def test_batch_and_tokens_are_the_functions_that_takes_them(self):
        result = self.run_it("mine:sized", "--batch", "3", "--tokens", "5", "-o", str(self.path))
        self.assertEqual(result.returncode, 0, result.stderr)
        program = check(load(self.path))
        self.assertEqual(program.globals[-1]["shape"], [3, 5, 4])
        self.assertEqual(program.about["batch"], "3")

    def test_bad_input_leaves_no_file(self):
        self.refused("mine:broken")
        self.refused("mine:absent")
        self.refused("mine:step", "--batch", "3")
        self.refused("mine:sized", "--dtype", "f16")
        self.refused("mine:sized", "--assume", "luck")
        self.refused("mine:sized", "--", "argument")
        self.refused("nonsense")

    def test_a_file_that_cannot_be_is_told_before_the_work(self):
        (self.folder / "says.py").write_text("print('it ran')")
        os.mkfifo(self.folder / "pipe")
        for path, said in (("absent/out.jsonl", "cannot create a file beside absent/out.jsonl: "
                                                "No such file or directory"),
                           (".", "cannot write .: not a regular file"),
                           ("pipe", "cannot write pipe: not a regular file")):
            with self.subTest(path):
                result = self.run_it("says.py", "-o", path)
                self.assertEqual(result.returncode, 7, result.stderr)
                self.assertEqual(result.stderr, f"torch_ferry.capture: {said}\n")
                self.assertNotIn("it ran", result.stdout)


# A preset → since which torch a part of its lines is another one than in the shipped file, and in
# how many lines it is.
OTHERWISE_SINCE = {
    # A linear layer's result has its batch's dimensions by _unsafe_view, which is no view.
    "vit-b16": ("2.15", '"ViewBackward0"', '"UnsafeViewBackward0"', 6 * 12 + 2),
    # The gradient of topk begins with zeros like what came in.
    "mixtral-block": ("2.12", '"aten.zeros","in":[]', '"aten.new_zeros","in":[16]', 1),
}


@unittest.skipIf(torch is None, WHY_NOT)
class Presets(unittest.TestCase):
    def capture(self, preset, **options):
        name, *step, about = ferry_capture.build(preset, **options)
        return ferry_capture.capture(*step, name=name, about=about)

    @unittest.skipIf(transformers is None, NO_MODELS)
    def test_gpt2(self):
        program = self.capture("gpt2")
        summary = summarize(program)
        self.assertEqual(summary.saved_tensors, 361)
        self.assertEqual(round(summary.saved_bytes / 2**30, 2), 5.50)
        self.is_the_shipped_file("gpt2", program)

    @unittest.skipIf(transformers is None, NO_MODELS)
    def test_gpt2_with_dropout_saves_25_masks_more(self):
        self.assertEqual(summarize(self.capture("gpt2", dropout=0.1)).saved_tensors, 386)

    @unittest.skipIf(transformers is None, NO_MODELS)
    def test_llama3_8b(self):
        program = self.capture("llama3-8b")
        summary = summarize(program)
        self.assertEqual(summary.saved_tensors, 1293)
        self.assertEqual(round(summary.saved_bytes / 2**30, 1), 53.2)
        self.is_the_shipped_file("llama3-8b", program)

    def test_unet(self):
        program = self.capture("unet")
        summary = summarize(program)
        self.assertEqual(summary.saved_tensors, 224)
        self.assertEqual(round(summary.saved_bytes / 2**30, 2), 1.41)
        self.is_the_shipped_file("unet", program)

    @unittest.skipIf(transformers is None, NO_MODELS)
    def test_the_other_presets(self):
        for preset, saved in (("resnet50", 481), ("vit-b16", 373), ("mixtral-block", 64),
                              ("llama3-8b-lora", 154)):
            program = self.capture(preset)
            self.assertEqual((preset, summarize(program).saved_tensors), (preset, saved))
            self.is_the_shipped_file(preset, program)

    @unittest.skipIf(transformers is None, NO_MODELS)
    def test_only_adapters_have_gradients_where_the_rest_is_frozen(self):
        program = self.capture("llama3-8b-lora", tokens=256)
        trained = [line["name"] for line in program.globals if line.get("grad")]
        self.assertEqual(len(trained), 4 * 2 * 2)
        self.assertTrue(all(".down." in name or ".up." in name for name in trained))

    def test_unet_takes_images_that_its_levels_can_halve(self):
        with self.assertRaisesRegex(ValueError, "multiple of 32; got 100"):
            self.capture("unet", tokens=100)
        with self.assertRaisesRegex(ValueError, "no dropout"):
            self.capture("unet", dropout=0.1)

    def is_the_shipped_file(self, name, program):
        """But for what another version of torch than the file's calls otherwise."""
        shipped = load(ROOT / "scenarios" / "programs" / f"{name}.jsonl")
        made, here = (each.about.get("transformers") for each in (shipped, program))
        if made != here:  # another version may well save other things
            self.skipTest(f"no transformers: the shipped {name} is of {made}, here is {here}")
        self.assertEqual(program.about["torch"], torch.__version__.split("+")[0])
        shipped.about["torch"] = program.about["torch"]
        version, was, becomes, count = OTHERWISE_SINCE.get(name, ("0", "", "", 0))
        expected, found, others = shipped.text().splitlines(), program.text().splitlines(), 0
        if count and is_since(version):
            for at, line in enumerate(found[:len(expected)]):
                if line != expected[at] and line == expected[at].replace(was, becomes):
                    expected[at], others = line, others + 1
            self.assertEqual(others, count)
        self.assertEqual(expected, found)


if __name__ == "__main__":
    unittest.main()
