"""One row of the field in Python, a process of its own: trains, and prints a line of JSON a step.

    python field_row.py ROW STATE TEXT --steps N [--device cuda] [--threads N] [--optimizer NAME]
                        [--trl FOLDER]

The last line is the row's: the bytes that a step moves (counted in one more forward and backward,
which is not timed) and what is to be said of it. A row that cannot run prints why, and exits with
0.
"""

import argparse
import contextlib
import json
import time

import torch

import field_trl
from field_inputs import read_state, read_text, text_batch
from field_models import loss_of, make_model

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Absent(Exception):
    """The row cannot run here; says why."""


def be_deterministic():
    """As real/train/loop.cpp."""
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.utils.deterministic.fill_uninitialized_memory = False


class Memory:
    """A step's peaks: the resident size's, and on CUDA the caching allocator's."""

    def __init__(self, cuda):
        self.cuda = cuda
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        if cuda:
            torch.cuda.reset_peak_memory_stats()

    def report(self):
        with open("/proc/self/status", encoding="ascii") as file:
            kib = {line.split(":")[0]: line.split()[1] for line in file if line.startswith("Vm")}
        return {
            "peak_bytes": torch.cuda.max_memory_allocated() if self.cuda else None,
            "reserved_bytes": torch.cuda.max_memory_reserved() if self.cuda else 0,
            "rss_bytes": int(kib["VmHWM"]) << 10,
        }


class Clock:
    """Marks on the device, which may be behind the host, or on the host where that computes."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.marks = []

    def mark(self):
        if self.cuda:
            self.marks.append(torch.cuda.Event(enable_timing=True))
            self.marks[-1].record()
        else:
            self.marks.append(time.perf_counter())

    def seconds(self):
        """Between marks, when the device is done."""
        pairs = zip(self.marks, self.marks[1:])
        return [a.elapsed_time(b) / 1e3 if self.cuda else b - a for a, b in pairs]


class Row:
    """Both contexts of a step: around forward alone, and around forward and backward."""

    def __init__(self, name, model, cuda, trl):
        self.note = ""
        self.around_forward = self.around_step = None
        model.checkpointed = name == "checkpoint"
        if name == "save_on_cpu":
            self.around_forward = torch.autograd.graph.save_on_cpu(pin_memory=cuda)
        if name == "trl":
            self.around_step = self.offload_activations(model, cuda, trl)

    def offload_activations(self, model, cuda, trl):
        """As SFTTrainer has it: its defaults, around a whole training step."""
        if not trl:
            raise Absent("no --trl FOLDER with TRL's activation_offloading.py")
        if not cuda:
            raise Absent("TRL's OffloadActivations moves what is on an accelerator, not a CPU")
        try:
            module, self.note = field_trl.load(trl)
        except (ImportError, FileNotFoundError) as error:
            raise Absent(str(error)) from error
        return module.get_act_offloading_ctx_manager(model=model)

    def backward(self, model, batch):
        with self.around_step or contextlib.nullcontext():
            with self.around_forward or contextlib.nullcontext():
                loss = loss_of(model, *batch)
            loss.backward()
        return loss

    def moved_bytes(self, model, batch):
        """Of one more forward and backward, to the host and back."""
        hooks = self.around_forward or self.around_step
        if hooks is None:
            return 0
        pack, unpack, moved = hooks.pack_hook, hooks.unpack_hook, [0]

        def bytes_of(packed, back):
            if not isinstance(packed, int):  # save_on_cpu's: the device, and the copy
                return packed[1].nbytes
            if back and packed in getattr(hooks, "fwd_stash", {}):
                return 0  # still on the device
            copy, is_copy = hooks.tracker[packed][:2]
            return copy.nbytes if is_copy else 0

        def counted_pack(tensor):
            packed = pack(tensor)
            moved[0] += bytes_of(packed, back=False)
            return packed

        def counted_unpack(packed):
            moved[0] += bytes_of(packed, back=True)
            return unpack(packed)

        hooks.pack_hook, hooks.unpack_hook = counted_pack, counted_unpack
        self.backward(model, batch)
        return moved[0]


def make_optimizer(model, lr, name):
    choices = {"single": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
    return torch.optim.AdamW(model.parameters(), lr=lr, **choices[name])


def train(arguments):
    be_deterministic()
    if arguments.threads > 0:
        torch.set_num_threads(arguments.threads)
    shape, weights = read_state(arguments.state)
    cuda = arguments.device == "cuda"
    device = torch.device("cuda", 0) if cuda else torch.device("cpu")
    text = read_text(arguments.text)
    model = make_model(shape, weights)
    del weights
    model.to(device, DTYPES[shape["dtype"]])
    row = Row(arguments.row, model, cuda, arguments.trl)
    optimizer = make_optimizer(model, shape["lr"], arguments.optimizer)

    def batch_of(step):
        return [tensor.to(device) for tensor in text_batch(text, shape, step)]

    for step in range(arguments.steps):
        memory, clock, begin = Memory(cuda), Clock(cuda), time.perf_counter()
        batch = batch_of(step)
        clock.mark()
        loss = row.backward(model, batch)
        clock.mark()
        optimizer.step()
        optimizer.zero_grad()
        clock.mark()
        value = loss.item()
        seconds = time.perf_counter() - begin
        del loss
        backward, optimizing = clock.seconds()
        print(json.dumps({"step": step + 1, "loss": value, "seconds": seconds,
                          "forward_backward_seconds": backward, "optimizer_seconds": optimizing,
                          **memory.report()}), flush=True)
    moved = row.moved_bytes(model, batch_of(arguments.steps))
    name = torch.cuda.get_device_name(0) if cuda else "the CPU"
    print(json.dumps({"moved_bytes": moved, "note": row.note, "device": name,
                      "torch": torch.__version__}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("row", choices=("keep", "save_on_cpu", "checkpoint", "trl"))
    parser.add_argument("state")
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--optimizer", choices=("single", "foreach", "fused"), default="single")
    parser.add_argument("--trl")
    arguments = parser.parse_args()
    try:
        train(arguments)
    except Absent as absent:
        print(json.dumps({"skipped": str(absent)}))
    except torch.OutOfMemoryError as error:
        print(json.dumps({"failed": "out of memory: " + str(error).split("\n", maxsplit=1)[0]}))


if __name__ == "__main__":
    main()
