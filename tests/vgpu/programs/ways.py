"""What CUDA has and the CPU has not, computed on the virtual GPU: held to the CPU's own, or to the
formula. Run by `ferry run`, whose verdict is to be clean.
"""

import contextlib
import copy
import itertools
import unittest

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

FUSED = {torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW}
OPTIMIZERS = [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad,
              torch.optim.RMSprop, torch.optim.Adamax, torch.optim.NAdam, torch.optim.RAdam,
              torch.optim.Adadelta, torch.optim.Rprop, torch.optim.ASGD]


def twice(tensor):
    """The tensor as a leaf on the CPU, and on CUDA."""
    return [tensor.clone().to(device).requires_grad_() for device in ("cpu", "cuda")]


class Close(unittest.TestCase):
    def close(self, cuda, cpu, **tolerance):
        torch.testing.assert_close(cuda.cpu(), cpu, **tolerance)

    def equal(self, cuda, cpu):
        self.close(cuda, cpu, rtol=0, atol=0)


class Attention(Close):
    HALVES = (torch.float16, torch.bfloat16)
    KERNELS = ((SDPBackend.EFFICIENT_ATTENTION, (torch.float32,), "Efficient"),
               (SDPBackend.FLASH_ATTENTION, HALVES, "Flash"),
               (SDPBackend.CUDNN_ATTENTION, HALVES, "Cudnn"))

    def test_each_kernel_is_the_cpus(self):
        for kernel, dtypes, node in self.KERNELS:
            for dtype, causal in itertools.product(dtypes, (False, True)):
                torch.manual_seed(1)
                made = []
                inputs = [twice(torch.randn(2, 4, 16, 32, dtype=dtype)) for _ in range(3)]
                for q, k, v in zip(*inputs):
                    with sdpa_kernel(kernel) if q.is_cuda else contextlib.nullcontext():
                        attention = functional.scaled_dot_product_attention
                        made.append(attention(q, k, v, is_causal=causal))
                    made[-1].float().square().sum().backward()
                self.assertIn(node, type(made[1].grad_fn).__name__)
                self.equal(made[1], made[0])
                for cpu, cuda in inputs:
                    self.equal(cuda.grad, cpu.grad)

    def test_the_output_is_laid_out_as_the_query_with_dropout_as_without(self):
        by_heads = torch.randn(2, 3, 8, 8, dtype=torch.float16).cuda().requires_grad_()
        by_positions = torch.randn(2, 8, 3, 8, dtype=torch.float16).cuda().transpose(1, 2)
        for query in (by_heads, by_positions.requires_grad_()):
            for dropout in (0.0, 0.5):
                made = torch.ops.aten._scaled_dot_product_flash_attention(
                    query, query, query, dropout)[0]
                made.float().sum().backward()
                self.assertEqual(made.stride(), query.stride())
                self.assertEqual(query.grad.stride(), query.stride())

    def test_dropout_is_drawn_again_in_backward(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-2)):
            torch.manual_seed(2)
            q, k, v = inputs = [torch.randn(1, 1, 8, 8, dtype=dtype) for _ in range(3)]

            def attend(*tensors):
                torch.manual_seed(3)
                return functional.scaled_dot_product_attention(*tensors, dropout_p=0.5)
            # What is applied to the unit matrix are the weights themselves.
            dropped = attend(q.cuda(), k.cuda(), torch.eye(8, dtype=dtype).cuda()[None, None]).cpu()
            weights = (q.float() @ k.float().mT / 8**0.5).softmax(-1)
            self.assertIn(int((dropped == 0).sum()), range(10, 55))
            mask = (dropped != 0) * 2.0
            self.close(dropped.float(), weights * mask, rtol=tolerance, atol=tolerance)
            leaves = [tensor.cuda().requires_grad_() for tensor in inputs]
            attend(*leaves).float().square().sum().backward()
            q, k, v = formula = [tensor.float().requires_grad_() for tensor in inputs]
            weights = (q @ k.mT / 8**0.5).softmax(-1)
            (weights * mask @ v).square().sum().backward()
            for leaf, wanted in zip(leaves, formula):
                self.close(leaf.grad.float(), wanted.grad, rtol=tolerance, atol=4 * tolerance)

    def test_grouped_queries_with_dropout_are_as_with_repeated_keys(self):
        torch.manual_seed(5)
        q, k, v = (torch.randn(1, heads, 8, 8, dtype=torch.float16) for heads in (4, 2, 2))
        results = []
        for repeated in (False, True):
            leaves = query, *others = [tensor.cuda().requires_grad_() for tensor in (q, k, v)]
            keys = [each.repeat_interleave(2, 1) if repeated else each for each in others]
            torch.manual_seed(3)
            made = functional.scaled_dot_product_attention(query, *keys, dropout_p=0.5,
                                                           enable_gqa=not repeated)
            made.float().square().sum().backward()
            results.append([made, *(leaf.grad for leaf in leaves)])
        for one, other in zip(*results):
            self.close(one.float(), other.float().cpu(), rtol=2e-2, atol=2e-2)


