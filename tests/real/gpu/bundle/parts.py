"""What there is to prove and to measure, the most important first. A limit is several times what
its part takes on a GPU where nothing is wrong; all proofs together then take a call of nine
minutes."""

import dataclasses

from runner import Part


def tests(name, limit, pattern, **more):
    script = (f"$BIN/ferry_gpu_tests --gtest_filter='{pattern}' "
              "--gtest_output=json:$PART/tests.json")
    return Part(name, "proof", limit, script, **more)


# Under every policy the losses are the bits of keep's, and the stream log has no violation.
TRAINING = """
for model in "gpt --dropout 0.1" resnet; do
  for policy in keep "offload --window 0" "offload --window 8MiB --prefetch 8MiB" checkpoint mixed
  do
    $BIN/ferry train $model --device $DEVICE --policy $policy --steps 3 --json --log log >steps
    grep -o '"loss":[^,}]*' steps >losses
    [[ $policy != keep ]] || cp losses keep
    cmp keep losses
    $BIN/ferry check log
    echo "$model, $policy: the same losses; $(wc -l <log) lines"
    rm log
  done
done
"""

# A captured program: planned, executed, and the simulator decides the same.
DECISIONS = """
$PYTHON $BUNDLE/scripts/decisions.py $BIN/ferry $DEVICE | tee $PART/summary.md
"""

SANITIZED = ("Gpu/DeviceContract*:Gpu/OffloadOnGpu.*/GptSmallWindow:"
             "Gpu/CheckpointOnGpu.GivesThemUnderAnOffloader/Plain")


def sanitizer(name, tool, limit, pattern=SANITIZED, **more):
    """What a call returns is the tests' business: some of them run out of memory on purpose."""
    script = (f"compute-sanitizer --tool {tool} --report-api-errors no --error-exitcode 9 "
              f"$BIN/ferry_gpu_tests --gtest_filter='{pattern}'")
    return Part(f"sanitizer-{name}", "proof", limit, script, needs=("gpu", "compute-sanitizer"),
                **more)


# NVIDIA's own judge of the order between streams: where memory comes from cudaMallocAsync it tells
# what is used on another stream before its allocation or after its free. It has to find a mutant.
STREAM_ORDER = "memcheck --track-stream-ordered-races all"
ASYNC = "export PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync\n"


def stream_order(name, limit, pattern, **more):
    part = sanitizer(name, STREAM_ORDER, limit, pattern, **more)
    return dataclasses.replace(part, script=ASYNC + part.script)


# What the card does, and what the tables of the documentation are made of.
CALIBRATE = """
$BIN/ferry calibrate --device $DEVICE ${SMALL:+--small} -o card.toml --json >calibrated.json
{ echo '```'; cat card.toml; echo '```'; } >summary.md
"""

# Each kernel of a step by itself, beside what the simulator makes of its operators' times.
KERNELS = """
step="gpt --preset gpt2 --batch 8"
$BIN/ferry calibrate --device cuda --rounds 5 --kernels kernels.json --times ops.jsonl \\
  -o card.toml $step >/dev/null
$BIN/ferry train $step --device cuda --capture step.jsonl >/dev/null
$BIN/ferry simulate step.jsonl --card card.toml --times ops.jsonl --optimizer none --steps 1 \\
  --policy keep --json >simulated.json
$PYTHON - >summary.md <<'PYTHON'
import json
kernels = json.load(open("kernels.json"))
simulated = json.load(open("simulated.json"))
row, times = simulated["rows"][0], simulated["times"]
assert times["measured"] == times["ops"], times
print(f"kernels: {kernels['total_ns'] / 1e6:.2f} ms of a step (CUPTI)")
print(f"operators: {row['compute_ns'] / 1e6:.2f} ms (events, as the simulator adds them up)\\n")
print("| kernel | calls | ms |\\n|---|---|---|")
for each in kernels["kernels"][:20]:
    print(f"| {each['name'][:70]} | {each['count']} | {each['total_ns'] / 1e6:.3f} |")
PYTHON
rm step.jsonl
"""


