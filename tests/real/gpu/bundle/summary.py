"""summary.md: what was proved and measured, for people."""

HEAD = """# Ferry on {where}

{headline}

| part | | seconds | |
|---|---|---|---|
"""


def row(part, facts):
    status = facts.get("status", "left")
    why = facts.get("reason") or (f"exit {facts['exit']}" if status == "failed" else "")
    seconds = f"{facts['seconds']:.0f}" if "seconds" in facts else ""
    return f"| {part.name} | {status} | {seconds} | {why} |\n"


def last_lines(path, count=12):
    if not path.exists():
        return ""
    lines = path.read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-count:])


def write_summary(out, machine, state, parts):
    where = "the virtual CUDA runtime: NOT A GPU" if machine.virtual else "a GPU"
    text = HEAD.format(where=where, headline=machine.headline())
    text += "".join(row(part, state.parts.get(part.name, {})) for part in parts)
    for part in parts:
        folder = out / "parts" / part.name
        if (folder / "summary.md").exists():
            text += f"\n## {part.name}\n\n{(folder / 'summary.md').read_text().strip()}\n"
        if state.status(part.name) in ("failed", "hung"):
            said = last_lines(folder / "stdout") + "\n" + last_lines(folder / "stderr")
            text += f"\n## {part.name} {state.status(part.name)}\n\n```\n{said.strip()}\n```\n"
    (out / "summary.md").write_text(text)
