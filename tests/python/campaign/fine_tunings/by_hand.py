"""A loop as people write it by hand: bf16, accumulated gradients, clipping, evaluation between
steps.

`ferry` makes the guard of a forward; `watch` is told of the model, and of what happens.
"""

import torch

from campaign.fine_tunings.scripts import AGAIN, BATCH, SAMPLES, ids, llama


def loop(ferry, watch, gradient_checkpointing=False, use_cpu=True, bf16=True, model=None):
    """Returns the losses and the model."""
    device = "cpu" if use_cpu else "cuda"
    model = (model or llama()).to(device)
    if gradient_checkpointing:
        model.activation_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.tensor([ids(each) for each in range(SAMPLES)], device=device)
    batches, losses = tokens.split(BATCH), []
    autocast = torch.autocast(device, dtype=torch.bfloat16, enabled=bf16)

    def loss_of(output):
        return output.loss / AGAIN

    model.train()
    with autocast:
        guard = ferry(model, {"input_ids": batches[0], "labels": batches[0]}, loss_of, optimizer)
    watch.begin(model, guard)
    for number, batch in enumerate(batches, 1):
        with guard, autocast:
            loss = loss_of(model(input_ids=batch, labels=batch))
        loss.backward()
        watch.went_backward()
        losses.append(loss.item())
        if number % AGAIN == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            model.eval()
            with torch.no_grad(), autocast:
                losses.append(model(input_ids=batches[0], labels=batches[0]).loss.item())
            model.train()
    return losses, model
