"""Builds the pages as a site that is read without a network: build/docs/index.html.

    python3 docs/site/build.py

The site is MkDocs' with Material's theme; requirements.lock pins both, in an environment beside
LibTorch's. Doxygen, where it is installed, makes pages of the public headers in build/docs/cpp.
A link or an anchor that leads nowhere, a page that the navigation does not have, and anything that
a page would load from the network is an error: exit 1. The site is there to look at all the same.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

from pages_input import Site

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INPUT = ROOT / "build/site-input"
OUTPUT = ROOT / "build/docs"
CPP_PAGES = "`build/docs/cpp/files.html`"  # as docs/reference/cpp.md names them
HEADERS = ("real/include/ferry", "verify/include/ferry")

# Ferry's comments have two slashes. Doxygen is given three before what they describe, three and <
# behind it, the head of a file as the file's, and examples (three spaces) as Markdown has them.
FILTER = " ".join([
    r"sed -E -e '1s,^// ,/// \\file\n/// ,'",
    r"-e 's,^( *)//(   +),\1///     \2,'",
    r"-e 's,^( *)//( |$),\1///\2,'",
    r"-e 's,^(class [A-Za-z]+;) +//.*,\1,'",
    r"-e 's,([;\,{]) +// ,\1 ///< ,'"])
DOXYGEN = f"""
PROJECT_NAME = Ferry
INPUT = {" ".join(HEADERS)}
STRIP_FROM_PATH = {" ".join(str(pathlib.PurePath(each).parent) for each in HEADERS)}
EXCLUDE_SYMBOLS = *_impl *_impl::*
OUTPUT_DIRECTORY = {INPUT}
HTML_OUTPUT = cpp
GENERATE_LATEX = NO
HAVE_DOT = NO
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
QUIET = YES
WARNINGS = NO
HTML_TIMESTAMP = NO
INPUT_FILTER = "{FILTER}"
PREDEFINED = "TORCH_ARG(type,name)=type name"
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
"""

# Matches what a page loads from another host. Links that a reader may follow are no match.
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\"' >]+"
                    r"|<link\b(?![^>]*rel=[\"']?(?:canonical|next|prev))[^>]*"
                    r"href=[\"']?(?:https?:)?//[^\"' >]+|url\([\"']?(?:https?:)?//[^)]+")


def python():
    """The environment's interpreter; the environment is made where it is not, or is another's."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "ferry/site"
    lock = HERE / "requirements.lock"
    stamp = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    installed = folder / "installed"
    interpreter = folder / "bin/python3"
    if not installed.exists() or installed.read_text() != stamp:
        print(f"docs: installing MkDocs in {folder}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        subprocess.run([interpreter, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                        "--no-cache-dir", "--no-deps", "--require-hashes", "-r", lock], check=True)
        installed.write_text(stamp)
    return interpreter


def doxygen():
    """The pages of the C++ headers, as part of the input; MkDocs copies them."""
    if shutil.which("doxygen") is None:
        print("docs: no doxygen (Debian's package has this name): no pages of the C++ headers",
              file=sys.stderr)
        return
    subprocess.run(["doxygen", "-"], input=DOXYGEN, text=True, cwd=ROOT, check=True,
                   stderr=subprocess.DEVNULL)
    page = INPUT / "reference/cpp.md"
    if page.exists():
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(CPP_PAGES, "[these pages](../cpp/files.html)"), "utf-8")


def stage():
    Site(ROOT).write(INPUT)
    assets = INPUT / "assets"
    assets.mkdir(exist_ok=True)
    for name in ("ferry.css", "iframe-worker.js"):
        shutil.copyfile(HERE / name, assets / name)


def loaded(folder):
    """(file, what it would load from the network) of each."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".css"):
            for found in LOADED.findall(path.read_text(encoding="utf-8", errors="replace")):
                yield path.relative_to(folder), found


def main():
    interpreter = python()
    stage()
    doxygen()
    built = subprocess.run([interpreter, "-m", "mkdocs", "build", "--strict", "--clean",
                            "-f", HERE / "mkdocs.yml"], check=False,
                           env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    status = built.returncode
    for path, what in loaded(OUTPUT):
        print(f"docs: {path} would load {what}", file=sys.stderr)
        status = 1
    if (OUTPUT / "index.html").exists():
        print(f"docs: {OUTPUT / 'index.html'}{' has faults' if status else ''}")
    return status


if __name__ == "__main__":
    sys.exit(main())