def predicted(name, model, shape, calibrated, batches, limit):
    script = f"""
shape="{shape}"
[[ -z ${{SMALL:-}} ]] || shape="--layers 2 --width 64 --heads 2 --context 64"
$PYTHON $BUNDLE/scripts/predicted.py $BIN/ferry --model {model} --options "$shape" \\
  --calibrate {calibrated} --batches {batches} --device $DEVICE ${{SMALL:+--small}} \\
  --json predicted.json | tee summary.md
"""
    return Part(f"predicted-{name}", "figure", limit, script)


def field(name, model, shape, batch, limit):
    script = f"""
shape="{shape} --batch {batch}"
[[ -z ${{SMALL:-}} ]] || shape="--layers 2 --width 64 --heads 2 --context 64 --batch 2"
$PYTHON $BUNDLE/scripts/field.py $BIN/ferry-train {model} $shape --steps 8 --device $DEVICE \\
  --text $BUNDLE/share/ferry/text/northanger_abbey.txt --trl $BUNDLE/trl \\
  --ferry "tight=--policy offload --window 128MiB --prefetch 256MiB" \\
  ${{SMALL:+--optimizer foreach}} --time-limit {limit // 6} --json field.json | tee summary.md
"""
    return Part(f"field-{name}", "figure", limit, script)


# What a saved tensor costs the host, in C++ and in Python.
HOOKS = """
$PYTHON $BUNDLE/scripts/compare_hooks.py $BIN/hooks_bench | tee summary.md
$PYTHON $BUNDLE/scripts/compare_checkpoint.py $BIN/torch_checkpoint_bench \\
  $BIN/recompute_bench | tee -a summary.md
"""

# The core's steps as ranges beside the kernels and copies, for Nsight Systems.
TIMELINE = """
nsys profile --trace cuda,nvtx --output steps --force-overwrite true \\
  $BIN/ferry-train gpt --device $DEVICE --policy offload --window 1MiB --steps 2
"""

GPT2 = "--preset gpt2"
LLAMA = "--preset llama-1b --dtype bf16"

PARTS = [
    tests("conformance", 60, "Gpu/DeviceContract*"),
    tests("offload", 90, "*OffloadOnGpu*:*OffloaderOnGpu*"),
    tests("checkpoint", 60, "*CheckpointOnGpu*:*SegmentsOnGpu*"),
    tests("pipeline", 60, "*PipeOnGpu*"),
    tests("hostile", 60, "*OffloaderUnderHostileSchedules*:*LoggedOffloader*"),
    tests("missing-waits", 60, "*AMissingWaitOnGpu*", needs=("gpu",)),
    tests("memory", 60, "*MemoryOnGpu*:HostMemoryOnGpu*"),
    Part("training", "proof", 180, TRAINING),
    Part("decisions", "proof", 120, DECISIONS),
    tests("mutants", 180, "*MutantOnGpu*", needs=("gpu",)),
    sanitizer("memcheck", "memcheck", 120),
    sanitizer("synccheck", "synccheck", 120),
    stream_order("stream-order", 120, "Gpu/OffloadOnGpu*:Gpu/CheckpointOnGpu*"),
    stream_order("stream-order-mutant", 120, "*MutantOnGpu.IsCaught/abandon__drop", good=(9,)),
    Part("calibrate", "figure", 120, CALIBRATE),
    Part("kernels", "figure", 60, KERNELS, needs=("gpu",)),
    predicted("gpt2", "gpt", GPT2, "4,16", "4,8,16", 240),
    field("gpt2", "gpt", GPT2, 8, 180),
    predicted("llama", "llama", LLAMA, "1,4", "1,2,4", 300),
    field("llama", "llama", LLAMA, 2, 240),
    Part("hooks", "figure", 120, HOOKS),
    Part("timeline", "figure", 60, TIMELINE, needs=("gpu", "nsys")),
]
