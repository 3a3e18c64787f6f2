"""Plans made before a GPU is there, and what it does under them: time, memory, bits.

    planned.py plan FOLDER [--card h100]        anywhere: captures the models, writes their plans
    planned.py run FOLDER [--json FILE]         on a GPU: trains under each plan

Each model is Hugging Face's, in bfloat16, with foreach AdamW. Planned are keeping, offloading, and
the fastest that fits in some shares of the memory that keeping needs. `run` trains so many steps
under each, in a process of its own, and prints what was predicted of a step beside what was
measured: its time, and the peaks of what the caching allocator gave out and of what it took, which
in a row with a budget may not be more than that. Beside them run PyTorch's checkpoint of each layer
and, with --trl FOLDER, TRL's offloading. A row's bits are those of two more steps with
deterministic algorithms, for which each plan is made once more, as other kernels run then: loss and
weights as `keep` has them, or the row says DIFFER. Exit codes: 1 a row differs, or failed; 2 for
usage; 7 where there is no GPU.

Both need torch_ferry on the path, torch, and the same transformers.
"""

import argparse
import contextlib
import functools
import gc
import json
import multiprocessing
import os
import pathlib
import statistics
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import transformers

import torch_ferry as ferry

SHARES = (0.9, 0.75, 0.6)  # of the memory that keeping everything needs
STEPS, LEFT_OUT = 10, 4
LLAMA_1B = dict(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16,
                num_attention_heads=32, num_key_value_heads=8, tie_word_embeddings=True)


def gpt2():
    config = transformers.GPT2Config(use_cache=False)
    return transformers.GPT2LMHeadModel(config), (16, 1024)


def llama_1b():
    config = transformers.LlamaConfig(use_cache=False, **LLAMA_1B)
    return transformers.LlamaForCausalLM(config), (4, 2048)


MODELS = {"GPT-2, 16 × 1024": gpt2, "Llama, 1B, 4 × 2048": llama_1b}


def make(name, device):
    """In bfloat16 from the beginning: what a cast leaves behind would be in the measured memory."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model, shape = MODELS[name]()
            ids = torch.randint(0, 50257, shape)
    finally:
        torch.set_default_dtype(torch.float32)
    return model.train(), {"input_ids": ids, "labels": ids}


def loss_of(output):
    return output.loss


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


class Planner:
    """Plans of one model, each for the training that is measured and the one that is compared."""

    def __init__(self, name, card):
        model, batch = make(name, "meta")
        model = model.to_empty(device="cpu")
        model.tie_weights()  # each was given memory of its own
        batch = {part: torch.zeros(ids.shape, dtype=ids.dtype) for part, ids in batch.items()}
        self._plan = functools.partial(ferry.plan, model, batch, loss_of, card=card,
                                       device="cuda", name=name)

    def keep(self):
        made = self._plan(policies=["keep", "offload"])
        return next(row for row in made.rows if row["policy"] == "keep")

    def __call__(self, **options):
        """Its row of the table, and the texts of both plans."""
        made = self._plan(**options)
        with deterministic():
            return made.row, (made.text, self._plan(**options).text)


def plan_model(name, card):
    """(policy, share, budget, its row of the table, the plans' texts) of each."""
    planned = Planner(name, card)
    keep = planned.keep()
    yield "keep", None, None, keep, ()
    yield "offload", None, None, *planned(policies=["offload"])
    for share in SHARES:
        try:
            budget = int(share * keep["least_bytes"])
            yield "best", share, budget, *planned(policies=["best"], budget=budget)
        except ferry.DoesNotFit as error:
            print(f"{name}: {error}", file=sys.stderr)


def plan_all(card, folder):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in MODELS:
        for policy, share, budget, predicted, texts in plan_model(name, card):
            plans = [f"{len(rows)}.{way}.plan" for way, _ in zip(("measured", "compared"), texts)]
            for file, text in zip(plans, texts, strict=True):
                (folder / file).write_text(text, encoding="utf-8")
            rows.append({"model": name, "policy": policy, "share": share, "budget": budget,
                         "plans": plans, "predicted": predicted})
            print(f"{name}: {policy} {share or ''} {predicted['step_ns'] / 1e6:.1f} ms",
                  flush=True)
    (folder / "rows.json").write_text(json.dumps({"card": card, "rows": rows}, indent=1) + "\n")


class Training:
    """Of a model made anew; nothing of the last one is left on the device."""

    def __init__(self, name, guard=None, checkpoint=False):
        gc.collect()
        torch.cuda.empty_cache()
        self.model, self.batch = make(name, "cuda")
        torch.cuda.empty_cache()  # of a head that was tied, say: no plan begins with it
        if checkpoint:
            self.model.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False})
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.guard = guard(self.model) if guard else contextlib.nullcontext()

    def step(self):
        with self.guard:
            loss = loss_of(self.model(**self.batch))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def digest(weights):
    """A number of its bits and their places, made where it is, in pieces that need little room."""
    number = torch.zeros((), dtype=torch.int64, device=weights.device)
    for piece in weights.flatten().view(torch.int16).split(1 << 22):
        places = 2 * torch.arange(piece.numel(), device=piece.device) + 1
        number = number * 1_000_003 + (piece.long() * places).sum()
    return number


