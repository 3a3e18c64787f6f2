"""What the virtual GPU costs beside plain PyTorch on the same CPU, with values.

    overhead.py FERRY PYTHON [--rounds N]

The same work on `cpu` and, under `ferry run`, on `cuda`, in turns: one thread each, wall time, the
least of all rounds, and their ratio. The CPU has no events.
"""

import argparse
import json
import os
import subprocess
import sys
import time

ROWS = (("an event is recorded", "event"), ("addition of 8 numbers", "add"),
        ("the same, forward and backward", "backward"), ("addition of 1 MiB", "add_large"),
        ("matrix product, 512 x 512", "matmul"), ("a training step of a small GPT", "gpt"))


def least(call, rounds, repeats):
    import torch
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / repeats)
    return min(times)


def gpt(device):
    """Four layers of 256, 4 x 128 tokens, AdamW."""
    import torch
    from torch import nn
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True, norm_first=True)
    layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(1000, 256), layers, nn.Linear(256, 1000)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    tokens = torch.randint(0, 1000, (4, 128)).to(device)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
    return step


def measure(rounds):
    """On CUDA where there is one."""
    import torch
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    small = torch.ones(8, device=device)
    leaf = torch.ones(8, device=device, requires_grad=True)
    large = torch.ones(1 << 18, device=device)
    square = torch.ones(512, 512, device=device)
    works = {"add": (lambda: small + small, 300),
             "backward": (lambda: (leaf + leaf).sum().backward(), 100),
             "add_large": (lambda: large + large, 50), "matmul": (lambda: square @ square, 10),
             "gpt": (gpt(device), 1)}
    if device == "cuda":
        works["event"] = (torch.cuda.Event().record, 300)
    for call, _ in works.values():
        call()
    print(json.dumps({name: least(call, rounds, repeats)
                      for name, (call, repeats) in works.items()}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ferry")
    parser.add_argument("python")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    work = [__file__, "--measure", str(options.rounds)]
    here = [options.python, *work]
    there = [options.ferry, "run", "--hide-gpu", "--python", options.python, *work]
    best = ({}, {})
    for _ in range(options.rounds):
        for times, command in zip(best, (here, there), strict=True):
            done = subprocess.run(command, env=dict(os.environ, OMP_NUM_THREADS="1"), check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for name, seconds in json.loads(done.stdout).items():
                times[name] = min(seconds, times.get(name, seconds))
    print(f"{'':34}{'CPU':>12}{'virtual GPU':>14}{'ratio':>8}")
    for text, name in ROWS:
        virtual = best[1][name]
        if name not in best[0]:
            print(f"{text:34}{'-':>12}{1e6 * virtual:11.1f} us{'-':>8}")
            continue
        cpu = best[0][name]
        print(f"{text:34}{1e6 * cpu:9.1f} us{1e6 * virtual:11.1f} us{virtual / cpu:8.2f}")


if __name__ == "__main__":
    measure(int(sys.argv[2])) if sys.argv[1:2] == ["--measure"] else main()
