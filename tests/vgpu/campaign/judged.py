"""A program on the virtual GPU, and what was said of it."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile

SCHEDULES = ((), ("--side-first",), ("--main-first",))


@dataclasses.dataclass(frozen=True)
class Judged:
    status: int
    printed: str
    violations: tuple
    operations: int
    told: str

    def kinds(self):
        return {each["kind"] for each in self.violations}

    def last_line(self):
        lines = self.printed.splitlines()
        return lines[-1] if lines else ""


@dataclasses.dataclass(frozen=True)
class Tools:
    ferry: str
    python: str
    plugin: pathlib.Path    # the folder of pytest_ferry and torch_ferry
    packages: pathlib.Path  # a folder for each published version

    def run(self, schedule, *words, path=()):
        """Under that schedule, with these folders first on Python's path, and Ferry's last."""
        environment = dict(os.environ, OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false",
                           PYTHONPATH=os.pathsep.join(map(str, (*path, self.plugin))))
        with tempfile.TemporaryDirectory() as folder:
            verdict = pathlib.Path(folder) / "verdict.json"
            command = [self.ferry, "run", "--python", self.python, "--hide-gpu", *schedule,
                       "--json", verdict, *words]
            done = subprocess.run(list(map(str, command)), env=environment, capture_output=True,
                                  text=True, timeout=600, check=False)
            found = json.loads(verdict.read_text()) if verdict.exists() else {}
        return Judged(done.returncode, done.stdout, tuple(found.get("violations", ())),
                      found.get("operations", 0), done.stderr)

    def folder_of(self, requirement):
        return self.packages / requirement.replace("==", "-")