class Networks(Close):
    def test_recurrent_networks(self):
        for kind in (torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU):
            for bias in (True, False):
                torch.manual_seed(4)
                plain = kind(6, 8, num_layers=2, bidirectional=True, batch_first=True, bias=bias)
                module = copy.deepcopy(plain).cuda()
                cpu, cuda = twice(torch.randn(3, 5, 6))
                outputs = [plain(cpu)[0], module(cuda)[0]]
                for output in outputs:
                    output.square().sum().backward()
                self.close(outputs[1], outputs[0])
                self.close(cuda.grad, cpu.grad)
                for mine, wanted in zip(module.parameters(), plain.parameters()):
                    self.close(mine.grad, wanted.grad)

    def test_convolutions_and_norms_are_the_cpus_to_the_bit(self):
        for d, convolution in ((1, torch.nn.Conv1d), (2, torch.nn.Conv2d), (3, torch.nn.Conv3d),
                               (2, torch.nn.ConvTranspose2d)):
            torch.manual_seed(5)
            norm = getattr(torch.nn, f"BatchNorm{d}d")
            plain = torch.nn.Sequential(convolution(4, 6, 3, stride=2), norm(6),
                                        torch.nn.GroupNorm(2, 6))
            module = copy.deepcopy(plain).cuda()
            cpu, cuda = twice(torch.randn(2, 4, *[8] * d))
            for training in (True, False):
                outputs = [plain.train(training)(cpu), module.train(training)(cuda)]
                for output in outputs:
                    output.square().sum().backward()
                self.equal(outputs[1], outputs[0])
                self.equal(cuda.grad, cpu.grad)

    def test_a_norm_over_the_batches_of_several_ranks(self):
        """Its parts, as SyncBatchNorm calls them; and what all of them as one batch give."""
        torch.manual_seed(11)
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-3)):
            plain = torch.nn.BatchNorm2d(3, momentum=0.3)
            torch.nn.init.normal_(plain.weight), torch.nn.init.normal_(plain.bias)
            module = copy.deepcopy(plain).cuda()
            whole = torch.randn(5, 3, 4, 4).to(dtype)
            slope = torch.randn(5, 3, 4, 4).to(dtype)
            leaf = whole.float().requires_grad_()
            wanted = plain(leaf)
            wanted.backward(slope.float())
            ranks = [part.cuda() for part in whole.split([2, 3])]
            slopes = [part.cuda() for part in slope.split([2, 3])]
            stats = [torch.batch_norm_stats(part, plain.eps) for part in ranks]
            means, deviations = (torch.stack(each) for each in zip(*stats))
            counts = torch.tensor([32.0, 48.0], device="cuda")
            mean, deviation = torch.batch_norm_gather_stats_with_counts(
                ranks[0], means, deviations, module.running_mean, module.running_var, 0.3,
                plain.eps, counts)
            self.close(module.running_mean, plain.running_mean)
            self.close(module.running_var, plain.running_var)
            made = [torch.batch_norm_elemt(part, module.weight.detach(), module.bias.detach(),
                                           mean, deviation, plain.eps) for part in ranks]
            self.assertEqual(made[0].dtype, dtype)
            self.close(torch.cat(made).float(), wanted, rtol=tolerance, atol=tolerance)
            reduced = [torch.batch_norm_backward_reduce(one, part, mean, deviation,
                                                        module.weight.detach(), True, True, True)
                       for one, part in zip(slopes, ranks)]
            total = [sum(each) for each in zip(*reduced)]
            self.close(total[2], plain.weight.grad, rtol=1e-3, atol=1e-3)
            self.close(total[3], plain.bias.grad, rtol=1e-3, atol=1e-3)
            of_input = [torch.batch_norm_backward_elemt(
                one, part, mean, deviation, module.weight.detach(), total[0], total[1],
                counts.int()) for one, part in zip(slopes, ranks)]
            self.close(torch.cat(of_input).float(), leaf.grad, rtol=tolerance, atol=tolerance)
            unwanted = torch.batch_norm_backward_reduce(slopes[0], ranks[0], mean, deviation, None,
                                                        False, False, True)
            self.assertEqual([each is None for each in unwanted], [True, True, True, False])

    def test_the_same_count_for_each_rank_and_a_given_output(self):
        parts = [torch.randn(4, 2, device="cuda") for _ in range(2)]
        stats = [torch.batch_norm_stats(part, 0.0) for part in parts]
        mean, deviation = torch.batch_norm_gather_stats(
            parts[0], *(torch.stack(each) for each in zip(*stats)), None, None, 0.1, 0.0, 4)
        whole = torch.cat(parts).cpu()
        self.close(mean, whole.mean(0))
        self.close(deviation, 1 / whole.std(0, correction=0))
        out = torch.empty(0, device="cuda")
        torch.batch_norm_elemt(parts[0], None, None, mean, deviation, 0.0, out=out)
        self.close(out, (parts[0].cpu() - mean.cpu()) * deviation.cpu())

    def test_dropout_as_it_was_before(self):
        x = torch.ones(40, 40, device="cuda", dtype=torch.float16)
        made, mask = torch._fused_dropout(x, 0.25)
        self.assertIn(int(mask.sum()), range(300, 500))
        self.equal(made, mask.cpu() * x.cpu() * 4)
        self.equal(torch._masked_scale(x * 3, mask, 2.0), mask.cpu() * x.cpu() * 6)

    def test_losses_of_sequences(self):
        torch.manual_seed(6)
        cpu, cuda = twice(torch.randn(20, 4, 9))
        for leaf in (cpu, cuda):
            targets = torch.arange(1, 9).expand(4, 8).to(leaf.device)
            functional.ctc_loss(leaf.log_softmax(2), targets, [20] * 4, [8] * 4).backward()
        self.equal(cuda.grad, cpu.grad)

    def test_half_precision_to_single_within_softmax(self):
        torch.manual_seed(7)
        for name in ("softmax", "log_softmax"):
            half = torch.randn(5, 7, device="cuda", dtype=torch.half, requires_grad=True)
            single = half.detach().cpu().float().requires_grad_()
            for leaf in (half, single):
                made = getattr(functional, name)(leaf, -1, dtype=torch.float32)
                made.square().sum().backward()
            self.assertEqual(made.dtype, torch.float32)
            self.equal(half.grad, single.grad.half())


