"""What torch_ferry.capture takes for a GPU's doing, on a machine without one."""

import copy
import unittest
from unittest import mock

from captures import WHY_NOT, captured, ferry_capture, forward_of, module, torch

if torch:
    from torch import nn


@unittest.skipIf(torch is None, WHY_NOT)
class OnAGpu(unittest.TestCase):
    """What a GPU's kernels save, where there is none."""

    def attention(self, query, key, dtype="bfloat16", card=None, width=16, **options):
        """The node of attention over a query and keys of these heads."""
        def forward(m, x):
            rows = (x * m.w).to(getattr(torch, dtype))
            def heads(count):
                return rows[:, :count * width].view(1, 8, count, width).transpose(1, 2)
            return nn.functional.scaled_dot_product_attention(heads(query), heads(key), heads(key),
                                                              **options)
        of = module(forward, ("w", (8, 4 * width)))
        program = captured(of, (8, 4 * width), lambda y: y.float().sum(), capability=card)
        node = next(line for line in forward_of(program, "node") if "Attention" in line["node"])
        return program, node["node"]

    def test_grouped_queries_stay_grouped(self):
        program, node = self.attention(4, 2, is_causal=True, enable_gqa=True)
        self.assertEqual(node, "ScaledDotProductFlashAttentionBackward0")
        self.assertEqual([line["op"] for line in forward_of(program, "op") if "repeat" in line["op"]
                          or "index_select" in line["op"] or "clone" in line["op"]], [])
        whole, _ = self.attention(4, 4, is_causal=True)
        def flops(made):
            return [line["flops"] for line in forward_of(made, "op") if "attention" in line["op"]]
        self.assertEqual(flops(program), flops(whole))  # every query meets a key all the same

    def test_causal_attention_counts_what_its_mask_leaves(self):
        def flops(program):
            return [line["flops"] for code in program.codes for line in code.statements
                    if "_scaled_dot_product" in line.get("op", "")]
        whole, causal = self.attention(4, 4)[0], self.attention(4, 4, is_causal=True)[0]
        self.assertEqual(len(flops(whole)), 2)  # forward, and a body
        # 36 of the 8 x 8 pairs are left.
        self.assertEqual(flops(causal), [each * 36 // 64 for each in flops(whole)])

    def test_an_operator_of_several_kernels(self):
        mask = torch.ones(8, 8, dtype=torch.bool)
        def forward(m, x):
            return (x * m.w).masked_fill(mask, 0).softmax(-1)
        program = captured(module(forward, ("w", (8, 8))), (8, 8), lambda y: (y * y).sum())
        costs = {line["op"]: line for code in program.codes for line in code.statements
                 if "op" in line}
        fill = costs["aten.masked_fill"]
        self.assertEqual((fill["kernels"], fill["read"], fill["written"]), (2, 576, 512))
        back = costs["aten._softmax_backward_data"]
        self.assertEqual((back["kernels"], back["read"], back["written"]), (2, 1024, 512))
        self.assertNotIn("kernels", costs["aten._softmax"])

    def test_a_formula_of_pytorchs_puts_into_its_zeros_in_place(self):
        """As it does but for tensors of a subclass, which fake ones are."""
        def forward(m, x):
            places = torch.arange(3, device=x.device)
            rows = places[:, None].expand(3, 8)
            return (m.w[places] + m.w.gather(0, rows) + m.w.index_select(0, places)
                    + m.w.topk(3, 0).values).sum() + x.sum()
        program = captured(module(forward, ("w", (8, 8))), (8, 8))
        bodies = {code.signature["name"]: [line for line in code.statements if "op" in line]
                  for code in program.codes if code.kind == "body"}
        for node, name, kernels in (("IndexBackward0", "_index_put_impl_", 6),
                                    ("GatherBackward0", "scatter_add_", 1),
                                    ("IndexSelectBackward0", "index_add_", 1),
                                    ("TopkBackward0", "scatter_", 1)):
            zeros, put = bodies[node]
            self.assertEqual(put["op"], f"aten.{name}")
            self.assertIn("zeros", zeros["op"])
            self.assertEqual((put["out"], put["writes"], put.get("kernels", 1)), ([], [0], kernels))

    def test_a_function_of_pythons_makes_what_it_says(self):
        class Own(torch.autograd.Function):
            @staticmethod
            def forward(ctx, w, places):
                ctx.save_for_backward(places)
                return w.index_select(0, places)

            @staticmethod
            def backward(ctx, gradient):
                return gradient.new_zeros(8, 8).index_add(0, ctx.saved_tensors[0], gradient), None
        program = captured(module(lambda m, x: Own.apply(m.w, torch.arange(3, device=x.device)),
                                  ("w", (8, 8))), (8, 8))
        self.assertIn("aten.index_add", [line.get("op") for code in program.codes
                                         for line in code.statements])

    def test_a_vocabulary_that_no_row_begins_well_with(self):
        def products(vocabulary):
            program = captured(module(lambda m, x: x.bfloat16() @ m.w.bfloat16().t(),
                                      ("w", (vocabulary, 64))), (16, 64),
                               lambda y: y.float().sum())
            return [(line["matmul"], line.get("aligned", 16)) for code in program.codes
                    for line in code.statements if line.get("op") == "aten.mm"]
        forward, *backward = products(1001)
        self.assertEqual(forward, ([1, 16, 1001, 64], 2))  # the result's rows
        self.assertEqual({aligned for _, aligned in products(1008)}, {16})
        self.assertTrue(backward)

    def test_the_attention_kernel_is_picked_by_pytorchs_rules(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        flash, efficient = ("ScaledDotProductFlashAttentionBackward0",
                            "ScaledDotProductEfficientAttentionBackward0")
        mask = torch.ones(8, 8, dtype=torch.bool)
        self.assertEqual(self.attention(4, 4)[1], flash)
        self.assertEqual(self.attention(4, 4, "float16")[1], flash)
        self.assertEqual(self.attention(4, 4, "float32")[1], efficient)
        self.assertEqual(self.attention(4, 4, attn_mask=mask)[1], efficient)
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            self.assertEqual(self.attention(4, 4)[1], efficient)
        with sdpa_kernel(SDPBackend.MATH), self.assertRaises(StopIteration):
            self.attention(4, 4)  # math is made of many operators

    def test_older_cards_have_fewer_attention_kernels(self):
        for card in ((7, 0), (7, 5)):
            for dtype in ("float16", "float32"):
                self.assertEqual(self.attention(4, 4, dtype, card=card)[1],
                                 "ScaledDotProductEfficientAttentionBackward0")
            with self.assertRaises(StopIteration):
                self.attention(4, 4, "bfloat16", card=card)  # math is made of many operators

    def test_a_hopper_prefers_cudnns_attention(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        names = {name: f"ScaledDotProduct{name}AttentionBackward0"
                 for name in ("Cudnn", "Flash", "Efficient")}
        mask = torch.ones(8, 8, dtype=torch.bool)

        def picked(*arguments, card=(9, 0), **options):
            return self.attention(*arguments, card=card, **options)[1]

        for card in ((9, 0), (10, 0)):
            self.assertEqual(picked(4, 4, card=card), names["Cudnn"])
        for card in (None, (8, 0), (8, 9), (12, 0)):
            self.assertEqual(picked(4, 4, card=card), names["Flash"])
        self.assertEqual(picked(4, 2, enable_gqa=True), names["Cudnn"])
        self.assertEqual(picked(4, 4, attn_mask=mask), names["Cudnn"])
        self.assertEqual(picked(4, 4, "float32"), names["Efficient"])
        self.assertEqual(picked(4, 4, width=136), names["Flash"])
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            self.assertEqual(picked(4, 4), names["Flash"])
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            self.assertEqual(picked(4, 4, card=(8, 0)), names["Cudnn"])
        with mock.patch.dict("os.environ", TORCH_CUDNN_SDPA_DEPRIORITIZED="1"):
            self.assertEqual(picked(4, 4), names["Flash"])
        torch.use_deterministic_algorithms(True)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.assertEqual(picked(4, 4), names["Flash"])

    def test_what_cudnns_attention_saves_is_as_seen_on_an_h100(self):
        program, _ = self.attention(4, 4, card=(9, 0), is_causal=True)
        made = next(line for line in forward_of(program, "op") if "attention" in line["op"])
        self.assertEqual(made["op"], "aten._scaled_dot_product_cudnn_attention")
        self.assertEqual([(out["dtype"], out["shape"]) for out in made["out"]],
                         [("bf16", [1, 4, 8, 16]), ("f32", [1, 4, 8, 1]), ("i64", []), ("i64", [])])

    def test_autocast_casts_before_the_kernel_is_picked(self):
        def forward(m, x):  # as a rotary embedding does, which leaves values as they are
            with torch.autocast("cuda", dtype=torch.bfloat16):
                rows = (x * m.w).view(1, 4, 8, 16)
                return nn.functional.scaled_dot_product_attention(rows, rows, rows.bfloat16())
        program = captured(module(forward, ("w", (8, 64))), (8, 64), lambda y: y.float().sum())
        self.assertIn("ScaledDotProductFlashAttentionBackward0",
                      [line["node"] for line in forward_of(program, "node")])

    def test_attention_within_a_function_of_pytorchs(self):
        class Own(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.MultiheadAttention(32, 2)

            def forward(self, x):
                return self.inner(x, x, x, need_weights=False)[0]
        self.assertIn("ScaledDotProductEfficientAttentionBackward0",
                      [line["node"] for line in forward_of(captured(Own(), (5, 2, 32)), "node")])

    def test_a_mask_is_widened_to_a_multiple_of_8_columns(self):
        def pads(tokens):
            mask = torch.ones(tokens, tokens, dtype=torch.bool)
            def forward(m, x):
                heads = (x * m.w).bfloat16().view(1, tokens, 4, 16).transpose(1, 2)
                return nn.functional.scaled_dot_product_attention(heads, heads, heads,
                                                                  attn_mask=mask)
            program = captured(module(forward, ("w", (tokens, 64))), (tokens, 64),
                               lambda y: y.float().sum())
            return [line["out"][0]["shape"] for line in forward_of(program, "op")
                    if line["op"] == "aten.constant_pad_nd"]
        self.assertEqual([pads(8), pads(12)], [[], [[12, 16]]])

    def test_autocast_casts_each_weight_once(self):
        made = nn.Linear(4, 4, bias=False)

        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = made

            def forward(self, x):
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    return self.linear(self.linear(x))
        program = captured(Twice())
        casts = [line["out"][0]["dtype"] for line in forward_of(program, "op")
                 if line["op"] == "aten._to_copy"]
        self.assertEqual(casts, ["bf16", "bf16"])  # x and, once, the weight
        self.assertEqual([line["out"][0]["dtype"] for line in forward_of(program, "op")
                          if line["op"] == "aten.mm"], ["bf16", "bf16"])

    def test_autocast_around_a_capture(self):
        made = nn.Linear(4, 4, bias=False)
        with ferry_capture.cuda(), torch.autocast("cuda", dtype=torch.float16):
            program = captured(made)
        self.assertEqual([line["out"][0]["dtype"] for line in forward_of(program, "op")
                          if line["op"] == "aten.mm"], ["f16"])

    def test_autocast_that_pytorch_disabled_is_refused(self):
        import warnings
        if torch.cuda.is_available():
            return  # it casts
        with warnings.catch_warnings(), \
                self.assertRaisesRegex(ferry_capture.CaptureError, "casts nothing"):
            warnings.simplefilter("ignore")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                captured(nn.Linear(4, 4))
        self.assertFalse(torch.cuda.is_available())

    def test_a_model_that_goes_to_cuda_and_bfloat16_by_itself(self):
        with ferry_capture.cuda(), ferry_capture.fake_mode():
            made = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
            made[1].weight = made[0].weight
            made = made.to(torch.bfloat16).cuda()
            x = torch.zeros(3, 4, device="cuda").bfloat16()
        program = ferry_capture.capture(made, (x,), lambda y: y.float().sum())
        self.assertEqual([line["dtype"] for line in program.globals], ["bf16"] * 3)
        self.assertEqual(program.globals[1]["alias"], 0)  # still tied

    def test_flops_of_experts_side_by_side(self):
        def forward(m, x):
            ends = torch.tensor([3, 8], dtype=torch.int32, device=x.device)
            return nn.functional.grouped_mm(x.bfloat16(), m.w.bfloat16(), offs=ends)
        program = captured(module(forward, ("w", (2, 16, 32))), (8, 16), lambda y: y.float().sum())
        products = [line["flops"] for code in program.codes for line in code.statements
                    if line.get("op") == "aten._grouped_mm"]
        self.assertEqual(products, [2 * 8 * 16 * 32] * 2)  # and of the weights' gradients

    def test_layers_that_are_copies_of_one(self):
        with ferry_capture.cuda(), ferry_capture.fake_mode():
            layer = nn.Linear(4, 4, bias=False)
            made = nn.Sequential(copy.deepcopy(layer), copy.deepcopy(layer)).cuda()
            x = torch.zeros(3, 4, device="cuda")
        program = ferry_capture.capture(made, (x,), lambda y: y.sum())
        self.assertEqual([line["op"] for line in forward_of(program, "op")],
                         ["aten.mm", "aten.mm", "aten.sum"])

    def test_statistics_of_norms_are_float32(self):
        made = nn.LayerNorm(8).to(torch.bfloat16)
        program = ferry_capture.capture(made, (torch.zeros(2, 8, dtype=torch.bfloat16),),
                                        lambda y: y.float().sum())
        norm = next(line for line in forward_of(program, "op")
                    if line["op"] == "aten.native_layer_norm")
        self.assertEqual([out["dtype"] for out in norm["out"]], ["bf16", "f32", "f32"])

    def test_a_compiled_region_runs_as_it_is_written_and_is_named(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.compile(nn.Linear(4, 4))

            def forward(self, x):
                return torch.compile(scaled)(self.linear(x))

        def scaled(x):
            return x.exp() * 2
        program = captured(Net())
        self.assertIn("aten.exp", [line["op"] for line in forward_of(program, "op")])
        self.assertRegex(program.about["compiled"], "^Linear, .*scaled: as written")
        self.assertNotIn("compiled", captured(nn.Linear(4, 4)).about)

    def test_cudnns_recurrent_layers_are_refused_and_pytorchs_are_not(self):
        class Tagger(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.layers = getattr(nn, kind)(4, 8)

            def forward(self, x):
                return self.layers(x)[0]
        for kind in ("LSTM", "GRU", "RNN"):
            with self.assertRaisesRegex(Exception, "test_capture_cuda.py:.* by cuDNN"):
                captured(Tagger(kind), (3, 2, 4))
            with torch.backends.cudnn.flags(enabled=False):
                program = captured(Tagger(kind), (3, 2, 4))
            cells = [line for line in forward_of(program, "op") if "_cell" in line["op"]]
            self.assertEqual(len(cells), 0 if kind == "RNN" else 3)
            # A GRU's cell keeps five numbers for each of its outputs (RNN.cu).
            if kind == "GRU":
                self.assertEqual(cells[0]["out"][1]["shape"], [2, 40])

    def test_what_is_on_the_host_takes_no_memory_of_the_device(self):
        def forward(m, x):
            return m.w * x * torch.arange(4, device="cpu").float().to(x.device)
        program = captured(module(forward, ("w", (4, 4))))
        self.assertEqual([line["op"] for line in forward_of(program, "op")],
                         ["aten.mul", "aten._to_copy", "aten.mul", "aten.sum"])


if __name__ == "__main__":
    unittest.main()
