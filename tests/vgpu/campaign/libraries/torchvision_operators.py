"""Each operator that torchvision registers, on the virtual GPU: its values are the CPU's, and those
that have gradients give the CPU's, too.

    torchvision_operators.py [--table]     run by `ferry run`

With --table prints a line for each: its name, `runs` and by whom, or why it fails.
"""

import sys

import torch
import torchvision  # noqa: F401

torch.set_num_threads(1)
IMAGE, COARSE = torch.rand(2, 8, 12, 12), (0.5, 2, 2)
BOXES = torch.tensor([[0, 1, 1, 9, 9], [1, 0, 2, 20, 22.5], [1, 4, 4, 8, 20]], dtype=torch.float)
OFFSETS, WEIGHT = torch.rand(2, 18, 10, 10), torch.rand(4, 8, 3, 3)
DEFORMED = (IMAGE, WEIGHT, OFFSETS, torch.rand(2, 9, 10, 10), torch.rand(4), 1, 1, 0, 0, 1, 1, 1, 1,
            True)
SHAPE = (2, 8, 12, 12)
CHANNELS = torch.arange(8, dtype=torch.int).remainder(2).reshape(1, 2, 2, 2).repeat(3, 1, 1, 1)
NUMBERS = torch.arange(96, dtype=torch.int).reshape(3, 8, 2, 2)
SMALL, LARGE = torch.rand(3, 2, 2, 2), torch.rand(3, 8, 2, 2)
BYTES = torch.arange(2 * 12 * 12, dtype=torch.uint8).reshape(1, 2, 12, 12)

CALLS = {
    "nms": (BOXES[:, 1:], torch.rand(3), 0.1),
    "box_iou_rotated": (BOXES, BOXES[1:]),
    "roi_align": (IMAGE, BOXES, *COARSE, 2, True),
    "_roi_align_backward": (LARGE, BOXES, *COARSE, *SHAPE, 2, True),
    "roi_pool": (IMAGE, BOXES, *COARSE),
    "_roi_pool_backward": (LARGE, BOXES, NUMBERS, *COARSE, *SHAPE),
    "ps_roi_align": (IMAGE, BOXES, *COARSE, 2),
    "_ps_roi_align_backward": (SMALL, BOXES, CHANNELS, *COARSE, 2, *SHAPE),
    "ps_roi_pool": (IMAGE, BOXES, *COARSE),
    "_ps_roi_pool_backward": (SMALL, BOXES, CHANNELS, *COARSE, *SHAPE),
    "deform_conv2d": DEFORMED,
    "_deform_conv2d_backward": (torch.rand(2, 4, 10, 10), *DEFORMED),
    "qnms": (BOXES[:, 1:].to(torch.uint8), torch.arange(3, dtype=torch.uint8), 0.1),
    "qroi_align": (BYTES, BOXES[:1].to(torch.uint8), 0.5, 0, 1.0, 0, *COARSE, 2, True),
    "_cuda_version": (),
}
DIFFERENTIABLE = ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")


def on(device, argument, gradients):
    if not isinstance(argument, torch.Tensor):
        return argument
    argument = argument.to(device, copy=True)
    return argument.requires_grad_(gradients and argument.is_floating_point())


def made(name, device):
    """The results on the CPU, and the gradients of the arguments if there are any."""
    gradients = name in DIFFERENTIABLE
    arguments = [on(device, each, gradients) for each in CALLS[name]]
    found = getattr(torch.ops.torchvision, name)(*arguments)
    found = list(found) if isinstance(found, tuple) else [found]
    if gradients:
        found[0].sin().sum().backward()
        found += [each.grad for each in arguments
                  if isinstance(each, torch.Tensor) and each.grad is not None]
    return [each.detach().cpu() if isinstance(each, torch.Tensor) else torch.tensor(each)
            for each in found]


def verdict(name):
    try:
        there = made(name, "cuda")
    except (RuntimeError, NotImplementedError) as error:
        return f"fails: {str(error).splitlines()[0]}"
    here = made(name, "cpu")
    same = len(here) == len(there) and all(map(torch.equal, here, there))
    return "runs" if same else "OTHER VALUES"


def main():
    there_are = {schema.name.partition("::")[2] for schema in torch._C._jit_get_all_schemas()
                 if schema.name.startswith("torchvision::")}
    verdicts = {name: verdict(name) for name in sorted(CALLS)}
    if "--table" in sys.argv:
        for name, found in verdicts.items():
            print(f"{name} | {found}")
    print(there_are == CALLS.keys() and set(verdicts.values()) == {"runs"})


main()
