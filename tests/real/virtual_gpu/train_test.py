"""ferry-train on the virtual GPU: a CPU's losses under every policy, clean stream logs, and
decisions that the simulator makes as well.

    train_test.py FERRY FERRY_TRAIN LIBFERRY_PRELOADED_GPU
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

FERRY, TRAIN, VIRTUAL_GPU = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:4])
TEXT = "A copy waits for what made the bytes; whoever reads them waits for the copy. " * 200


def run(*command, device="cpu", tempo="mixed"):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if device == "cuda":
        environment.update(FERRY_PRELOADED_GPU="1", FERRY_PRELOADED_GPU_TEMPO=tempo,
                           LD_PRELOAD=VIRTUAL_GPU)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def losses(model, device, *options, tempo="mixed"):
    done = run(TRAIN, *model, "--device", device, "--steps", "2", "--json", *options,
               device=device, tempo=tempo)
    if device == "cuda" and "virtual GPU: no GPU" not in done.stderr:
        sys.exit("it does not say that there is no GPU")
    return [json.loads(line)["loss"] for line in done.stdout.splitlines() if line[:1] == "{"]


def expect_same(what, found, expected):
    if len(expected) != 2 or found != expected:
        sys.exit(f"{what}: losses {found}, expected {expected}")
    print(f"{what}: {found}")


def follow_a_plan(gpt, policy, plan_policy, cpu):
    run(FERRY, "plan", "gpt.jsonl", "--card", "rtx4090", "--budget", "10MiB", "--policy",
        plan_policy, "-o", f"{policy}.plan", "--optimizer", "none", "--steps", "1",
        "--cublas-workspace-config", ":0:0")
    found = losses(gpt, "cuda", "--policy", policy, "--plan", f"{policy}.plan", "--decisions",
                   f"{policy}.log", "--log", f"{policy}.jsonl")
    expect_same(f"gpt {policy}, by a plan", found, cpu)
    check = run(FERRY, "check", f"{policy}.jsonl").stdout.strip().splitlines()[-1]
    replay = run(FERRY, "replay", "gpt.jsonl", "--decisions", f"{policy}.log", "--plan",
                 f"{policy}.plan").stdout.strip()
    if not check.endswith(" 0 violations") or not replay.startswith("the same"):
        sys.exit(f"gpt {policy}: {check}; {replay}")
    print(f"gpt {policy}: {check}; {replay}")


def main():
    os.mkdir("data")
    pathlib.Path("data/text.md").write_text(TEXT)
    gpt = ["gpt", "--data", "data", "--layers", "2", "--context", "64"]
    resnet = ["resnet", "--images", "100", "--batch", "4"]
    for model, tempos in ((gpt, ("eager", "lazy", "mixed")), (resnet, ("mixed",))):
        cpu = losses(model, "cpu")
        for policy in ("keep", "offload", "checkpoint"):
            for tempo in tempos:
                found = losses(model, "cuda", "--policy", policy, tempo=tempo)
                expect_same(f"{model[0]} {policy}, {tempo}", found, cpu)
    # Dropout draws from the CUDA generator: other numbers than a CPU's, alike under every policy.
    dropout = [*gpt, "--dropout", "0.2"]
    kept = losses(dropout, "cuda")
    for policy in ("offload", "checkpoint"):
        found = losses(dropout, "cuda", "--policy", policy)
        expect_same(f"gpt with dropout, {policy}", found, kept)
    cpu = losses(gpt, "cpu")
    run(TRAIN, *gpt, "--device", "cuda", "--steps", "2", "--capture", "gpt.jsonl", device="cuda")
    follow_a_plan(gpt, "budget", "budget", cpu)
    follow_a_plan(gpt, "mixed", "checkpoint-nth", cpu)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
