"""`pytest --ferry`: every test's use of CUDA on the virtual GPU, and judged by itself.

pytest is started again under `ferry run`, with the same arguments. There the log of the streams
begins anew with each test, after all earlier work was waited for; a race, or another mistake of a
test's own order, fails it, with both places and the wait that is missing. A test that is skipped or
fails for a reason of its own stays so, and has the report as a section. What child processes do is
in no log: a test whose children asked for a device has a section that says so, and is counted. What
a fixture does for the first time is part of the test that asked for it; what modules do while they
are collected is judged by `ferry run`, at the end.

Not in torch_ferry, for pytest imports its plugins always, and torch takes seconds.
"""

import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("ferry", "Ferry's virtual GPU")
    group.addoption("--ferry", action="store_true",
                    help="run the tests' CUDA on a virtual GPU; a race fails its test")
    group.addoption("--ferry-run", metavar="OPTIONS", default="",
                    help="of `ferry run`, as one word: \"--side-first --card rtx4090\"")
    group.addoption("--ferry-logs", metavar="FOLDER",
                    help="keep each test's log of its streams there, for `ferry check`")
    group.addoption("--ferry-program", metavar="PATH",
                    help="the program ferry, of a build of its tree (else $FERRY_PROGRAM, else "
                         "torch_ferry's, else one on the path)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if not config.option.ferry or _on_virtual_gpu():
        return None
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--ferry runs the tests in one process: leave -n out")
    command = [_program(config.option.ferry_program), "run", "--python", sys.executable,
               *shlex.split(config.option.ferry_run),
               "-m", "pytest", *config.invocation_params.args]
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    sys.stdout.flush()
    return subprocess.call(command, cwd=config.invocation_params.dir)


def pytest_configure(config):
    if config.option.ferry and _on_virtual_gpu():
        config.pluginmanager.register(_Judge(config.option.ferry_logs), "ferry-judge")


def _on_virtual_gpu():
    return "ferry_virtual_gpu" in sys.modules


def _program(given):
    package = importlib.util.find_spec("torch_ferry")
    own = package and os.path.join(package.submodule_search_locations[0], "bin", "ferry")
    for path in (given, os.environ.get("FERRY_PROGRAM")):
        if path:
            if shutil.which(path):
                return path
            raise pytest.UsageError(f"{path}: expected the program ferry: it cannot be run")
    found = own if own and os.path.exists(own) else shutil.which("ferry")
    if not found:
        raise pytest.UsageError("--ferry needs the program ferry: name it by --ferry-program")
    return found


class _Judge:
    def __init__(self, logs):
        import ferry_virtual_gpu
        self._parts = ferry_virtual_gpu.parts
        self._kept = bool(logs)
        if logs:
            pathlib.Path(logs).mkdir(parents=True, exist_ok=True)
        else:
            self._temporary = tempfile.TemporaryDirectory(prefix="ferry-pytest-")
        # Absolute, for a test may change folders.
        self._folder = pathlib.Path(logs if logs else self._temporary.name).absolute()
        self._seen, self._used, self._faulty, self._asking, self._unseen = set(), 0, 0, 0, 0

    def pytest_report_header(self):
        return "ferry: CUDA is a virtual GPU, and each test's use of it is judged"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self._seen.clear()
        self._asked_before = self._parts.asking()
        self._parts.begin(self._folder / self._name(item))
        result = yield
        verdict = self._parts.judge()
        self._used += verdict["operations"] > 0
        self._unseen += verdict["unjudged_views"] > 0
        self._faulty += bool(self._seen)
        self._asking += self._parts.asking() > self._asked_before
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        try:
            return (yield from self._judged(item, "call"))
        finally:
            self._tell_unjudged(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        return (yield from self._judged(item, "teardown"))

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.write_line(f"ferry: {self._used} tests used the virtual GPU, "
                                    f"{self._faulty} of them not in a safe order")
        if self._asking:
            terminalreporter.write_line(f"ferry: not judged: the child processes of {self._asking} "
                                        "tests, which asked for a device and have none")
        if self._unseen:
            terminalreporter.write_line(f"ferry: not judged: what the host did in {self._unseen} "
                                        "tests through views of page-locked memory, while work on "
                                        "it was pending")

    def _judged(self, item, when):
        try:
            result = yield
        except BaseException:
            report = self._new()
            if report:
                item.add_report_section(when, "ferry", report)
            raise
        report = self._new()
        if report:
            pytest.fail(report, pytrace=False)
        return result

    def _tell_unjudged(self, item):
        for each in self._verdict["unjudged"]:
            item.add_report_section("call", "ferry", f"not judged: {each['message']}")
        asking = self._parts.asking() - self._asked_before
        if asking:
            item.add_report_section("call", "ferry", f"not judged: {asking} child processes that "
                                                     "asked for a device, which they do not have")

    def _new(self):
        """What is found now and was not before, in words; none if nothing is."""
        self._verdict = self._parts.judge()
        violations = [each for each in self._verdict["violations"]
                      if each["message"] not in self._seen]
        if not violations:
            return ""
        self._seen.update(each["message"] for each in violations)
        lines = [f"{each['message']}\n  fix: {each['fix']}" for each in violations]
        if not self._kept:
            lines.append("(line N) is a line of the log, which --ferry-logs FOLDER keeps")
        return "\n".join(["ferry: the streams are not in a safe order", *lines])

    def _name(self, item):
        if not self._kept:
            return "test.jsonl"
        return re.sub(r"[^\w.-]+", "_", item.nodeid)[-200:] + ".jsonl"
