"""Parts, one after the other, within a time: what is done is not done again, what fails or hangs
stops nothing but itself."""

import dataclasses
import datetime
import json
import os
import signal
import subprocess
import time

# What a part needs at least to be worth starting, and what is kept for the end.
LEAST_SECONDS = 5
LAST_SECONDS = 10


@dataclasses.dataclass(frozen=True)
class Part:
    """One thing to prove or to measure: a script for bash. Its folder is $PART, where it may write
    summary.md and any other small file; $BIN, $BUNDLE, $PYTHON, $TORCH are in its environment."""
    name: str
    kind: str     # "proof" or "figure"
    limit: int    # seconds
    script: str
    needs: tuple = ()
    # Exit codes that are answers.
    good: tuple = (0,)


class Mixed(Exception):
    """Results of the virtual GPU would stand for a GPU's, or the other way round."""


class State:
    """What became of each part, in a file that is whole at any time."""

    def __init__(self, path, virtual=False):
        self.path, self.virtual = path, virtual
        known = json.loads(path.read_text()) if path.exists() else {"virtual": virtual, "parts": {}}
        if known["virtual"] != virtual:
            raise Mixed(f"{path.parent}: results of {'the virtual' if known['virtual'] else 'a real'} "
                        f"GPU; expected those of {'the virtual one' if virtual else 'a real one'}")
        self.parts = known["parts"]

    def status(self, name):
        return self.parts.get(name, {}).get("status", "left")

    def set(self, name, **facts):
        self.parts[name] = facts
        written = self.path.with_suffix(".new")
        results = {"virtual": self.virtual, "parts": self.parts}
        written.write_text(json.dumps(results, indent=1) + "\n")
        written.replace(self.path)

    def failed(self, parts):
        return [part.name for part in parts if self.status(part.name) in ("failed", "hung")]

    def sentence(self, parts):
        count = {}
        for part in parts:
            count[self.status(part.name)] = count.get(self.status(part.name), 0) + 1
        order = ("passed", "failed", "hung", "skipped", "left")
        return ", ".join(f"{count[status]} {status}" for status in order if status in count)


def in_order(parts, state, only):
    """What is left comes first, then what failed."""
    if only:
        return [part for part in parts if part.name in only]
    left = [part for part in parts if state.status(part.name) == "left"]
    failed = set(state.failed(parts))
    return left + [part for part in parts if part.name in failed]


class Runner:
    def __init__(self, machine, state, out, seconds, clock=time.monotonic):
        self.machine, self.state, self.out = machine, state, out
        self.clock = clock
        self.end = clock() + seconds

    def run(self, parts, only=None):
        for part in in_order(parts, self.state, only):
            remaining = self.end - self.clock() - LAST_SECONDS
            if remaining < LEAST_SECONDS:
                break
            lacking = [why for why in map(self.machine.lacks, part.needs) if why]
            if lacking:
                self._note(part, "skipped", reason=lacking[0])
                continue
            self._run(part, remaining)

    def _run(self, part, remaining):
        folder = self.out / "parts" / part.name
        folder.mkdir(parents=True, exist_ok=True)
        begin = self.clock()
        code = self._execute(part, folder, min(part.limit, remaining))
        seconds = round(self.clock() - begin, 1)
        if code is None and remaining < part.limit:
            return self._note(part, "left", reason="the call's time was up", seconds=seconds)
        if code is None:
            return self._note(part, "hung", reason=f"over {part.limit} s", seconds=seconds)
        status = "passed" if code in part.good else "failed"
        self._note(part, status, exit=code, seconds=seconds)

    def _execute(self, part, folder, limit):
        """Its exit code, or None where it took too long. All that it started ends with it."""
        environment = {**self.machine.environment, "PART": str(folder.resolve())}
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            process = subprocess.Popen(
                [self.machine.tools["bash"], "-euo", "pipefail", "-c", part.script],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder, env=environment,
                start_new_session=True)
            try:
                return process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                return None
            finally:
                self._end(process)

    @staticmethod
    def _end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def _note(self, part, status, **facts):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self.state.set(part.name, status=status, at=now, on=self.machine.headline(), **facts)
        why = facts.get("reason") or (f"exit {facts['exit']}" if status == "failed" else "")
        took = f"{facts['seconds']:.0f} s" if "seconds" in facts else ""
        print(f"{part.name:24} {status:8} {took:>6}  {why}".rstrip(), flush=True)
