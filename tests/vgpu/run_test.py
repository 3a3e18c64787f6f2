"""`ferry run`: unmodified CUDA programs where there is no GPU.

    run_test.py FERRY PYTHON
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]
PROGRAMS = pathlib.Path(__file__).parent / "programs"
SCHEDULES = ((), ("--seed", "7"), ("--eager",), ("--side-first",), ("--main-first",))


def command(*words):
    return [FERRY, "run", "--python", PYTHON, "--hide-gpu", *map(str, words)]


def run(*words, cwd=None):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.run(command(*words), env=environment, capture_output=True, text=True,
                          timeout=300, cwd=cwd)


def run_code(code, *options):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "script.py"
        script.write_text(code)
        return run(*options, script)


def line_of(program, mark):
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


class Values(unittest.TestCase):
    def test_a_training_gives_the_cpus_losses_and_gradients_under_every_schedule(self):
        for schedule in SCHEDULES:
            done = run(*schedule, PROGRAMS / "training.py")
            self.assertEqual((done.returncode, done.stdout), (0, "True True\n"), done.stderr)
            self.assertIn("no GPU", done.stderr)
            self.assertIn("0 violations", done.stderr)

    def test_what_is_remembered_of_an_operators_shapes_is_true_of_no_other_call(self):
        done = run("--eager", PROGRAMS / "shapes.py")
        self.assertEqual((done.returncode, done.stdout), (0, "1922\n"), done.stderr)

    def test_the_stream_ordered_allocator_gives_the_same_and_its_races_are_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            verdict = pathlib.Path(folder) / "v.json"
            peaks = []
            for backend in ("native", "cudaMallocAsync"):
                for schedule in SCHEDULES:
                    done = run(*schedule, "--alloc-conf", f"backend:{backend}", "--json", verdict,
                               PROGRAMS / "training.py")
                    self.assertEqual((done.returncode, done.stdout), (0, "True True\n"),
                                     done.stderr)
                    simulated = json.loads(verdict.read_text())["simulated"]
                    peaks.append((simulated["allocated_bytes"], simulated["run_ns"]))
        self.assertEqual(len(set(peaks)), 1)
        code = ("import torch\n"
                "side = torch.cuda.Stream()\n"
                "a = torch.ones(1 << 10, device='cuda')\n"
                "side.wait_stream(torch.cuda.current_stream())\n"
                "with torch.cuda.stream(side):\n"
                "    b = a * 2\n"
                "    if len(sys.argv) > 1: a.record_stream(side)\n"
                "del a\n"
                "c = torch.zeros(1 << 10, device='cuda')\n")
        for words, status in (((), 1), (("recorded",), 0)):
            done = run("--alloc-conf", "backend:cudaMallocAsync", "-c", "import sys\n" + code,
                       *words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual("free under a use of 4096 bytes" in done.stderr, status == 1)

    def test_memory_ends_where_the_cards_does_in_pytorchs_words(self):
        code = ("import torch\n"
                "kept = torch.empty(20 << 30, dtype=torch.uint8, device='cuda')\n"
                "torch.empty(5 << 30, dtype=torch.uint8, device='cuda')\n")
        done = run_code(code, "--card", "rtx4090")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"OutOfMemoryError: CUDA out of memory\. Tried to allocate "
                                      r"5\.00 GiB\. GPU 0 has a total capacity of 23\.64 GiB")
        self.assertEqual(run_code(code, "--card", "h100").returncode, 0)


# Three steps of one matmul of 2 * 4096³ FLOPs each, forward alone. Without values: a processor that
# has no bfloat16 takes minutes for one.
STEPS = """
import torch
a = torch.zeros(4096, 4096, device="cuda", dtype=torch.bfloat16)
parameter = torch.nn.Parameter(torch.zeros(1, device="cuda"))
optimizer = torch.optim.SGD([parameter])
for _ in range(4):
    b = a @ a
    parameter.grad = torch.zeros(1, device="cuda")
    optimizer.step()