class Training(Close):
    def test_every_way_of_every_optimizer_is_the_cpus_to_the_bit(self):
        torch.manual_seed(8)
        start = [torch.randn(6, 5) for _ in range(3)]
        gradients = [[torch.randn(6, 5) for _ in range(3)] for _ in range(3)]
        for kind in OPTIMIZERS:
            for way in ({"foreach": True}, {"foreach": False}, {"fused": True}):
                if "fused" in way and kind not in FUSED:
                    continue
                made = []
                for device in ("cpu", "cuda"):
                    made.append([each.clone().to(device).requires_grad_() for each in start])
                    optimizer = kind(made[-1], lr=1e-2, **way)
                    for step in gradients:
                        for parameter, gradient in zip(made[-1], step):
                            parameter.grad = gradient.to(device)
                        optimizer.step()
                for cpu, cuda in zip(*made):
                    self.equal(cuda.detach(), cpu.detach())

    def test_autocast_with_a_scaler_skips_a_step_that_is_not_finite(self):
        torch.manual_seed(9)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                                    torch.nn.Linear(144, 4)).cuda()
        for fused in (False, True):
            optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
            scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
            kept = []
            for bad in (False, True):
                before = [parameter.detach().clone() for parameter in model.parameters()]
                with torch.autocast("cuda", torch.float16):
                    output = model(torch.randn(4, 3, 8, 8, device="cuda"))
                    self.assertEqual(output.dtype, torch.float16)
                    loss = functional.cross_entropy(output, torch.arange(4, device="cuda"))
                optimizer.zero_grad()
                scaler.scale(loss * float("inf") if bad else loss).backward()
                scaler.step(optimizer)
                scaler.update()
                kept.append(all(map(torch.equal, before, model.parameters())))
            self.assertEqual((kept, scaler.get_scale()), ([False, True], 2.0**9))