def bits(training, steps=2):
    with deterministic():
        losses = []
        for number in range(steps):
            torch.manual_seed(number)
            losses.append(training.step())
        weights = [digest(part.detach()) for part in training.model.parameters()]
        return [loss.item() for loss in losses] + torch.stack(weights).tolist()


def measure(training):
    torch.cuda.reset_peak_memory_stats()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(STEPS + 1)]
    marks[0].record()
    for number in range(STEPS):
        training.step()
        marks[number + 1].record()
    torch.cuda.synchronize()
    steps = [one.elapsed_time(two) for one, two in zip(marks, marks[1:])][LEFT_OUT:]
    return {"ms": statistics.median(steps), "least_ms": min(steps), "most_ms": max(steps),
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved()}


def trl(folder):
    import field_trl
    module, _ = field_trl.load(folder)
    return lambda model: module.get_act_offloading_ctx_manager(model=model)


def ways(rows, folder, trl_folder):
    """(row, what is around its forward, measured and compared, whether PyTorch checkpoints)."""
    for name in dict.fromkeys(row["model"] for row in rows):
        for row in rows:
            if row["model"] == name:
                guards = [lambda _, path=folder / plan: ferry.execute(str(path))
                          for plan in row["plans"]]
                yield row, guards or (None, None), False
        yield {"model": name, "policy": "PyTorch's checkpoint", "share": None}, (None, None), True
        if trl_folder:
            guard = trl(trl_folder)
            yield {"model": name, "policy": "TRL", "share": None}, (guard, guard), False


def cells(row):
    measured, predicted = row["measured"], row.get("predicted")
    share = f" {row['share']:g}" if row["share"] else ""
    texts = [row["model"], row["policy"] + share]
    for said, found, unit in (
            ("step_ns", measured["ms"] * 1e6, 1e6), ("device_peak_bytes", measured["allocated"],
            2**20), ("device_reserved_bytes", measured["reserved"], 2**20)):
        texts += [f"{predicted[said] / unit:.1f}" if predicted else "", f"{found / unit:.1f}",
                  f"{found / predicted[said]:.3f}" if predicted else ""]
    return [*texts, row["bits"]]


HEAD = ["model", "policy", "ms planned", "measured", "ratio", "allocated MiB", "measured", "ratio",
        "reserved MiB", "measured", "ratio", "bits"]


def apart(call, *given):
    """What a process of its own returns: whoever ran before leaves workspaces in the allocator."""
    context = multiprocessing.get_context("fork")  # CUDA begins in the child
    receive, send = context.Pipe(duplex=False)

    def child():
        try:
            send.send((True, call(*given)))
        except Exception as error:
            send.send((False, f"{type(error).__name__}: {error}"[:600]))

    process = context.Process(target=child)
    process.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        process.join()
        return False, f"the process ended with {process.exitcode}"
    finally:
        process.join()


def headline():
    if not torch.cuda.is_available():
        return None
    return torch.cuda.get_device_name()


def measure_row(row, measured, compared, checkpoint):
    """What the allocator may take while it is measured is the row's budget."""
    memory = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((row.get("budget") or memory) / memory)
    found = measure(Training(row["model"], measured, checkpoint))
    torch.cuda.set_per_process_memory_fraction(1.0)
    return found, bits(Training(row["model"], compared, checkpoint))


def run_all(device, folder, json_file, trl_folder):
    written = json.loads((folder / "rows.json").read_text())
    print(f"{device}, torch {torch.__version__}, transformers {transformers.__version__}; planned "
          f"for {written['card']}\n\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    done, keep = [], {}
    for row, (measured, compared), checkpoint in ways(written["rows"], folder, trl_folder):
        row = dict(row)
        succeeded, found = apart(measure_row, row, measured, compared, checkpoint)
        if succeeded:
            row["measured"], numbers = found
            if row["policy"] == "keep":
                keep[row["model"]] = numbers
            row["bits"] = "equal" if numbers == keep.get(row["model"]) else "DIFFER"
            print(f"| {' | '.join(cells(row))} |", flush=True)
        else:
            row["failed"] = found
            print(f"| {row['model']} | {row['policy']} | {found} |", flush=True)
        done.append(row)
    if json_file:
        json_file.write_text(json.dumps({"schema": 1, "device": device, "rows": done}, indent=1))
    return 1 if any(row.get("bits") != "equal" for row in done) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=("plan", "run"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--card", default="h100")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--trl", type=pathlib.Path)
    given = parser.parse_args()
    if given.verb == "plan":
        return plan_all(given.card, given.folder)
    if not (given.folder / "rows.json").is_file():
        parser.error(f"{given.folder}: expected what `plan` wrote, with a rows.json")
    _, device = apart(headline)
    if device is None:
        print("planned: no GPU", file=sys.stderr)
        return 7
    return run_all(device, given.folder, given.json, given.trl)


if __name__ == "__main__":
    sys.exit(main())
