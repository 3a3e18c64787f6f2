"""The C++ files as clang-format writes them, where its version is installed that wrote them."""

import concurrent.futures
import re
import shutil
import subprocess

from tree import Finding

VERSION = "14"  # others break some lines elsewhere
PROCESSES = 2
BATCH = 40  # files a call: a call costs as much as some files
WRONG = re.compile(r"(.+?):(\d+):\d+: error: ")


def skipped():
    """Why formatting cannot be judged here, or None."""
    if not shutil.which("clang-format"):
        return "clang-format is not installed"
    run = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True)
    version = re.search(r"version (\d+)", run.stdout)
    if not version or version[1] != VERSION:
        return f"clang-format is {version[1] if version else 'of no known version'}, not {VERSION}"
    return None


def judge(root, paths):
    """The lines that would be written differently: {path: [line]}."""
    command = ["clang-format", "--dry-run", "--Werror", *paths]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    found = {}
    for match in map(WRONG.match, run.stderr.split("\n")):
        if match:
            found.setdefault(match[1], []).append(int(match[2]))
    if run.returncode and not found:
        raise RuntimeError(f"clang-format failed: {run.stderr.strip()}")
    return found


def check(tree):
    files = tree.cpp_files
    batches = [files[i : i + BATCH] for i in range(0, len(files), BATCH)]
    found = []
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        for wrong in pool.map(lambda batch: judge(tree.root, batch), batches):
            for path, lines in wrong.items():
                what = f"not as clang-format writes it ({len(lines)} in all)"
                found.append(Finding(path, lines[0], what, "./dev format"))
    return found
