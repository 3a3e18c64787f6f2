"""The site's input, made of the repository's pages.

MkDocs takes one folder of pages. Ferry's pages lie in docs/ and beside the code, and link to one
another and to source files by relative paths. So pages are copied, and their links follow:

    docs/NAME        becomes NAME
    OTHER/NAME.md    becomes repository/OTHER/NAME.md
    a source file to which a page links becomes repository/PATH.md, a page that shows its text
    a link to a folder leads to its README.md, or is text where it has none

Links that lead nowhere stay as they are: MkDocs reports them.
"""

import pathlib
import posixpath
import re
import shutil
import subprocess

CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
LIST_ITEM = re.compile(r"[*+-] |\d+\. ")
COPIED = {".png", ".svg"}
LANGUAGES = {".h": "cpp", ".cpp": "cpp", ".cu": "cpp", ".py": "python", ".pyi": "python",
             ".cmake": "cmake", ".toml": "toml", ".json": "json", ".jsonl": "json",
             ".sh": "bash", ".yml": "yaml"}


def listed(root):
    """The repository's files, as Git lists them."""
    command = ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    return {name for name in names if name and (root / name).is_file()}


def place_of(path):
    """Where a file of the repository is in the input."""
    if pathlib.PurePosixPath(path).suffix not in COPIED | {".md"}:
        return f"repository/{path}.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def prose(text):
    """(line, whether it is prose and no example) of each line."""
    fence, before, example = None, "", False
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence:
            yield line, False
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        elif found:
            fence = found[1]
            yield line, False
        else:
            starts = line.startswith("    ") and not before.strip()
            example = starts or (example and (line.startswith("    ") or not line.strip()))
            yield line, not example
        before = line


class Site:
    def __init__(self, root, files=None):
        self.root = pathlib.Path(root)
        self.files = listed(self.root) if files is None else set(files)
        self.folders = {str(parent) for file in self.files
                        for parent in pathlib.PurePosixPath(file).parents}
        self.sources = set()  # to which pages link

    def pages(self):
        return sorted(file for file in self.files
                      if file.endswith(".md") and not file.startswith("docs/site/"))

    def write(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        for page in self.pages():
            self._put(folder, page, self.page(page))
        for source in sorted(self.sources):
            if pathlib.PurePosixPath(source).suffix in COPIED:
                target = folder / place_of(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.root / source, target)
            else:
                self._put(folder, source, self.source_page(source))

    def _put(self, folder, path, text):
        target = folder / place_of(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def page(self, path):
        """The page's text as the site has it."""
        lines, before, inside = [], "", ""  # inside: what an item's further lines begin with
        for line, is_prose in prose((self.root / path).read_text(encoding="utf-8")):
            item = LIST_ITEM.match(line) if is_prose else None
            if item:
                if before.strip() and not inside:
                    lines.append("")  # Markdown in Python needs it before a list
                inside = " " * len(item[0])
            elif line.strip() and not line.startswith(inside):
                inside = ""
            before = line
            if is_prose:
                line = self._with_links(path, line)
            if inside and not item and line.strip():
                line = "    " + line.removeprefix(inside)  # as many as it needs in an item
            lines.append(line)
        # The first page is alone in its part of the navigation.
        return "---\nhide: [navigation]\n---\n\n" * (path == "docs/index.md") + "\n".join(lines)

    def _with_links(self, page, line):
        code = [span.span() for span in CODE_SPAN.finditer(line)]

        def link(found):
            if any(first < found.start() < last for first, last in code):
                return found[0]
            return self._link(page, found)
        return LINK.sub(link, line)

    def _link(self, page, found):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[1]))
        if target in self.folders:
            readme = posixpath.normpath(posixpath.join(target, "README.md"))
            if target in ("docs", "."):
                target = "docs/index.md"
            elif readme in self.files:
                target = readme
            else:
                return f"] (`{target}/`)"
        if target not in self.files:
            return found[0]
        if not target.endswith(".md"):
            self.sources.add(target)
        here = posixpath.dirname(place_of(page)) or "."
        return f"]({posixpath.relpath(place_of(target), here)}{found[2] or ''})"

    def source_page(self, path):
        """A page that shows a file. The search leaves it out."""
        text = (self.root / path).read_text(encoding="utf-8", errors="replace").rstrip("\n")
        fence = "`" * max(4, 1 + max(map(len, re.findall("`+", text)), default=0))
        language = LANGUAGES.get(pathlib.PurePosixPath(path).suffix, "text")
        return (f"---\nsearch:\n  exclude: true\nhide: [navigation]\n---\n\n# {path}\n\n"
                f"{fence}{language}\n{text}\n{fence}\n")
