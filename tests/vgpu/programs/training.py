"""A training on cuda gives the CPU's losses and gradients, to the bit."""

import torch


def train(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    inputs = torch.arange(128.0).reshape(8, 16).div(128).to(device)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [parameter.grad.cpu() for parameter in model.parameters()]


assert torch.cuda.is_available()
cpu_losses, cpu_gradients = train("cpu")
losses, gradients = train("cuda")
same = all(torch.equal(one, other) for one, other in zip(gradients, cpu_gradients, strict=True))
print(losses == cpu_losses and losses[2] < losses[0], same)
