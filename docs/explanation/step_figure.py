"""The figure in README.md: what the streams of one real training step did, and when.

    ferry train gpt ... --trace trace.json                    records a trace
    python3 docs/explanation/step_figure.py trace.json        extracts its last step: step.json
    python3 docs/explanation/step_figure.py                   draws step.json: step.svg

A trace has thousands of events. step.json, beside this script, keeps the spans in which the step
computed, forward or backward, and each copy with its bytes, in microseconds from the step's start.
The drawing depends on step.json alone, in integers throughout. tests/python/test_figure.py draws it
again and compares the bytes. Standard library only.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
DATA, FIGURE = HERE / "step.json", HERE / "step.svg"
COPIES = {"offload": "to_host", "reload": "from_host"}
BACKWARD = "autograd::engine::evaluate_function"
APART_US = 1000  # ops that are less than this apart are one span

LEFT, RIGHT, WIDTH = 150, 840, 860  # of the axis, of the figure
LANE = 34
LANES = (  # (label, line below it, y, what is drawn: key and colour)
    ("compute", "the layers", 64, (("forward", "#4477aa"), ("backward", "#aa3377"))),
    ("to the host", "device-to-host stream", 116, (("to_host", "#ccaa33"),)),
    ("from the host", "host-to-device stream", 168, (("from_host", "#228833"),)),
)
CURVE_TOP, CURVE_BOTTOM = 226, 296
HEIGHT = 352


def outermost(events):
    """The events of a thread that lie in no other one, by time."""
    kept, end = [], float("-inf")
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        if event["ts"] >= end:
            kept.append(event)
            end = event["ts"] + event["dur"]
    return kept


def last_step(ops):
    """From the last forward's embedding to the end of backward. (The optimizer is not traced.)"""
    begin = max(i for i, op in enumerate(ops) if op["name"] == "aten::embedding")
    end = max(i for i, op in enumerate(ops) if op["name"].startswith(BACKWARD))
    return ops[begin : end + 1]


def spans(ops, start):
    """Runs of ops without much time between them."""
    runs = []
    for op in ops:
        begin = round(op["ts"] - start)
        end = round(op["ts"] + op["dur"] - start)
        if runs and begin - runs[-1][1] < APART_US:
            runs[-1][1] = max(end, runs[-1][1])
        else:
            runs.append([begin, end])
    return runs


def extract(trace):
    """The data in step.json, from the last step of a trace."""
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    ops = last_step(outermost([e for e in events if e["name"] not in COPIES]))
    start = ops[0]["ts"]
    step = {
        "forward": spans([o for o in ops if not o["name"].startswith(BACKWARD)], start),
        "backward": spans([o for o in ops if o["name"].startswith(BACKWARD)], start),
    }
    for name, key in COPIES.items():
        copies = [e for e in events if e["name"] == name and e["ts"] >= start]
        copies.sort(key=lambda e: e["ts"])
        step[key] = [[round(c["ts"] - start), round(c["ts"] + c["dur"] - start), c["args"]["bytes"]]
                     for c in copies]
    return step


def on_the_host(step):
    """(time, bytes) at each change: the bytes on the host that have not come back yet."""
    changes = [(end, size) for _, end, size in step["to_host"]]
    changes += [(end, -size) for _, end, size in step["from_host"]]
    total, curve = 0, [(0, 0)]
    for time, change in sorted(changes):
        total += change
        curve.append((time, total))
    return curve


def tenths(value):
    """12 as 1.2: coordinates are counted in tenths of a unit."""
    return f"{value // 10}.{value % 10}" if value % 10 else f"{value // 10}"


def draw(step):
    """The figure, as the text of an SVG."""
    end = max(span[1] for key in ("forward", "backward", "to_host", "from_host")
              for span in step[key])

    def x(time):
        return LEFT * 10 + (RIGHT - LEFT) * 10 * time // end

    curve = on_the_host(step)
    peak = max(size for _, size in curve)

    def y(size):
        return CURVE_BOTTOM * 10 - (CURVE_BOTTOM - CURVE_TOP) * 10 * size // peak

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="13">',
           f"<title>{step['title']}</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="16" y="28" font-size="15" fill="#222222">{step["title"]}</text>']
    for label, below, top, drawn in LANES:
        out.append(f'<text x="16" y="{top + 15}" fill="#222222">{label}</text>')
        out.append(f'<text x="16" y="{top + 29}" font-size="10" fill="#777777">{below}</text>')
        out.append(f'<rect x="{LEFT}" y="{top}" width="{RIGHT - LEFT}" height="{LANE}" '
                   'fill="#f2f2f2"/>')
        for key, colour in drawn:
            bars = "".join(f"M{tenths(x(s[0]))} {top}h{tenths(max(5, x(s[1]) - x(s[0])))}v{LANE}"
                           f"H{tenths(x(s[0]))}z" for s in step[key])
            out.append(f'<path d="{bars}" fill="{colour}"/>')
    line, last = "", CURVE_BOTTOM * 10
    for time, size in curve:
        line += f"H{tenths(x(time))}V{tenths(y(size))}"
        last = y(size)
    line += f"H{RIGHT}V{CURVE_BOTTOM}z" if last != CURVE_BOTTOM * 10 else "z"
    out += [f'<path d="M{LEFT} {CURVE_BOTTOM}{line}" fill="#66ccee" stroke="#117799"/>',
            f'<text x="16" y="{CURVE_TOP + 24}" fill="#222222">on the host</text>',
            f'<text x="16" y="{CURVE_TOP + 38}" font-size="10" fill="#777777">'
            f"at most {peak // 2**20} MiB</text>"]
    out.append(f'<path d="M{LEFT} {CURVE_BOTTOM + 4}H{RIGHT}" stroke="#777777"/>')
    tick = 10 ** (len(str(end)) - 1)
    tick = tick // 2 if end // tick < 4 else tick
    for time in range(0, end + 1, tick):
        at = tenths(x(time))
        out.append(f'<text x="{at}" y="{CURVE_BOTTOM + 18}" font-size="10" text-anchor="middle" '
                   f'fill="#777777">{time // 1000} ms</text>')
    at = LEFT
    for label, colour in (("forward", "#4477aa"), ("backward", "#aa3377"),
                          ("copies to the host", "#ccaa33"), ("copies back", "#228833")):
        out.append(f'<rect x="{at}" y="{HEIGHT - 24}" width="11" height="11" fill="{colour}"/>')
        out.append(f'<text x="{at + 17}" y="{HEIGHT - 14}" font-size="12" fill="#222222">'
                   f"{label}</text>")
        at += 170 if label == "copies to the host" else 110
    return "\n".join([*out, "</svg>\n"])


def main(arguments):
    if arguments:
        trace = json.loads(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
        known = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
        about = {key: known.get(key, "") for key in ("title", "command", "machine", "recorded")}
        lines = [f'  "{k}": {json.dumps(v)}' for k, v in {**about, **extract(trace)}.items()]
        DATA.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    FIGURE.write_text(draw(json.loads(DATA.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
