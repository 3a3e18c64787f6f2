"""A step or two of a training, in the way that the argument names; where its operations come from
is what counts.

    places.py plain | ddp | fsdp | trainer | offload PACKAGES
"""

import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn import functional

WAY = sys.argv[1]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))

    def forward(self, x, labels=None):
        for block in self.blocks:
            x = functional.gelu(block(x))
        return {"loss": x.square().mean(), "logits": x}


def train(model, around=None):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    side = torch.cuda.Stream()
    for _ in range(2):
        batch = torch.ones(8, 64).pin_memory().to("cuda", non_blocking=True)
        if around is not None:
            with around:
                loss = model(batch)["loss"]
        else:
            loss = model(batch)["loss"]
        loss.backward()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            batch.mul_(2)
        torch.cuda.current_stream().wait_stream(side)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)  # so the next gradients are added
        torch.cuda.synchronize()
    return float(loss.detach())


def one_rank():
    file = tempfile.NamedTemporaryFile(delete=False)
    dist.init_process_group("gloo", init_method=f"file://{file.name}", rank=0, world_size=1)


def main():
    torch.manual_seed(0)
    model = Model()
    if WAY == "trainer":
        import transformers
        data = [{"x": torch.ones(64), "labels": torch.tensor(0)}] * 16
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                folder, per_device_train_batch_size=4, max_steps=3, report_to=[], logging_steps=1,
                save_strategy="no", disable_tqdm=True)
            transformers.Trainer(model, arguments, train_dataset=data).train()
        return
    model.cuda()
    if WAY == "plain":
        train(model)
    elif WAY == "ddp":
        one_rank()
        train(torch.nn.parallel.DistributedDataParallel(model))
    elif WAY == "fsdp":
        from torch.distributed.fsdp import fully_shard
        one_rank()
        mesh = dist.init_device_mesh("cuda", (1,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        train(fully_shard(model, mesh=mesh))
    elif WAY == "offload":
        sys.path.append(sys.argv[2])
        import torch_ferry as ferry
        train(model, ferry.offload(min_bytes=0))
    if dist.is_initialized():
        dist.destroy_process_group()


main()
