"""Blocks that are alike, on cuda and on the CPU: gradients equal to the bit? And the peak on cuda.

    blocks.py [--fails | --races]      --races: a stream reads what another one is still computing
"""

import sys

import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.dropout(
            torch.nn.functional.gelu(self.up(x)), 0.0, self.training))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(6))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.square().mean()


def train(device):
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.arange(4096.0 * 64).reshape(4096, 64).div(4096 * 64).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()
    with torch.no_grad():
        model(x)
    return [parameter.grad.cpu() for parameter in model.parameters()]


def main():
    on_cuda = train("cuda")
    peak = torch.cuda.max_memory_allocated()
    print(all(map(torch.equal, on_cuda, train("cpu"))), peak)
    if sys.argv[1:] == ["--fails"]:
        raise SystemExit("on purpose")
    if sys.argv[1:] == ["--races"]:
        x = torch.zeros(8, device="cuda")
        with torch.cuda.stream(torch.cuda.Stream()):
            x + 1


if __name__ == "__main__":
    main()