class Products(Close):
    def test_half_precision_gives_single(self):
        torch.manual_seed(12)
        for dtype in (torch.float16, torch.bfloat16):
            a, b, to = (torch.randn(2, *shape).to(dtype) for shape in ((3, 4), (4, 5), (3, 5)))
            for plain, sum_to, (first, second, third) in (
                    (torch.mm, torch.addmm, (a[0], b[0], to[0])),
                    (torch.bmm, torch.baddbmm, (a, b, to))):
                wanted = plain(first.float(), second.float())
                more = sum_to(third.float(), first.float(), second.float(), beta=0.5, alpha=2)
                first, second, third = first.cuda(), second.cuda(), third.cuda()
                out = torch.empty(0, device="cuda")
                self.equal(plain(first, second, out_dtype=torch.float32), wanted)
                plain(first, second, out_dtype=torch.float32, out=out)
                self.equal(out, wanted)
                scaled = {"beta": 0.5, "alpha": 2, "out_dtype": torch.float32}
                self.equal(sum_to(third, first, second, **scaled), more)
                sum_to(third, first, second, out=out, **scaled)
                self.equal(out, more)
                with self.assertRaisesRegex(RuntimeError, "out_dtype"):
                    plain(first, second, out_dtype=torch.float64)


class Matrices(Close):
    def test_factors_without_pivots_give_the_matrix(self):
        torch.manual_seed(10)
        for rows, columns in ((4, 4), (5, 3), (3, 5)):
            matrix = torch.randn(2, rows, columns, device="cuda") + 4 * torch.eye(
                rows, columns, device="cuda")
            _, lower, upper = torch.linalg.lu(matrix, pivot=False)
            self.close(lower @ upper, matrix.cpu())
            factors, pivots, info = torch.linalg.lu_factor_ex(matrix, pivot=False)
            least = min(rows, columns)
            self.close(factors[..., :least].tril(-1), lower.tril(-1).cpu())
            self.close(factors[:, :least].triu(), upper.cpu())
            self.assertEqual(pivots[0].tolist(), list(range(1, least + 1)))
            self.assertEqual(info.tolist(), [0, 0])
        _, _, info = torch.linalg.lu_factor_ex(torch.zeros(2, 2, device="cuda"), pivot=False)
        self.assertEqual(info.item(), 1)

    def test_what_depends_on_values_is_found(self):
        x = torch.tensor([3, 1, 0, 3], device="cuda")
        self.equal(torch.unique(x), torch.tensor([0, 1, 3]))
        self.equal(torch._unique(x)[0].sort().values, torch.tensor([0, 1, 3]))
        self.equal(x.nonzero(), torch.tensor([[0], [1], [3]]))
        self.equal(x.repeat_interleave(x), torch.tensor([3, 3, 3, 1, 3, 3, 3]))


if __name__ == "__main__":
    unittest.main()
