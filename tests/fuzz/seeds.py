"""What the fuzzers start from: seeds.py FOLDER writes FOLDER/trace/*, FOLDER/scenario/* and
FOLDER/words.

The seeds are small random logs with every operation of formats/STREAM_LOG.md, the cards and
scenarios that ship, a small program, plan and decision log, and the beginnings of the programs that
ship. `words` is libFuzzer's dictionary: every word of these files, and what formats/*.md sets as
code. Equal files give equal seeds.
"""

import json
import pathlib
import pickle
import random
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """\
{"ferry":"program","schema":1,"name":"sample","about":{"model":"two layers"}}
{"global":0,"kind":"parameter","name":"w","dtype":"bf16","shape":[64,64],"grad":true}
{"global":1,"kind":"parameter","name":"tied","dtype":"bf16","shape":[64,64],"strides":[1,64],"alias":0}
{"global":2,"kind":"input","name":"x","dtype":"bf16","shape":[64,64]}
{"code":0,"kind":"main"}
{"stream":1}
{"sync":[0,1]}
{"enter":"model"}
{"exclude":"begin"}
{"call":1,"in":[2],"out":[7],"recompute":"checkpoint","determinism_check":false,"captured":1}
{"exclude":"end"}
{"leave":"model"}
{"record_use":7,"stream":1}
{"backward":[7],"inputs":[0],"out":[9],"retain_graph":true,"create_graph":true}
{"move":0}
{"free":[7]}
{"when":"first","count":1}
{"raise":"boom"}
{"code":1,"kind":"segment","name":"forward","arguments":[5],"results":[8]}
{"view":6,"of":5,"dtype":"bf16","shape":[64,8],"strides":[64,1],"offset":8}
{"node":"MmBackward0","id":3,"in":[5,0],"out":[8],"saved":[5,0],"body":2}
{"op":"aten.mm","in":[5,0],"out":[{"slot":8,"dtype":"bf16","shape":[64,64]}],"flops":524288,"read":16384}
{"save":3,"slots":[8]}
{"ambient":1}
{"op":"aten.add_","in":[6,8],"out":[],"writes":[0],"ns":2000,"once":true,"random":true}
{"code":2,"kind":"body","name":"MmBackward0","arguments":[9],"saved":[10,11,12],"results":[13,null]}
{"op":"aten.mm","in":[9,11],"out":[{"slot":13,"dtype":"bf16","shape":[64,64]}]}
"""

ALLOC_CONF = ("expandable_segments:True,large_segment_size_mb:40,max_split_size_mb:64,"
              "roundup_power2_divisions:[64:8,256:4,>:2],garbage_collection_threshold:0.6")

