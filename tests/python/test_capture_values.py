"""What torch_ferry.capture knows of values, and what it says of those that it does not know."""

import unittest

from captures import WHY_NOT, captured, ferry_capture, forward_of, module, torch


@unittest.skipIf(torch is None, WHY_NOT)
class Values(unittest.TestCase):
    """What a step asks for: known, assumed, or refused with its line."""

    def test_what_follows_from_the_script_is_known(self):
        def forward(m, x):
            places = torch.arange(4)
            if (places[1:] - places[:-1] == 1).all() and int(places.sum()) == 6:
                x = x * 2
            kept = (places % 2 == 0).nonzero().squeeze(1)
            y = (m.w * x)[kept]
            return y[torch.tensor([True, False])] * float(places.tolist()[3])
        program = captured(module(forward, ("w", (4, 4))))
        ops = [line["op"] for line in forward_of(program, "op")]
        self.assertEqual(ops.count("aten.mul"), 3)
        index = [line for line in forward_of(program, "op") if line["op"] == "aten.index"]
        self.assertEqual([line["out"][0]["shape"] for line in index], [[2, 4], [1, 4]])

    def test_a_value_that_was_written_over_is_known_no_more(self):
        def forward(m, x):
            places = torch.zeros(4, 4)
            row = places[0]
            places.copy_(x * m.w.detach())
            return m.w * (2 if row.sum() > 0 else 3)
        with self.assertRaisesRegex(Exception, "asks for a tensor's value"):
            captured(module(forward, ("w", (4, 4))))

    def test_a_value_that_is_not_known_is_refused_with_the_users_line(self):
        def forward(m, x):
            y = x * m.w
            return y * 2 if y.mean() > 0 else y
        line = forward.__code__.co_firstlineno + 2
        with self.assertRaisesRegex(Exception, rf"values.py:{line} asks for .*--assume"):
            captured(module(forward, ("w", (4, 4))))

    def test_zeros_are_assumed_where_that_is_said(self):
        def forward(m, x):
            y = x * m.w
            return y * 2 if y.mean() > 0 else y.exp()
        program = ferry_capture.capture(module(forward, ("w", (4, 4))), (torch.zeros(4, 4),),
                                        lambda y: y.sum(), assume=["zeros"])
        self.assertIn("aten.exp", [line["op"] for line in forward_of(program, "op")])
        line = forward.__code__.co_firstlineno + 2
        self.assertRegex(program.about["assumed zeros"], rf"test_capture_values.py:{line}$")

    def test_what_pytorch_draws_until_it_fits_fits_at_once(self):
        # Since 2.12 it asks whether it does, within both of its ways to draw.
        for bounds in ({}, {"a": 1.5, "b": 4.0}):
            with ferry_capture.fake_mode() as mode:
                drawn = torch.nn.init.trunc_normal_(torch.empty(4, 4), **bounds)
                self.assertEqual((drawn.shape, mode.stated), ((4, 4), {}))
                with self.assertRaisesRegex(Exception, "asks for a tensor's value"):
                    drawn.any().item()

    def test_experts_get_their_share_where_that_is_said(self):
        def forward(m, x):  # 12 tokens, 4 experts, 2 for each token
            scores = x @ m.w
            _, picked = scores.topk(2, -1)
            parts = []
            for expert in range(4):
                token, _ = torch.where(picked == expert)
                parts.append((x[token] @ m.w).sum())
            return sum(parts)
        made = module(forward, ("w", (8, 4)))
        with self.assertRaisesRegex(Exception, "--assume balanced"):
            captured(made, (12, 8))
        program = ferry_capture.capture(made, (torch.zeros(12, 8),), lambda y: y,
                                        assume=["balanced"])
        gathered = [line["out"][0]["shape"] for line in forward_of(program, "op")
                    if line["op"] == "aten.index"]
        self.assertEqual(gathered, [[6, 8]] * 4)
        self.assertEqual(list(program.about), ["assumed balanced", "device", "torch"])


if __name__ == "__main__":
    unittest.main()
