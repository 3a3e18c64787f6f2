"""Optimizers whose state is on the host: the bits of the plain ones, in every mode."""

import copy
import tempfile
import unittest

from native.support import ferry, torch

# Some parameters are larger than a piece, some have odd sizes, one is not contiguous.
PIECE = 4096
STEPS = 4
KINDS = {
    "AdamW": lambda params: torch.optim.AdamW(params, lr=1e-2, weight_decay=0.1),
    "AdamW for-loop": lambda params: torch.optim.AdamW(params, lr=1e-2, foreach=False),
    "AdamW fused": lambda params: torch.optim.AdamW(params, lr=1e-2, fused=True),
    "AdamW amsgrad": lambda params: torch.optim.AdamW(params, lr=1e-2, amsgrad=True),
    "Adam foreach": lambda params: torch.optim.Adam(params, lr=1e-2, foreach=True),
    "SGD": lambda params: torch.optim.SGD(params, lr=1e-2, momentum=0.9, nesterov=True),
    "plain SGD": lambda params: torch.optim.SGD(params, lr=1e-2),
    "RMSprop": lambda params: torch.optim.RMSprop(params, lr=1e-3, momentum=0.9, centered=True),
    "Adagrad": lambda params: torch.optim.Adagrad(params, lr=1e-2),
    "Adadelta": lambda params: torch.optim.Adadelta(params, lr=1e-1),
    "Adamax": lambda params: torch.optim.Adamax(params, lr=1e-2),
    "NAdam": lambda params: torch.optim.NAdam(params, lr=1e-2),
    "RAdam": lambda params: torch.optim.RAdam(params, lr=1e-2),
    "Rprop": lambda params: torch.optim.Rprop(params, lr=1e-2),
    "ASGD": lambda params: torch.optim.ASGD(params, lr=1e-2),
    "Adafactor": lambda params: torch.optim.Adafactor(params, lr=1e-2),
    "Lamb-like": lambda params: Lamb(params),
    "counts in its group": lambda params: Counting(params),
}


class Lamb(torch.optim.Optimizer):
    """A user's optimizer: its update needs the norm of the whole parameter."""

    def __init__(self, params, lr=1e-2):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["mean"] = torch.zeros_like(p)
                state["mean"] = state["mean"] * 0.9 + p.grad  # a new tensor in each step
                p.add_(state["mean"], alpha=-float(group["lr"] * p.norm() /
                                                   (state["mean"].norm() + 1)))


class Counting(Lamb):
    @torch.no_grad()
    def step(self, closure=None):
        super().step()
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1


class Prodigal(Lamb):
    """Keeps something about all parameters in its group."""

    @torch.no_grad()
    def step(self, closure=None):
        super().step()
        for group in self.param_groups:
            group["total"] = group.get("total", 0) + sum(float(p.norm()) for p in group["params"])


def model(seed=0):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(60, 70), torch.nn.Tanh(), torch.nn.Linear(70, 9),
                              torch.nn.LayerNorm(9))
    net[2].weight.data = torch.randn(70, 9).t()
    return net


def backward(net, step):
    torch.manual_seed(100 + step)
    loss = net(torch.randn(8, 60)).square().sum()
    loss.backward()
    return loss


def train(net, optimizer, first=0, steps=STEPS, clip=None):
    for step in range(first, first + steps):
        backward(net, step)
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()


def on_host(inner, **options):
    options = {"piece": PIECE, "min_bytes": 0, "ahead": 3 * PIECE, "behind": PIECE, **options}
    return ferry.optimizer(inner, **options)