SNAPSHOT = {
    "segments": [
        {"device": 0, "address": 4096, "total_size": 2097152, "stream": 0, "segment_type": "small",
         "is_expandable": False, "segment_pool_id": (0, 0), "blocks": [
             {"size": 512, "requested_size": 7, "state": "active_allocated", "frames": []},
             {"size": 2096640, "requested_size": 0, "state": "inactive", "frames": []}]}],
    "device_traces": [[
        {"action": "segment_alloc", "addr": 4096, "size": 2097152, "stream": 0, "time_us": 1},
        {"action": "alloc", "addr": 4096, "size": 9, "stream": 0, "time_us": 2, "frames": [
            {"name": "at::_ops::mm::call(at::Tensor)", "filename": "libtorch_cpu.so", "line": 7},
            {"name": "forward", "filename": "/a/site-packages/torch/nn/modules/linear.py",
             "line": 9}, {"name": "step", "filename": "train.py", "line": 12}]},
        {"action": "free_requested", "addr": 4096, "size": 9, "stream": 0, "time_us": 3},
        {"action": "free_completed", "addr": 4096, "size": 9, "stream": 0, "time_us": 4},
        {"action": "oom", "device_free": 4, "size": 512, "stream": 9, "time_us": 5},
        {"action": "alloc", "addr": 4096, "size": 7, "stream": 0, "time_us": 6}]],
    "external_annotations": [
        {"stage": "END", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": 3}],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1,
                           "garbage_collection_threshold": 0.0, "expandable_segments": False},
}

PLAN = """\
{
  "ferry": "plan",
  "schema": 1,
  "program": {"name":"gpt2","digest":"0123456789abcdef"},
  "hardware": "rtx4090",
  "policy": "mixed",
  "options": {"bytes_min":1048576},
  "predicted": {"peak":1,"reserved":2,"host":3,"step_ns":4},
  "segments": [
    {"name":"h.0","recompute":true},
    {"name":"h.1","recompute":false}
  ],
  "entries": [
    {"pack":0,"op":"checkpoint","dtype":"bf16","shape":[2,3],"strides":[3,1],"group":0,"decision":"keep"},
    {"pack":0,"op":"Mm","dtype":"bf16","shape":[2],"strides":[1],"group":0,"decision":"recompute","segment":0},
    {"pack":1,"op":"Mm","dtype":"f32","shape":[],"strides":[],"group":1,"decision":"offload","segment":0}
  ]
}
"""

SWEEP = """programs = ["gpt2", "a/b.jsonl"]
hardware = ["h100"]
microbatches = [1, 4]
spans = [false, true]
budgets = ["card", "80%", "20GiB"]
policies = ["keep", "best"]
[[skip]]
programs = ["gpt2"]
budgets = ["80%"]
[[only]]
spans = [true]
"""

TIMES = """\
{"ferry":"kernel times","schema":1,"device":"card","about":{"model":"two layers"}}
{"op":"aten.mm","in":[{"dtype":"bf16","shape":[1,64],"strides":[9,1]},null],"out":[{"dtype":"bf16","shape":[64]}],"flops":2,"read":3,"written":4,"ns":7,"least_ns":5,"samples":3}
{"op":"aten.add_","in":[null],"out":[],"writes":[0],"ns":7,"least_ns":7,"samples":1}
"""

PROFILE = """\
{"deviceProperties":[{"id":0}],"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::to","pid":1,"tid":1,"ts":1,"dur":9,"args":{"External id":1,"Input Dims":[[4,2],[[3],[]],[]],"Input type":["c10::BFloat16","TensorList","Scalar"]}},
{"ph":"X","cat":"cpu_op","name":"aten::copy_","pid":1,"tid":1,"ts":2,"dur":1.5,"args":{"External id":2,"Input Dims":[],"Input type":[]}},
{"ph":"X","cat":"kernel","name":"k","dur":0.5,"args":{"External id":2}}]}
"""

HAZARD = """\
{"ferry":"hazard","schema":1,"system":"a","what":"b","source":"","verdicts":[{"kind":"reuse","earlier":0,"later":2}],"schedule":"2@3","seen":"c"}
"""

# Small files that would take for ever, or more than there is.
HEAD = """\
{"ferry":"program","schema":1,"name":"small"}
{"global":0,"kind":"parameter","name":"w","dtype":"f32","shape":[4],"grad":true}
{"code":0,"kind":"main"}
"""
BOMBS = {
    "doubling": HEAD
    + '{"call":1,"in":[],"out":[]}\n'
    + "".join(
        f'{{"code":{code},"kind":"segment"}}\n' + f'{{"call":{code + 1},"in":[],"out":[]}}\n' * 2
        for code in range(1, 12)
    )
    + '{"code":12,"kind":"segment"}\n',
    "endless": HEAD
    + """\
{"call":1,"in":[],"out":[5]}
{"backward":[5],"retain_graph":true}
{"backward":[5],"retain_graph":true}
{"code":1,"kind":"segment","results":[5]}
{"node":"N","id":0,"in":[0],"out":[5],"body":2}
{"op":"a","in":[0],"out":[{"slot":5,"dtype":"f32","shape":[4]}]}
{"code":2,"kind":"body","arguments":[5],"results":[7]}
{"call":1,"in":[],"out":[6]}
{"backward":[6]}
{"backward":[6]}
{"op":"b","in":[],"out":[{"slot":7,"dtype":"f32","shape":[4]}]}
""",
    "long": HEAD + '{"op":"a","in":[0],"out":[],"ns":999999999999999}\n' * 3,
    "large": HEAD
    + "".join(
        f'{{"op":"a","in":[],"out":[{{"slot":{slot},"dtype":"u8","shape":[8796093022208]}}]}}\n'
        for slot in (5, 4194303)
    ),
}

SAMPLES = ("program", "plan", "decisions", "times", "h100-port", "gpt2-on-4090", "hazard0")

OPTIONS = (
    "host_memory copy_streams reload_pool bytes_min window_packs window_bytes prefetch_bytes "
    "hold_bytes"
)
DECISIONS = "pack evict prefetch unpack release return recompute"

CARD = """
[peer]
rate = "405GB/s"
latency = "8us"

[port]
devices = 2
up = "24GB/s"
down = "24GB/s"
"""


def log(seed):
    draw = random.Random(seed)

    def buffer():
        if draw.random() < 0.6:
            return draw.choice("wxyz")
        return {"address": draw.randrange(8) * 8, "bytes": draw.choice([0, 4, 8, 16])}

    def line():
        op = draw.choice(
            "kernel kernel kernel copy record wait alloc free record_use host_read host_write memset "
            "host_view host_view_end "
            "host_func event_sync stream_sync device_sync event_query stream_query release acquire "
            "stream stream_destroy event_destroy".split()
        )
        stream, event = draw.choice(["a", "b", 7]), draw.choice(["e", 1])
        fields = {"op": op}
        if op == "stream":
            fields |= {"id": stream, "kind": draw.choice(["legacy", "blocking", "nonblocking"])}
        elif op in ("event_sync", "event_destroy", "event_query"):
            fields |= {"event": event}
        elif op in ("release", "acquire"):
            fields |= {"token": "t"}
            if draw.random() < 0.5:
                fields |= {"stream": stream}
        elif op not in ("host_read", "host_write", "host_view", "host_view_end", "device_sync"):
            fields |= {"stream": stream}
        if op in ("record", "wait"):
            fields |= {"event": event}
        if op.endswith("_query"):
            fields |= {"result": draw.choice(["done", "not_ready"])}
        if op in ("kernel", "host_func"):
            fields |= {
                "reads": [buffer() for _ in range(draw.randrange(3))],
                "writes": [buffer() for _ in range(draw.randrange(3))],
                "name": draw.choice(["mm", "add"]),
            }
        if op in ("copy", "memset"):
            kinds = ["device", "pinned", "pageable"]
            fields |= {"dst": buffer(), "dst_kind": draw.choice(kinds)}
            fields |= {"api": draw.choice(["async", "sync"]), "blocked": draw.random() < 0.2}
            if op == "copy":
                fields |= {"src": buffer(), "src_kind": draw.choice(kinds)}
        if op in ("alloc", "free"):
            fields |= {"address": draw.randrange(4) * 16, "bytes": 16}
            fields |= {"pool": draw.choice(["caching", "async", "host", "malloc"])}
        if op in ("record_use", "host_read", "host_write", "host_view", "host_view_end"):
            fields |= {"buffer": buffer()}
        if draw.random() < 0.3:
            fields |= {"thread": draw.choice(["u", 2])}
        if draw.random() < 0.1:
            fields |= {"device": draw.randrange(2), "where": "a.py:1"}
        return json.dumps(fields, separators=(",", ":"))

    return "".join(line() + "\n" for _ in range(draw.choice([4, 12, 40])))


def decisions():
    options = {name: 1 for name in OPTIONS.split()}
    header = {"ferry": "decisions", "schema": 1, "options": options, "moves": [1, 2]}
    kinds = DECISIONS.split()
    lines = [{"decision": k, "run": 1, "pack": i, "bytes": 4096} for i, k in enumerate(kinds)]
    return "".join(json.dumps(each) + "\n" for each in [header, *lines])


def beginning(text):
    """The first globals of a program, and the first statements of its first code."""
    lines = text.splitlines(keepends=True)
    codes = [i for i, line in enumerate(lines) if line.startswith('{"code"')]
    return "".join(lines[:4] + lines[codes[0] : codes[0] + 12])


def seeds():
    """The target's name, the seed's and its text. The letters are those of scenario_fuzz.cpp."""
    for seed in range(40):
        yield "trace", f"log{seed}", log(seed)
        if seed % 4 == 0:
            yield "scenario", f"hazard{seed}", "z" + HAZARD + log(seed)
    yield "scenario", "program", "p" + PROGRAM
    for name, text in BOMBS.items():
        yield "scenario", name, "p" + text
    yield "scenario", "plan", "l" + PLAN
    yield "scenario", "decisions", "d" + decisions()
    yield "scenario", "times", "t" + TIMES
    yield "scenario", "profile", "f" + PROFILE
    yield "scenario", "sweep", "w" + SWEEP
    yield "scenario", "snapshot", b"m" + pickle.dumps(SNAPSHOT, protocol=2)
    yield "scenario", "snapshot4", b"m" + pickle.dumps(SNAPSHOT, protocol=4)
    yield "scenario", "options", "a" + ALLOC_CONF
    yield "scenario", "text", "j" + r'"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é"'
    for number, line in enumerate((PROGRAM + log(0)).splitlines()):
        yield "scenario", f"json{number}", "j" + line
    for path in sorted((ROOT / "scenarios").rglob("*")):
        if path.is_dir():
            continue
        text = path.read_text(encoding="utf-8") if path.suffix in (".toml", ".jsonl") else ""
        if path.parent.name == "programs":
            yield "scenario", path.stem, "p" + beginning(text)
        elif path.parent.name == "hardware":
            yield "scenario", path.stem, "h" + text
            yield "scenario", path.stem + "-port", "h" + text.split("[peer]")[0] + CARD
        elif path.parent.name == "hazards":
            yield "scenario", f"hazard-{path.stem}", "z" + text
        elif path.parent.name == "plans":
            yield "scenario", path.stem, "s" + text


def words(texts):
    found = set()
    for text in texts:
        found |= set(re.findall(r"[A-Za-z_][A-Za-z_0-9]+", text))
    return sorted(found | {f'\\"{word}\\"' for word in found})


def main():
    folder = pathlib.Path(sys.argv[1])
    texts = []
    for path in sorted((ROOT / "formats").glob("*.md")):
        texts += re.findall(r"`([a-z_0-9]+)`", path.read_text(encoding="utf-8"))
    for target, name, text in seeds():
        (folder / target).mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode()
        (folder / target / name).write_bytes(data)
        if target == "trace":
            texts.append(text)
        elif name in SAMPLES:  # but for the letter and comments
            texts.append(re.sub(r"#.*", "", text[1:]))
    lines = "".join(f'"{word}"\n' for word in words(texts))
    (folder / "words").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
