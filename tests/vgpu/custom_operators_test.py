"""Operators of extensions and of scripts (torch.library) under `ferry run`: the values are the
CPU's, the judge sees their reads and writes, and the end of the run says who computed them.

    custom_operators_test.py FERRY PYTHON LIBRARY PACKAGE

LIBRARY is tests/vgpu/extension, PACKAGE the folder of torch_ferry.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON, LIBRARY, PACKAGE = sys.argv[1:5]
BEGIN = """
import torch
torch.ops.load_library(LIBRARY)
ops = torch.ops.ferry_extension

def fails(call):
    try:
        print(call())
    except (RuntimeError, ValueError) as error:
        print(error)

@torch.library.custom_op("script::halved", mutates_args=(), device_types="cpu")
def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2

@halved.register_fake
def _(x):
    return torch.empty_like(x)

@torch.library.custom_op("script::positive", mutates_args=(), device_types="cpu")
def positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]

@torch.library.custom_op("script::anywhere", mutates_args={"total"})
def anywhere(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    total += x.sum()
    return x + 1

library = torch.library.Library("script", "FRAGMENT")
library.define("kernel(Tensor x, float by=2., *, Tensor(a!)? count=None) -> (Tensor, Tensor)")

library.define("doubled(Tensor! x) -> ()")

def stand_in(x, by=2.0, *, count=None):
    assert x.device.type == "cpu"
    if count is not None:
        count += 1
    return x * by, x.sum()
"""
VALUES = BEGIN + """
import torch_ferry
x = torch.tensor([-1.0, 2.0, 3.0], device="cuda")
total, count = torch.zeros((), device="cuda"), torch.zeros(2, device="cuda")
marked, other = x * 0, torch.library.Library("script_later", "DEF")
made = [ops.tripled(x), halved(x), anywhere(x, total)]
ops.add_to(x, y=made[0])
fails(lambda: torch.ops.script.kernel(x))
torch_ferry.virtual.stand_in("script::kernel", stand_in)
made += torch.ops.script.kernel(x, 4.0, count=count)
made += torch.ops.script.kernel(x)
marked += 1
made.append(positive(x))  # its shape depends on values
print([each.tolist() for each in made], total.item(), count.tolist())

fails(lambda: ops.shaped(x))
fails(lambda: ops.first(x))
fails(lambda: ops.add_to(x, y=torch.zeros(3)))
fails(lambda: torch_ferry.virtual.stand_in("script::unknown", stand_in))
fails(lambda: torch.ops.aten.mkldnn_max_pool2d(torch.ones(1, 1, 4, 4, device="cuda"), 2))
# A CUDA kernel that comes later is the operator's own.
other.define("f(Tensor x) -> Tensor")
other.impl("f", lambda x: x * 5, "CPU")
print(torch.ops.script_later.f(x).tolist())
other.impl("f", lambda x: x * 7, "CUDA")
print(torch.ops.script_later.f(x).tolist())
# Autograd is the operator's own.
halved.register_autograd(lambda context, gradient: gradient / 2)
y = x.clone().requires_grad_()
halved(y).sum().backward()
print(y.grad.tolist())
torch_ferry.virtual.stand_in("script::doubled", lambda x: [x.mul_(2)].clear())
torch.ops.script.doubled(total)
print(total.item())
"""
RACES = BEGIN + """
import torch_ferry
torch_ferry.virtual.stand_in("script::kernel", stand_in)
x, side = torch.zeros(4, device="cuda"), torch.cuda.Stream()
torch.cuda.synchronize()
x += 1
with torch.cuda.stream(side):
    if "waits" in sys.argv:
        side.wait_stream(torch.cuda.default_stream())
    made = ops.tripled(x)
    side.synchronize()
    print(made.tolist())
x += 1
with torch.cuda.stream(side):
    if "waits" in sys.argv:
        side.wait_stream(torch.cuda.default_stream())
    torch.ops.script.kernel(x)
torch.cuda.synchronize()
"""
NO_VALUES = BEGIN + """
import torch_ferry
x = torch.empty(1 << 26, device="cuda")
begin, middle, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
torch.cuda.reset_peak_memory_stats()
begin.record()
made = ops.shaped(x)
middle.record()
x.neg()
end.record()
torch.cuda.synchronize()
print(torch.cuda.max_memory_allocated() >> 20, begin.elapsed_time(middle) > 0.1,
      begin.elapsed_time(middle) == middle.elapsed_time(end))
few = ops.tripled(torch.ones(3, device="cuda")), halved(torch.ones(3, device="cuda"))
print([each.tolist() for each in few])  # few bytes, and known ones
large = ops.tripled(x), halved(x)
fails(lambda: ops.shaped(torch.ones(3, device="cuda")).tolist())
fails(lambda: ops.alone(x))
fails(lambda: positive(x))
torch_ferry.virtual.stand_in("script::kernel", stand_in)
fails(lambda: torch.ops.script.kernel(x))
torch.library.register_fake("script::kernel")(
    lambda x, by=2.0, *, count=None: (torch.empty_like(x), x.new_empty(())))
made = torch.ops.script.kernel(x)
print(made[0].shape, made[1].shape)
"""
GRAPH = BEGIN + """
x = torch.ones(3, device="cuda")
ops.tripled(x), halved(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    made = ops.tripled(x)
x.fill_(5)
graph.replay()
print(made.tolist())

def capture():
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        halved(x)
fails(capture)
"""


def run(code, *words, options=()):
    """Returns what the script printed, what Ferry said, the verdict and the log."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=PACKAGE)
    with tempfile.TemporaryDirectory() as folder:
        script, verdict, log = (pathlib.Path(folder) / name for name in ("s.py", "json", "log"))
        script.write_text(f"import sys\nLIBRARY = {LIBRARY!r}\n{code}")
        command = [FERRY, "run", "--python", PYTHON, "--hide-gpu", "--json", verdict, "--log", log,
                   *options, script, *words]
        done = subprocess.run(list(map(str, command)), env=environment, capture_output=True,
                              text=True, timeout=300)
        if "Traceback" in done.stderr:
            raise AssertionError(done.stderr)
        return (done.stdout.splitlines(), done.stderr, json.loads(verdict.read_text()),
                [json.loads(line) for line in log.read_text().splitlines()])


class CustomOperators(unittest.TestCase):
    def test_values_are_the_cpus_and_the_log_has_what_the_schema_says(self):
        printed, said, verdict, log = run(VALUES)
        without = ('script::kernel: the operator has neither a CUDA kernel nor a CPU kernel; '
                   'torch_ferry.virtual.stand_in("script::kernel", function) gives it values')
        self.assertIn(without, printed[0])
        self.assertEqual(printed[1], "[[-4.0, 8.0, 12.0], [-0.5, 1.0, 1.5], [0.0, 3.0, 4.0], "
                                     "[-4.0, 8.0, 12.0], 4.0, [-2.0, 4.0, 6.0], 4.0, [2.0, 3.0]] "
                                     "4.0 [1.0, 1.0]")
        self.assertRegex(printed[2], r"^ferry_extension::shaped: the virtual GPU runs no compiled "
                                     r"kernel .*, and the operator has no CPU kernel; .*stand_in.*"
                                     r"and --no-values runs it without$")
        self.assertIn("ferry_extension::first: the virtual GPU runs no operator of an extension "
                      "that returns a view", printed[3])
        self.assertIn("ferry_extension::add_to: the virtual GPU runs no operator of an extension "
                      "that writes CUDA tensors and others", printed[4])
        self.assertIn('a registered operator such as "space::name", got "script::unknown"',
                      printed[5])
        self.assertIn("Could not run 'aten::mkldnn_max_pool2d' with arguments from the 'CUDA'",
                      printed[6])
        self.assertEqual(printed[7:], ["[-5.0, 10.0, 15.0]", "[-7.0, 14.0, 21.0]",
                                       "[0.5, 0.5, 0.5]", "8.0"])
        self.assertEqual(verdict["violations"], [])
        self.judge_log(log)
        self.assertIn("ferry run: values by stand-ins: script::doubled, script::kernel "
                      "(2 times)\n", said)
        self.assertRegex(said, "without a CUDA kernel, so computed by their CPU kernels: "
                               r"ferry_extension::add_to, ferry_extension::tripled, "
                               r"script::halved \(2 times\) and 2 more")
        self.assertEqual(verdict["simulated"]["stand_ins"],
                         {"script::doubled": 1, "script::kernel": 2})

    def judge_log(self, log):
        """The operators are kernels of the stream, and the host waits for few of them."""
        named = [(line, line.get("name", "").partition(" at ")[0]) for line in log]
        begin, end = (next(i for i, (_, name) in enumerate(named) if name == wanted)
                      for wanted in ("ferry_extension::tripled", "script::positive"))
        waits = [line for line, _ in named[begin:end] if "sync" in line["op"]]
        # For the stand-in, which has no fake implementation, and for script::positive.
        self.assertEqual(len(waits), 3)
        bytes_of = {name: [[each["bytes"] for each in line[key]] for key in ("reads", "writes")]
                    for line, name in named if line["op"] == "kernel" and "::" in name}
        self.assertEqual(bytes_of["ferry_extension::tripled"], [[12], [12]])
        self.assertEqual(bytes_of["ferry_extension::add_to"], [[12, 12], [12]])
        self.assertEqual(bytes_of["script::halved"], [[12], [12]])
        kernels = [line for line, name in named if name == "script::kernel"]
        self.assertEqual([len(kernels[0]["reads"]), len(kernels[0]["writes"])], [2, 3])
        self.assertEqual([len(kernels[1]["reads"]), len(kernels[1]["writes"])], [1, 2])

    def test_they_run_in_their_turn_and_a_missing_wait_is_found(self):
        printed, said, verdict, _ = run(RACES, options=("--side-first",))
        self.assertEqual(printed, ["[0.0, 0.0, 0.0, 0.0]"])
        messages = [each["message"] for each in verdict["violations"]]
        for name in ("ferry_extension::tripled", "script::kernel"):
            self.assertTrue(any(name in message for message in messages), messages)
        printed, said, verdict, _ = run(RACES, "waits", options=("--side-first",))
        self.assertEqual((printed, verdict["violations"]), (["[3.0, 3.0, 3.0, 3.0]"], []), said)

    def test_without_values_a_fake_implementation_is_enough(self):
        printed, said, verdict, _ = run(NO_VALUES, options=("--no-values",))
        self.assertEqual(printed[:2], ["768 True True", "[[3.0, 3.0, 3.0], [0.5, 0.5, 0.5]]"])
        self.assertIn("copies a CUDA tensor that is not computed", printed[2])
        self.assertRegex(printed[3], r"^ferry_extension::alone: .* and --no-values needs its fake "
                                     r"implementation \(register_fake\)$")
        self.assertIn("script::positive depends on values that are not computed", printed[4])
        self.assertIn("script::kernel depends on values that are not computed", printed[5])
        self.assertEqual(printed[6], "torch.Size([67108864]) torch.Size([])")
        self.assertEqual(verdict["violations"], [], said)

    def test_a_graph_has_compiled_kernels_and_none_in_python(self):
        printed, said, _, _ = run(GRAPH)
        self.assertEqual(printed[0], "[15.0, 15.0, 15.0]", said)
        self.assertIn("script::halved: a kernel in Python cannot be captured", printed[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