"""


class Devices(unittest.TestCase):
    def test_the_bus_of_a_device_that_is_not_there_is_an_error(self):
        code = ("import ctypes, torch\n"
                "torch.cuda.init()\n"
                "bus = ctypes.create_string_buffer(32)\n"
                "ask = ctypes.CDLL(None).cudaDeviceGetPCIBusId\n"
                "print(ask(bus, 32, 0), bus.value.decode(), ask(bus, 32, 9))\n")
        self.assertEqual("0 0000:00:00.0 101\n", run_code(code).stdout)


class Time(unittest.TestCase):
    def test_an_events_time_is_the_cards_and_not_this_machines(self):
        code = ("import torch\n"
                "def timed(call):\n"
                "    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))\n"
                "    first.record(); call(); last.record(); last.synchronize()\n"
                "    return first.elapsed_time(last)\n"
                "print(timed(lambda: torch.cuda._sleep(3_000_000)))\n"
                "a = torch.zeros(1 << 28, device='cuda', dtype=torch.uint8)\n"
                "print(timed(lambda: a.copy_(a.clone())))\n")
        for schedule in SCHEDULES:
            slept, h100 = map(float, run_code(code, *schedule).stdout.split())
            self.assertTrue(2.0 <= slept < 2.01, slept)  # at 1.5 GHz
            _, rtx4090 = map(float, run_code(code, "--card", "rtx4090", *schedule).stdout.split())
            # A GiB in all: 256 MiB are read and written, twice.
            self.assertTrue(2 < rtx4090 / h100 < 5, (h100, rtx4090))
            self.assertTrue(0.3 < h100 < 0.6, h100)

    def test_a_question_is_answered_by_the_time_of_the_card(self):
        code = ("import torch\n"
                "event = torch.cuda.Event()\n"
                "torch.cuda._sleep(15_000_000)\n"
                "event.record()\n"
                "asked = 0\n"
                "while not event.query():\n"
                "    asked += 1\n"
                "print(asked, event.query())\n")
        # Each question costs the host more time: 1 + 2 + 4 … to 1,000 µs of the 10,000.
        self.assertEqual(run_code(code).stdout, "18 True\n")

    def test_the_end_tells_the_time_of_a_step_and_the_same_one_each_time(self):
        with tempfile.TemporaryDirectory() as folder:
            verdicts = []
            for name in ("first", "second"):
                file = pathlib.Path(folder) / name
                done = run_code(STEPS, "--no-values", "--json", file)
                self.assertRegex(done.stderr, r"simulated h100: at most .* page-locked; a step [\d.]+ us \(kernels "
                                              r"\d+ %, waits for other streams 0 %, ")
                verdicts.append(json.loads(file.read_text())["simulated"])
        self.assertEqual(verdicts[0], verdicts[1])
        self.assertEqual(verdicts[0]["card"], "h100")
        self.assertEqual(len(verdicts[0]["steps"]), 3)
        for step in verdicts[0]["steps"]:
            least = 2 * 4096**3 / 989e12 * 1e9  # at the peak that its data sheet says
            self.assertTrue(least < step["kernels_ns"] < 2 * least, step)
            self.assertLessEqual(step["kernels_ns"], step["step_ns"])

    def test_a_run_that_did_not_use_the_device_tells_no_time(self):
        self.assertNotIn("simulated", run_code("import torch\n").stderr)


class Trace(unittest.TestCase):
    def test_it_has_each_streams_work_in_the_cards_time(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, verdict = (pathlib.Path(folder) / name for name in ("trace.json", "v.json"))
            # Of a card whose copies the host has to wait for at last.
            done = run("--card", "a100", "--trace", trace, "--json", verdict,
                       PROGRAMS / "double_buffer.py")
            self.assertEqual(done.returncode, 0, done.stderr)
            events = json.loads(trace.read_text())["traceEvents"]
            simulated = json.loads(verdict.read_text())["simulated"]
        spans = [event for event in events if event["ph"] == "X"]
        self.assertEqual(round(1000 * max(span["ts"] + span["dur"] for span in spans)),
                         simulated["run_ns"])
        self.assertEqual(len({span["tid"] for span in spans}), 2)
        self.assertIn("aten::mul.Tensor", {span["name"] for span in spans})
        self.assertEqual({span["cat"] for span in spans}, {"kernel", "gpu_memcpy"})
        self.assertIn("a100", [event["args"].get("name") for event in events
                               if event["ph"] == "M"])
        allocated = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
        # What was asked for, which PyTorch's allocator rounds up to 512 bytes.
        self.assertLessEqual(max(allocated), simulated["allocated_bytes"])
        self.assertGreater(max(allocated), simulated["allocated_bytes"] // 2)
        self.assertGreaterEqual(min(allocated), 0)


class Refused(unittest.TestCase):
    def test_what_is_not_there_fails_by_its_name(self):
        for code, name in (("torch.ones(4, device='cuda').untyped_storage()._share_cuda_()",
                            "cudaIpcGetMemHandle"),
                           ("torch.cuda.cudart().cudaHostRegister(64, 64, 0)\n"
                            "torch.cuda.check_error(801)", "cudaHostRegister")):
            done = run_code(f"import torch\ntorch.ones(1, device='cuda')\n{code}\n")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(name, done.stderr)
            # As Python's own, the traceback begins in the script.
            self.assertRegex(done.stderr, r"^Traceback .*\n  File \"\S+/script\.py\", line [34]")
            self.assertIn("violations", done.stderr.splitlines()[-1])

    def test_what_failed_so_is_told_even_if_the_script_went_on(self):
        code = ("import torch\n"
                "torch.ones(1, device='cuda')\n"
                "for _ in range(2):\n"
                "    torch.cuda.cudart().cudaHostUnregister(64)\n")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "v.json"
            done = run_code(code, "--json", file)
            self.assertEqual(json.loads(file.read_text())["simulated"]["refused"],
                             {"cudaHostUnregister": 2})
        self.assertIn("so these calls failed: cudaHostUnregister (2 times)\n", done.stderr)

    def test_the_profiler_records_the_host_and_sees_no_gpu(self):
        code = ("import torch\n"
                "from torch.profiler import ProfilerActivity, profile\n"
                "with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as record:\n"
                "    torch.ones(1, device='cuda').add(1).item()\n"
                "print('aten::add' in {event.name for event in record.events()})\n")
        done = run_code(code)
        self.assertEqual(("True\n", 0), (done.stdout, done.returncode), done.stderr)

    def test_what_nvml_would_be_asked_has_an_answer_in_words(self):
        code = ("import torch\n"
                "for name in ('utilization', 'memory_usage', 'device_memory_used', 'temperature',\n"
                "             'power_draw', 'clock_rate', 'list_gpu_processes'):\n"
                "    try:\n"
                "        getattr(torch.cuda, name)()\n"
                "    except RuntimeError as error:\n"
                "        print(error)\n")
        printed = run_code(code).stdout.splitlines()
        self.assertEqual((len(printed), len(set(printed))), (7, 1), printed)
        self.assertIn("the virtual GPU has no NVML", printed[0])

    def test_a_real_gpu_is_not_hidden_unless_it_is_asked_for(self):
        # A machine whose /dev has the node of NVIDIA's driver.
        made = ("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && "
                "mknod -m 666 /dev/urandom c 1 9 && touch /dev/nvidiactl && exec \"$@\"")
        unshared = ["unshare", "-m", "sh", "-c", made, "sh"]
        if subprocess.run([*unshared, "true"], capture_output=True).returncode != 0:
            self.skipTest("no right to make such a /dev")
        with_gpu = [*unshared, *command("-c", "print('ran')")]
        done = subprocess.run(with_gpu, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        with_gpu.remove("--hide-gpu")
        done = subprocess.run(with_gpu, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (7, ""))
        self.assertIn("there is a real GPU", done.stderr)

    def test_bad_input_is_refused_before_python_starts(self):
        for words, why in ((("nowhere.py",), "nowhere.py: expected a Python script"),
                           ((), "expected a script"), (("-m",), "expected a module"),
                           (("--crad", "h100", "x.py"), "did you mean '--card'"),
                           (("--card", "h10", PROGRAMS / "training.py"), "h100"),
                           (("--side-first", "--main-first", "x.py"), "--main-first")):
            done = run(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)
        done = run("--json", "/nowhere/x.json", PROGRAMS / "training.py")
        self.assertEqual((done.returncode, done.stdout), (7, ""), done.stderr)
        self.assertIn("/nowhere/x.json", done.stderr)

    def test_the_scripts_status_and_arguments_are_its_own(self):
        done = run_code("import sys\nprint(sys.argv[1:], __name__)\nsys.exit(5)\n")
        self.assertEqual((done.returncode, done.stdout), (5, "[] __main__\n"), done.stderr)
        self.assertEqual(done.stderr, "ferry run: nothing was judged: CUDA was not used\n")

    def test_a_module_and_code_run_as_python_runs_them(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder) / "package"
            package.mkdir()
            (package / "__main__.py").write_text(
                "import sys\nfrom package import other\n"
                "print(sys.argv[1:], __name__, other.NAME, sys.argv[0].endswith('__main__.py'))\n")
            (package / "other.py").write_text("NAME = __name__\n")
            done = run("-m", "package", "--side-first", "x", cwd=folder)
            self.assertEqual((done.returncode, done.stdout), (
                0, "['--side-first', 'x'] __main__ package.other True\n"), done.stderr)
        code = "import sys\nclass A: pass\nprint(sys.argv, A.__module__)\nsys.exit(4)"
        done = run("-c", code, "-m")
        self.assertEqual((done.returncode, done.stdout), (4, "['-c', '-m'] __main__\n"),
                         done.stderr)

    def test_ctrl_c_ends_the_script_and_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script.py"
            script.write_text("import time\nprint('begun', flush=True)\ntime.sleep(300)\n")
            with subprocess.Popen(command(script), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, start_new_session=True) as process:
                self.assertEqual(process.stdout.readline(), "begun\n")
                os.killpg(process.pid, signal.SIGINT)
                said = process.communicate(timeout=100)[1]
            self.assertEqual(process.returncode, 130)
            self.assertRegex(said.splitlines()[-1], "nothing was judged: CUDA was not used")


class Judge(unittest.TestCase):
    """Nothing but the log shows a missing wait where all work runs at once."""

    def found(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "run.jsonl"
            done = run("--log", log, *options)
            checked = subprocess.run([FERRY, "check", log], capture_output=True, text=True)
            self.assertEqual(done.returncode, checked.returncode, checked.stdout)
        places = re.findall(r"(\S+) at \S+/double_buffer\.py:(\d+) in (\w+)", done.stderr)
        return done, [(what, int(line), function) for what, line, function in places]

    def test_a_right_double_buffer_is_clean_and_right_under_every_schedule(self):
        for schedule in SCHEDULES:
            done, places = self.found(*schedule, PROGRAMS / "double_buffer.py")
            self.assertEqual((done.returncode, done.stdout, places), (0, "True\n", []), done.stderr)

    def test_a_use_that_does_not_wait_for_the_load_is_reported_at_both_lines(self):
        done, places = self.found("--eager", PROGRAMS / "double_buffer.py", "--no-load")
        self.assertEqual((done.returncode, done.stdout), (1, "True\n"), done.stderr)
        self.assertEqual(places, [("aten::mul.Tensor", line_of("double_buffer.py", "the use"),
                                   "use"),
                                  ("copy", line_of("double_buffer.py", "the fill"), "fill")])

    def test_a_race_is_written_for_other_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("v.json", "v.sarif", "run.jsonl")]
            done = run("--json", files[0], "--sarif", files[1], "--log", files[2], "--eager",
                       PROGRAMS / "double_buffer.py", "--no-load")
            self.assertEqual(done.returncode, 1, done.stderr)
            verdict, sarif = (json.loads(file.read_text()) for file in files[:2])
            # As `ferry check` says it, and the time and the peak beside it.
            self.assertEqual(verdict.pop("simulated")["card"], "h100")
            self.assertEqual(verdict.pop("peak")["device"], 0)
            self.assertEqual(verdict.pop("run")["judged"], "all")
            for said, option in ((verdict, "--json"), (sarif, "--sarif")):
                checked = subprocess.run([FERRY, "check", option, files[2]], capture_output=True)
                self.assertEqual(json.loads(checked.stdout), said)
        race = verdict["violations"][0]
        found = [(race[which]["name"], race[which]["line"], race[which]["function"])
                 for which in ("operation", "previous_operation")]
        self.assertEqual(found, [
            ("aten::mul.Tensor", line_of("double_buffer.py", "the use"), "use"),
            ("copy", line_of("double_buffer.py", "the fill"), "fill")])
        self.assertEqual(race["operation"]["file"], str(PROGRAMS / "double_buffer.py"))
        result = sarif["runs"][0]["results"][0]
        lines = [result[which][0]["physicalLocation"]["region"]["startLine"]
                 for which in ("locations", "relatedLocations")]
        self.assertEqual(lines, [line for _, line, _ in found])
        self.assertIn(race["fix"], result["message"]["text"])

    def test_a_script_without_a_gpu_has_a_verdict_without_violations(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "v.json"
            done = run("--json", file, "--require-judged", "-c", "pass")
            self.assertEqual(done.returncode, 8, done.stderr)
            self.assertEqual(done.stderr, "ferry run: nothing was judged: CUDA was not used\n")
            said = json.loads(file.read_text())
            self.assertEqual(said["violations"], [])
            self.assertEqual(said["run"], {"judged": "nothing", "asking_children": 0,
                                           "reached_its_end": True})

    def test_a_refill_that_does_not_wait_for_the_use_is_reported_at_both_lines(self):
        done, places = self.found("--eager", PROGRAMS / "double_buffer.py", "--no-use")
        self.assertEqual((done.returncode, done.stdout), (1, "True\n"), done.stderr)
        self.assertEqual(places, [("copy", line_of("double_buffer.py", "the fill"), "fill"),
                                  ("aten::mul.Tensor", line_of("double_buffer.py", "the use"),
                                   "use")])

    def test_streams_far_apart_give_wrong_values_where_a_wait_is_missing(self):
        for schedule, missing in (("--main-first", "--no-load"), ("--side-first", "--no-use")):
            done, _ = self.found(schedule, PROGRAMS / "double_buffer.py", missing)
            self.assertEqual((done.returncode, done.stdout), (1, "False\n"), done.stderr)

    def test_what_the_allocator_asks_for_a_blocks_sake_orders_that_block_alone(self):
        program = "recorded_use.py"
        lines = {mark: line_of(program, mark) for mark in ("the work", "the reuse", "the use")}
        for missing, later in (([], None), (["--no-wait"], "the use"),
                               (["--no-record"], "the reuse")):
            done = run(PROGRAMS / program, *missing)
            self.assertEqual(done.returncode, 0 if later is None else 1, done.stderr)
            report, _, _ = done.stderr.partition("fix:")
            found = [int(line) for line in re.findall(r"recorded_use\.py:(\d+)", report)]
            self.assertEqual(found, [lines[later], lines["the work"]] if later else [],
                             done.stderr)

    def test_the_cpus_own_use_of_pinned_memory_is_clean_where_it_waits(self):
        for schedule in SCHEDULES:
            done = run(*schedule, PROGRAMS / "pinned.py")
            self.assertEqual((done.returncode, done.stdout), (0, "128.0 64.0 12.0\n"), done.stderr)

    def test_the_cpus_own_use_of_pinned_memory_is_reported_where_it_does_not_wait(self):
        for missing, access, mark in (("--no-read-wait", "aten::sum.dim_IntList", "the read"),
                                      ("--no-write-wait", "aten::add_.Tensor", "the write"),
                                      ("--no-scalar-wait", "aten::mul.Tensor", "the number")):
            done = run("--eager", PROGRAMS / "pinned.py", missing)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("1 violations", done.stderr)
            line = line_of("pinned.py", mark)
            self.assertRegex(done.stderr, rf"{access} at \S+pinned\.py:{line} in \w+ on the host")
            self.assertIn("synchronise the host with stream \"default\"", done.stderr)

    def test_a_result_that_is_read_too_early_is_wrong(self):
        done = run("--main-first", PROGRAMS / "pinned.py", "--no-read-wait")
        self.assertEqual(done.returncode, 1, done.stderr)
        late = run("--side-first", PROGRAMS / "pinned.py", "--no-read-wait")
        self.assertNotEqual(late.stdout.split()[0], "128.0", late.stderr)

    def test_an_operator_of_backward_is_named_by_the_line_of_its_forward(self):
        done = run_code("import torch\n"
                        "x = torch.ones(64, device='cuda', requires_grad=True)\n"
                        "y = torch.sin(x)\n"
                        "y.sum().backward()\n"
                        "with torch.cuda.stream(torch.cuda.Stream()):\n"
                        "    x.grad.mul_(2)\n", "--eager")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"aten::mul_\.Tensor at \S+script\.py:6 in <module>")
        self.assertRegex(done.stderr, r"at the backward of \S+script\.py:3 in <module>")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
