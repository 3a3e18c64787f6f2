"""What there is to prove and to measure, the most important first. A limit is several times what
its part takes on a GPU where nothing is wrong; all proofs together then take a call of nine
minutes."""

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


def sanitizer(tool, limit):
    script = (f"compute-sanitizer --tool {tool} --error-exitcode 9 "
              f"$BIN/ferry_gpu_tests --gtest_filter='{SANITIZED}'")
    return Part(f"sanitizer-{tool}", "proof", limit, script, needs=("gpu", "compute-sanitizer"))


# What the card does, and what the tables of the documentation are made of.
CALIBRATE = """
$BIN/ferry calibrate --device $DEVICE ${SMALL:+--small} -o card.toml --json >calibrated.json
{ echo '```'; cat card.toml; echo '```'; } >summary.md
"""

# Each kernel of a step by itself, beside the sum of the ops' times.
KERNELS = """
$BIN/ferry calibrate --device cuda --small --rounds 5 --kernels kernels.json --times ops.jsonl gpt \\
  --preset gpt2 --batch 8 >/dev/null
$PYTHON - >summary.md <<'PYTHON'
import json
kernels = json.load(open("kernels.json"))
ops = [json.loads(line) for line in open("ops.jsonl")][1:]
print(f"kernels: {kernels['total_ns'] / 1e6:.2f} ms of a step (CUPTI)")
print(f"ops: {sum(op['ns'] * op['samples'] for op in ops) / 5e6:.2f} ms (events)\\n")
print("| kernel | calls | ms |\\n|---|---|---|")
for each in kernels["kernels"][:20]:
    print(f"| {each['name'][:70]} | {each['count']} | {each['total_ns'] / 1e6:.3f} |")
PYTHON
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
    sanitizer("memcheck", 120),
    sanitizer("racecheck", 120),
    sanitizer("synccheck", 120),
    Part("calibrate", "figure", 120, CALIBRATE),
    Part("kernels", "figure", 60, KERNELS, needs=("gpu",)),
    predicted("gpt2", "gpt", GPT2, "4,16", "4,8,16", 240),
    field("gpt2", "gpt", GPT2, 8, 180),
    predicted("llama", "llama", LLAMA, "1,4", "1,2,4", 300),
    field("llama", "llama", LLAMA, 2, 240),
    Part("hooks", "figure", 120, HOOKS),
    Part("timeline", "figure", 60, TIMELINE, needs=("gpu", "nsys")),
]
