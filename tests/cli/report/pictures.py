"""Makes the pictures of docs/guides/report.md anew: parts of pages of `ferry report`, in a headless
Chromium.

    python3 tests/cli/report/pictures.py FERRY [FOLDER]    to docs/guides where no folder is named
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from browser import chromium

WIDTH = 1000
# name: arguments, the policy that is chosen, sections that are shown
PICTURES = {
    "report-llama3-8b": (["llama3-8b", "--card", "h100", "--policy", "keep,best"], "best",
                         ["h-memory", "h-lanes"]),
    "report-unet": (["unet", "--card", "rtx4090", "--budget", "1.5GiB", "--policy",
                     "keep,mixed,best"], "mixed", ["h-lanes", "h-modules"]),
}
ONLY = """
<script>
{
for (const tile of document.querySelectorAll("#tiles button")) {
  if (tile.textContent.trim().startsWith(CHOSEN)) document.getElementById(tile.id).click();
}
for (const part of document.querySelectorAll("header, section")) {
  if (!SHOWN.includes(part.getAttribute("aria-labelledby"))) part.remove();
}
const depth = document.querySelector("#depth");
if (depth) {
  depth.value = "1";
  depth.dispatchEvent(new Event("change"));
}
document.body.dataset.chosen = document.querySelector(".chosen").textContent;
document.body.dataset.height = Math.ceil(document.querySelector("main").getBoundingClientRect()
  .bottom + 20);
}
</script>
"""


def part_of(page, chosen, shown):
    script = ONLY.replace("CHOSEN", repr(chosen)).replace("SHOWN", repr(shown))
    page.write_text(page.read_text().replace("</body>", script + "</body>"))
    dom, said = chromium(f"--window-size={WIDTH},2000", "--dump-dom", page.as_uri())
    if said or f'data-chosen="{chosen}"' not in dom:
        raise RuntimeError(f"{page}: {chosen} is not shown: {said}")
    return int(re.search(r'data-height="(\d+)"', dom)[1])


def main(ferry, folder="docs/guides"):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as pages:
        for name, (arguments, chosen, shown) in PICTURES.items():
            page = pathlib.Path(pages, f"{name}.html")
            made = subprocess.run([ferry, "report", "--no-curve", "-o", page, *arguments],
                                  stdout=subprocess.PIPE, check=False)  # fmt: skip
            if made.returncode not in (0, 3):
                return made.returncode
            height = part_of(page, chosen, shown)
            picture = pathlib.Path(folder, f"{name}.png").resolve()
            picture.unlink(missing_ok=True)
            _, said = chromium(f"--window-size={WIDTH},{height}",
                               "--blink-settings=preferredColorScheme=1",
                               f"--screenshot={picture}", page.as_uri())  # fmt: skip
            if not picture.exists():
                raise RuntimeError(f"{picture}: not made: {said}")
            print(f"{picture}: {WIDTH} x {height}, to look at")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