class Bits(unittest.TestCase):
    def same(self, one, other):
        for name, value in one.state_dict().items():
            self.assertTrue(torch.equal(value, other.state_dict()[name]), name)

    def same_state(self, one, other):
        one, other = one.state_dict(), other.state_dict()
        self.assertEqual(one["param_groups"], other["param_groups"])
        self.assertEqual(one["state"].keys(), other["state"].keys())
        for number, state in one["state"].items():
            self.assertEqual(state.keys(), other["state"][number].keys())
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    self.assertTrue(torch.equal(value, other["state"][number][key]), key)
                else:
                    self.assertEqual(value, other["state"][number][key])

    def pair(self, kind, **options):
        plain, hosted = model(), model()
        return (plain, KINDS[kind](plain.parameters()), hosted,
                on_host(KINDS[kind](hosted.parameters()), **options))

    def test_every_optimizer_has_the_bits_of_the_plain_one(self):
        for kind in KINDS:
            for in_backward in (False, True):
                with self.subTest(kind, in_backward=in_backward):
                    plain, inner, hosted, optimizer = self.pair(kind, in_backward=in_backward)
                    train(plain, inner)
                    train(hosted, optimizer)
                    self.same(plain, hosted)
                    self.same_state(inner, optimizer)

    def test_the_state_is_not_on_the_device(self):
        net = model()
        optimizer = on_host(KINDS["AdamW"](net.parameters()))
        train(net, optimizer)
        counts = optimizer.host_statistics()["cpu"]
        states = 2 * 4 * sum(p.numel() for p in net.parameters())
        self.assertGreaterEqual(counts.host_bytes, states)
        self.assertEqual(counts.device_bytes, 0)
        self.assertLess(counts.device_peak_bytes, states)
        self.assertGreater(counts.ahead_count, counts.wards)
        self.assertEqual(counts.unused_count, 0)

    def test_small_states_stay(self):
        net = model()
        optimizer = on_host(KINDS["AdamW"](net.parameters()), min_bytes="1GiB")
        train(net, optimizer)
        self.assertEqual(optimizer.host_statistics(), {})

    def test_state_on_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            plain, inner, hosted, optimizer = self.pair("AdamW", disk=folder)
            train(plain, inner)
            train(hosted, optimizer)
            self.same(plain, hosted)

    def test_clipped_gradients_and_a_scheduler(self):
        plain, inner, hosted, optimizer = self.pair("AdamW")
        for net, opt in ((plain, inner), (hosted, optimizer)):
            schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1 / (1 + step))
            for step in range(STEPS):
                train(net, opt, step, 1, clip=0.5)
                schedule.step()
        self.same(plain, hosted)
        self.same_state(inner, optimizer)

    def test_accumulated_gradients(self):
        for in_backward in (False, True):
            plain, inner, hosted, optimizer = self.pair("AdamW", in_backward=in_backward)
            for step in range(0, 2 * STEPS, 2):
                for net in (plain, hosted):
                    with optimizer.accumulate():  # the plain one has no use for it
                        backward(net, step)
                    backward(net, step + 1)
                for opt in (inner, optimizer):
                    opt.step()
                    opt.zero_grad()
            self.same(plain, hosted)

    def test_a_closure(self):
        plain, inner, hosted, optimizer = self.pair("AdamW")
        for net, opt in ((plain, inner), (hosted, optimizer)):
            for step in range(STEPS):
                opt.zero_grad()
                loss = opt.step(lambda: backward(net, step))
                self.assertGreater(loss.item(), 0)
        self.same(plain, hosted)

    def test_a_gradient_scaler(self):
        plain, inner, hosted, optimizer = self.pair("AdamW")
        for net, opt in ((plain, inner), (hosted, optimizer)):
            scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 8)
            for step in range(STEPS):
                torch.manual_seed(step)
                loss = net(torch.randn(8, 60)).square().sum()
                if step == 1:
                    loss = loss * float("inf")  # this step is left out
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
                opt.zero_grad()
        self.same(plain, hosted)

    def test_unused_frozen_and_added_parameters(self):
        plain, inner, hosted, optimizer = self.pair("AdamW")
        for net, opt in ((plain, inner), (hosted, optimizer)):
            net[0].weight.requires_grad_(False)
            extra = torch.nn.Parameter(torch.ones(50))
            train(net, opt, 0, 2)
            opt.add_param_group({"params": [extra], "lr": 1e-3})
            extra.square().sum().backward()
            train(net, opt, 2, 2)
            self.assertLess(extra[0].item(), 1)
        self.same(plain, hosted)
        self.same_state(inner, optimizer)


class Saved(Bits):
    def test_saved_by_one_and_loaded_by_the_other(self):
        for kind in ("AdamW", "AdamW amsgrad", "SGD", "Adafactor", "Lamb-like"):
            for back in (False, True):
                with self.subTest(kind, back=back):
                    plain, inner, hosted, optimizer = self.pair(kind)
                    train(plain, inner, 0, 2)
                    train(hosted, optimizer, 0, 2)
                    net = copy.deepcopy(hosted if back else plain)
                    saved = copy.deepcopy((optimizer if back else inner).state_dict())
                    other = KINDS[kind](net.parameters())
                    if not back:
                        other = on_host(other, piece=2 * PIECE)
                    other.load_state_dict(saved)
                    train(net, other, 2, 2)
                    train(plain, inner, 2, 2)
                    self.same(plain, net)
                    self.same_state(inner, other)

    def test_a_state_that_is_there_moves(self):
        plain, inner, hosted, _ = self.pair("AdamW")
        train(plain, inner, 0, 2)
        train(hosted, moved := KINDS["AdamW"](hosted.parameters()), 0, 2)
        self.assertIs(on_host(moved), moved)
        train(plain, inner, 2, 2)
        train(hosted, moved, 2, 2)
        self.same(plain, hosted)
        self.assertEqual(len(moved.state), 0)


