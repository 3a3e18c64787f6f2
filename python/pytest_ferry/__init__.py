"""The plugin for `pytest --ferry`: it runs the CUDA code of tests on the virtual GPU and judges it.

The plugin starts pytest again under `ferry run`, with the same arguments. There each test has a
stream log of its own, which begins after all earlier work is done. A race, or another error in the
order of streams, fails the test; the report has both places and the missing wait. A test that is
skipped, or that fails for another reason, keeps its outcome, and the report is added as a section.

A log does not contain what child processes do: a test whose children asked for a device gets a
section that says so, and is counted. Work that a fixture does once belongs to the first test that
uses it. Work that modules do during collection is judged by `ferry run`, at the end.

The plugin is not part of torch_ferry, because pytest imports its plugins in every run, and torch
takes seconds to import.
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
                    help="run the CUDA code of the tests on a virtual GPU; a test with a race "
                         "fails")
    group.addoption("--ferry-run", metavar="OPTIONS", default="",
                    help="options for `ferry run`, as one argument: "
                         "\"--side-first --card rtx4090\"")
    group.addoption("--ferry-logs", metavar="FOLDER",
                    help="keep the stream log of each test in FOLDER, for `ferry check`")
    group.addoption("--ferry-program", metavar="PATH",
                    help="the program ferry, for example of a build from source (default: "
                         "$FERRY_PROGRAM, else the one in torch_ferry, else `ferry` on PATH)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if not config.option.ferry or _on_virtual_gpu():
        return None
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--ferry runs all tests in one process: remove the option -n")
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
            raise pytest.UsageError(f"{path}: expected the program ferry, but this cannot be run")
    found = own if own and os.path.exists(own) else shutil.which("ferry")
    if not found:
        raise pytest.UsageError("--ferry needs the program ferry, and none was found: give its "
                                "path with --ferry-program")
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
        # The path is absolute because a test may change the working directory.
        self._folder = pathlib.Path(logs if logs else self._temporary.name).absolute()
        self._seen, self._used, self._faulty, self._asking, self._unseen = set(), 0, 0, 0, 0

    def pytest_report_header(self):
        return "ferry: CUDA code runs on a virtual GPU, and is judged for each test"

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
                                        "tests; they asked for a device, and child processes have "
                                        "none")
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
            item.add_report_section("call", "ferry", f"not judged: {asking} child processes; they "
                                                     "asked for a device, and child processes "
                                                     "have none")

    def _new(self):
        """Returns the report of the violations found since the last call; "" if there are none."""
        self._verdict = self._parts.judge()
        violations = [each for each in self._verdict["violations"]
                      if each["message"] not in self._seen]
        if not violations:
            return ""
        self._seen.update(each["message"] for each in violations)
        lines = [f"{each['message']}\n  fix: {each['fix']}" for each in violations]
        if not self._kept:
            lines.append("(line N) is a line of the stream log; --ferry-logs FOLDER keeps the log")
        return "\n".join(["ferry: the streams are not in a safe order", *lines])

    def _name(self, item):
        if not self._kept:
            return "test.jsonl"
        return re.sub(r"[^\w.-]+", "_", item.nodeid)[-200:] + ".jsonl"
