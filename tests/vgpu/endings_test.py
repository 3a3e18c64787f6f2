"""Whatever way a run ends, its last line says what was judged, and what was not.

    endings_test.py FERRY PYTHON
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

FERRY, PYTHON = sys.argv[1:3]

# Children that ask need no PyTorch: the runtime is preloaded, and they ask it.
BEGIN = """
import os, signal, subprocess, sys, time, torch
ASK = "import ctypes; ctypes.CDLL(None).cudaGetDeviceCount(ctypes.byref(ctypes.c_int()))"
torch.ones(8, device="cuda") + 1
"""
FORKS_AND_BECOMES_ANOTHER = BEGIN + """
if os.fork() == 0:
    torch.cuda.is_available()
    torch.cuda.device_count()
    sys.exit(9)  # through the launcher's own end, which is not this child's
os.wait()
for _ in range(2):
    subprocess.run([sys.executable, "-c", ASK + ";" + ASK], check=True)
subprocess.run([sys.executable, "-c", "pass"], check=True)
os.execv(sys.executable, [sys.executable, "-c", ASK])
"""
IS_ENDED = BEGIN + "print('begun', flush=True)\ntime.sleep(300)\n"


def start(code, folder, *options):
    script = pathlib.Path(folder) / "script.py"
    script.write_text(code)
    words = [FERRY, "run", "--python", PYTHON, "--hide-gpu", *map(str, options), script]
    return subprocess.Popen(words, env=dict(os.environ, OMP_NUM_THREADS="1"), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def operations(log):
    checked = subprocess.run([FERRY, "check", "--json", log], capture_output=True, text=True)
    return json.loads(checked.stdout)["operations"]


class Ending(unittest.TestCase):
    def test_children_that_ask_and_a_program_that_takes_the_scripts_place_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            verdict, log = (pathlib.Path(folder) / name for name in ("v.json", "run.jsonl"))
            process = start(FORKS_AND_BECOMES_ANOTHER, folder, "--require-judged", "--json",
                            verdict, "--log", log)
            said = process.communicate(timeout=100)[1]
            # Each of the script's own operations is there, and nothing of the child's.
            self.assertEqual(operations(log), json.loads(verdict.read_text())["operations"])
            self.assertGreater(operations(log), 3)
            self.assertEqual(json.loads(verdict.read_text())["run"],
                             {"judged": "in part", "asking_children": 4, "reached_its_end": False})
        self.assertRegex(said.splitlines()[-1],
                         r"operations on 1 streams until the script ended without Python's own "
                         r"end: 0 violations, in \S+; not judged: 4 child processes asked")
        self.assertEqual(process.returncode, 8, said)

    def test_a_time_limit_ends_the_script_and_its_log_is_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            process = start(IS_ENDED, folder)
            self.assertEqual(process.stdout.readline(), "begun\n")
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=100)[1]
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, said)
        self.assertRegex(said.splitlines()[-1],
                         r"[1-9]\d* operations on 1 streams until SIGTERM ended the script: 0 viol")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
