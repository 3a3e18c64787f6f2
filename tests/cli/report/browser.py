"""Opens pages of `ferry report` in a headless Chromium, light and dark, and uses them.

    python3 tests/cli/report/browser.py FERRY FOLDER    pages and pictures go to FOLDER, to look at

A copy of each page has one more script, which clicks and types as a user does and notes what is
seen. The page must have said nothing on the console, and must show what `ferry plan` prints.
"""

import html
import json
import pathlib
import re
import subprocess
import sys

PAGES = {
    "llama3-8b": ["llama3-8b", "--card", "h100"],
    "unet": ["unet", "--card", "rtx4090", "--budget", "1.5GiB"],
    "gpt2": ["gpt2", "--card", "a100", "--policy", "keep,offload", "--no-curve"],
}
HOSTILE = '</script><i id="injected"></i><script>document.title="injected"</script>&amp;<!--'
WIDTH, HEIGHT = 1150, 4200

USES = """
<script>
const noted = { chosen: [], tips: [], sections: {}, depths: [] };
for (const section of document.querySelectorAll("section")) {
  noted.sections[section.getAttribute("aria-labelledby")] =
    section.querySelectorAll("svg path, svg rect, td, li, #curve p").length;
}
noted.rows = [...document.querySelectorAll("#policies tbody tr")].map((row) =>
  [...row.cells].map((cell) => cell.textContent));
noted.answer = document.querySelector(".answer").textContent;
noted.scheme = getComputedStyle(document.body).backgroundColor;
const press = (element, key) => element.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
for (const tile of [...document.querySelectorAll("#tiles button")]) {
  document.getElementById(tile.id).click();
  noted.chosen.push(document.querySelector(".chosen").textContent);
  for (const place of ["memory", "lanes"]) {
    const picture = document.querySelector(`#${place} svg[tabindex]`);
    picture.focus();
    for (const key of ["Home", "PageDown", "ArrowRight", "ArrowLeft", "End"]) press(picture, key);
    noted.tips.push(document.getElementById("tip").textContent);
    press(picture, "Escape");
  }
}
for (const option of [...document.querySelectorAll("#depth option")]) {
  const select = document.getElementById("depth");
  select.value = option.value;
  select.dispatchEvent(new Event("change"));
  noted.depths.push(document.querySelectorAll("#modules tbody tr").length);
}
noted.hidden = document.getElementById("tip").hidden;
noted.injected = document.getElementById("injected") !== null || document.title === "injected";
document.body.dataset.noted = JSON.stringify(noted);
</script>
"""


def chromium(*arguments):
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               f"--window-size={WIDTH},{HEIGHT}", "--virtual-time-budget=5000",
               "--enable-logging=stderr", *arguments]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, said


def use(page):
    """What the script above noted in a copy of the page, and what the console said."""
    copy = page.with_suffix(".used.html")
    copy.write_text(page.read_text().replace("</body>", USES + "</body>"))
    dom, said = chromium("--dump-dom", copy.as_uri())
    copy.unlink()
    found = re.search(r'data-noted="([^"]*)"', dom)
    return json.loads(html.unescape(found[1])) if found else None, said


def seconds(text):
    number, unit = text.split()
    return float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def faults(noted, said, plan):
    if noted is None:
        return ["the script did not come to its end", *said]
    rows = plan["rows"]
    found = list(said)
    if [row[0] for row in noted["rows"]] != [row["policy"] for row in rows]:
        found.append(f"other policies: {noted['rows']}")
    for shown, row in zip(noted["rows"], rows):
        if abs(seconds(shown[2]) * 1e9 - row["step_ns"]) > 0.01 * row["step_ns"]:
            found.append(f"{row['policy']}: {shown[2]} a step, not {row['step_ns']} ns")
    if noted["answer"] != plan["answer"]:
        found.append(f"another answer: {noted['answer']}")
    found += [f"nothing in {name}" for name, shapes in noted["sections"].items() if not shapes]
    if noted["chosen"] != [row["policy"] for row in rows]:
        found.append(f"not every policy can be chosen: {noted['chosen']}")
    if not all(tip and "NaN" not in tip and "undefined" not in tip for tip in noted["tips"]):
        found.append(f"the arrow keys tell nothing: {noted['tips']}")
    if not noted["depths"] or noted["depths"] != sorted(noted["depths"]):
        found.append(f"modules by depth: {noted['depths']}")
    if not noted["hidden"]:
        found.append("the tip stays")
    if noted["injected"]:
        found.append("a name was taken for HTML")
    return found


def hostile_program(ferry, folder):
    """GPT-2 with names that would end what they stand in."""
    scenarios = pathlib.Path(__file__).parents[3] / "scenarios" / "programs" / "gpt2.jsonl"
    lines = [json.loads(line) for line in scenarios.read_text().splitlines()]
    for line in lines:
        for key in ("name", "op", "enter", "leave"):
            if isinstance(line.get(key), str):
                line[key] = HOSTILE + line[key]
    path = folder / "hostile.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def main(ferry, folder):
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    pages = dict(PAGES)
    pages["hostile"] = [hostile_program(ferry, folder), "--card", "a100", "--policy",
                        "keep,checkpoint,offload", "--no-curve"]  # fmt: skip
    status = 0
    for name, arguments in pages.items():
        page = folder / f"{name}.html"
        made = subprocess.run([ferry, "report", "--json", "-o", page, *arguments],
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
        found = [] if made.returncode in (0, 3) else [f"exit code {made.returncode}"]
        if not found:
            noted, said = use(page)
            found = faults(noted, said, json.loads(made.stdout))
            schemes = {"light": 1, "dark": 0}
            for scheme, number in schemes.items():
                picture = folder / f"{name}-{scheme}.png"
                _, said = chromium(f"--blink-settings=preferredColorScheme={number}",
                                   f"--screenshot={picture}", page.as_uri())  # fmt: skip
                found += said
            first, second = ((folder / f"{name}-{each}.png").read_bytes() for each in schemes)
            if first == second:
                found.append("light and dark are the same")
        print(f"{name}: {'; '.join(found) or 'as it should be'}")
        status = status or bool(found)
    print(f"the pictures, to look at: {folder}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
