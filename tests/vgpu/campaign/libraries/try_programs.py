"""Libraries as they are published, on the virtual GPU: the values are the CPU's, and the log is
clean, under each schedule.
"""

import dataclasses
import pathlib
import tempfile
import time

from judged import SCHEDULES

HERE = pathlib.Path(__file__).parent
HEAD = ("program", "library", "operations", "streams' order", "values", "seconds")


@dataclasses.dataclass(frozen=True)
class Program:
    file: str
    what: str
    path: tuple = ()  # published versions that stand before what is installed
    ranks: int = 0    # processes, each with a device of its own
    values: str = "the same bits"


PROGRAMS = (
    Program("save_on_cpu.py", "save_on_cpu(pin_memory=True)"),
    Program("torchtune_decoder.py", "torchtune 0.6.1", ("torchtune==0.6.1", "torchao==0.9.0")),
    Program("trl_sft.py", "TRL 1.14.0's SFTTrainer, activation_offloading=True", ("trl==1.14.0",)),
    Program("trl_sft_triton.py", "TRL's SFTTrainer with its Triton loss", values="within 1e-6"),
    Program("accelerate_hooks.py", "accelerate's cpu_offload, dispatch_model"),
    Program("trainer.py", "transformers' Trainer"),
    Program("compiled_gpt2.py", "torch.compile of GPT-2, three modes", values="within 1e-5"),
    Program("compiled_trainer.py", "Trainer with torch_compile", values="within 1e-6"),
    Program("qlora.py", "QLoRA by bitsandbytes 0.50 and peft"),
    Program("torchvision_operators.py", "torchvision's registered operators"),
    Program("ddp.py", "DistributedDataParallel on Gloo, one rank", ranks=1),
    Program("ddp.py", "DistributedDataParallel on Gloo, two ranks", ranks=2),
    Program("fsdp.py", "FSDP2 on Gloo, two ranks", ranks=2),
)


def run(tools, program, schedule, pool):
    """What was said of each process."""
    path = [tools.folder_of(each) for each in program.path]
    if not program.ranks:
        return [tools.run(schedule, HERE / program.file, path=path)]
    with tempfile.TemporaryDirectory() as folder:
        ranks = [pool.submit(tools.run, schedule, HERE / program.file, rank, program.ranks,
                             pathlib.Path(folder) / "meeting", path=path)
                 for rank in range(program.ranks)]
        return [rank.result() for rank in ranks]


def faults_of(program, schedule, said):
    for judged in said:
        if judged.status or judged.last_line() != "True" or not judged.operations:
            yield (f"{program.what}, {' '.join(schedule)}: exit {judged.status}, "
                   f"{judged.last_line()}\n{judged.told}")


def try_all(tools, names, pool):
    """One after the other, for ranks need the pool's threads at the same time."""
    for program in PROGRAMS:
        if names and not any(name in program.file for name in names):
            continue
        begun, faults, said = time.monotonic(), [], []
        for schedule in SCHEDULES:
            said += run(tools, program, schedule, pool)
            faults += faults_of(program, schedule, said[-max(program.ranks, 1):])
        races = sum(len(judged.violations) for judged in said)
        same = all(judged.last_line() == "True" for judged in said)
        yield (program.file, program.what, str(said[0].operations),
               f"{races} races" if races else "clean", program.values if same else "OTHER",
               f"{time.monotonic() - begun:.0f}"), faults