class Failures(unittest.TestCase):
    def test_an_error_in_an_update_leaves_the_piece_as_it_was(self):
        plain, hosted = model(), model()
        inner, optimizer = KINDS["AdamW"](plain.parameters()), KINDS["AdamW"](hosted.parameters())
        on_host(optimizer)
        train(plain, inner, 0, 2)
        train(hosted, optimizer, 0, 2)
        for net in (plain, hosted):
            backward(net, 2)
        state, kind = optimizer._ferry, optimizer._ferry.kind
        calls = []

        class Fails(kind):
            def step(self):
                calls.append(len(calls))
                if len(calls) == 3:  # after weight decay, say
                    self.param_groups[0]["params"][0].mul_(0.5)
                    raise RuntimeError("out of memory, say")
                kind.step(self)

        state.kind = Fails
        with self.assertRaisesRegex(RuntimeError, "out of memory, say"):
            optimizer.step()
        state.kind = kind
        optimizer.step()  # goes on where the other stopped: nothing is updated twice
        inner.step()
        for name, value in plain.state_dict().items():
            self.assertTrue(torch.equal(value, hosted.state_dict()[name]), name)
        state.kind, calls[:] = Fails, []
        backward(hosted, 3)
        with self.assertRaisesRegex(RuntimeError, "out of memory, say"):
            optimizer.step()
        state.kind = kind
        optimizer.zero_grad()
        backward(hosted, 4)
        with self.assertRaisesRegex(RuntimeError, "the model was updated in part"):
            optimizer.step()
        optimizer.load_state_dict(inner.state_dict())
        optimizer.step()

    def test_a_host_that_fails_loses_nothing_and_nothing_is_updated_twice(self):
        for call in ("add", "written"):
            for first in (0, 2):  # in the first step states are added
                if call == "add" and first:
                    continue
                with self.subTest(call, first=first):
                    self.fails_once(call, first)

    def fails_once(self, call, first):
        plain, hosted = model(), model()
        inner, optimizer = KINDS["AdamW"](plain.parameters()), KINDS["AdamW"](hosted.parameters())
        on_host(optimizer)
        train(plain, inner, 0, first)
        train(hosted, optimizer, 0, first)
        for net in (plain, hosted):
            backward(net, first)
        state, calls = optimizer._ferry, []
        wards_of = state.wards_of

        class Failing:
            def __init__(self, wards):
                self.wards = wards

            def __getattr__(self, name):
                if name == call:
                    calls.append(name)
                    if len(calls) == 3:
                        raise MemoryError("no room on the host")
                return getattr(self.wards, name)

        state.wards_of = lambda device: Failing(wards_of(device))
        with self.assertRaisesRegex(MemoryError, "no room on the host"):
            optimizer.step()
        optimizer.step()
        inner.step()
        for net, opt in ((plain, inner), (hosted, optimizer)):
            opt.zero_grad()
            train(net, opt, first + 1, 2)
        for name, value in plain.state_dict().items():
            self.assertTrue(torch.equal(value, hosted.state_dict()[name]), name)

    def test_a_second_backward_in_one_step_is_refused(self):
        net = model()
        optimizer = on_host(KINDS["AdamW"](net.parameters()), in_backward=True)
        backward(net, 0)
        with self.assertRaisesRegex(RuntimeError, "under `with optimizer.accumulate"):
            backward(net, 1)
        optimizer.step()
        net.zero_grad()
        backward(net, 1)

    def test_group_values_that_depend_on_parameters_are_refused(self):
        net = model()
        optimizer = on_host(Prodigal(net.parameters()))
        with self.assertRaisesRegex(TypeError, "Prodigal cannot keep its state on the host: it "
                                               "changes count|total of a parameter group"):
            train(net, optimizer)

    def test_what_cannot_be_updated_in_pieces_is_refused(self):
        params = [torch.nn.Parameter(torch.ones(3))]
        for given, text in (
                (torch.optim.LBFGS(params), "LBFGS .* updates all parameters together"),
                (torch.optim.SparseAdam(params), "SparseAdam .* sparse"),
                (torch.optim.Adam(params, differentiable=True), "differentiable"),
                (torch.optim.lr_scheduler, "expected a torch.optim.Optimizer"),
                (ferry.optimizer(torch.optim.AdamW(params)), "on the host already")):
            with self.assertRaisesRegex(TypeError, text):
                ferry.optimizer(given)

    def test_options_that_cannot_be_read(self):
        params = [torch.nn.Parameter(torch.ones(3))]
        with self.assertRaisesRegex(ValueError, "ahead: expected a size in bytes"):
            ferry.optimizer(torch.optim.AdamW(params), ahead="much")

    def test_it_is_not_copied_and_not_pickled(self):
        optimizer = on_host(torch.optim.AdamW([torch.nn.Parameter(torch.ones(3))]))
        with self.assertRaisesRegex(TypeError, "save its state_dict"):
            copy.deepcopy(optimizer)
        self.assertIsInstance(optimizer, torch.optim.AdamW)
        self.assertIn("with its state on the host", repr(optimizer))


if __name__ == "__main__":
    unittest.main()
