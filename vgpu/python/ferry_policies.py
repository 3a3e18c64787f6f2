"""Puts a policy (`ferry run --policy`) around the models of a script, which itself is unchanged.

A *forward* is a call of a module, in grad mode, that is not inside a call of another module. Its
*blocks* are children of a ModuleList or a Sequential that are alike: two or more of one class, with
parameters. A child inside another block is not a block.

    keep                 nothing
    offload              what a forward saves goes to the host
    checkpoint           each block is recomputed in backward, as by torch.utils.checkpoint; a model
                         with Hugging Face's gradient_checkpointing_enable uses that instead
    checkpoint-offload   the same, and the blocks' inputs go to the host
    compile              the model is compiled, as by torch.compile(model), unless it has no
                         parameters or the script compiled it
    compile-offload      each block is compiled by itself, and what a forward saves goes to the
                         host. A compiled model brings all of that back when its backward begins
    compile-checkpoint   the model is compiled with each block checkpointed
    FILE                 a plan of `ferry plan -o`, which says how what a forward saves is moved

What the script computes from the output, such as a loss, is not part of a forward.
"""

import collections
import contextlib
import functools
import sys
import threading
import weakref

import torch
from torch.utils.checkpoint import checkpoint


def _torch_ferry(packages):
    try:
        import torch_ferry
    except ImportError:
        sys.path.append(packages)
        import torch_ferry
    return torch_ferry


def _blocks(root):
    """Returns the outermost blocks. It is called once for each model."""
    found, inner = weakref.WeakSet(), set()
    for module in root.modules():  # parents first
        if id(module) in inner or not isinstance(
                module, (torch.nn.ModuleList, torch.nn.Sequential)):
            continue
        numbers = collections.Counter(type(child) for child in module)
        for child in module:
            if numbers[type(child)] > 1 and next(child.parameters(), None) is not None:
                found.add(child)
                inner.update(map(id, child.modules()))
    return found


def _is_compiled(module):
    from torch._dynamo.eval_frame import OptimizedModule
    return isinstance(module, OptimizedModule) or module._compiled_call_impl is not None


class _Around:
    """Takes the place of Module.__call__."""

    def __init__(self, offload=None, checkpoint=None, compiles=False):
        self._call = torch.nn.Module.__call__
        self._offload = offload        # None: nothing is offloaded
        self._checkpoint = checkpoint  # called as PyTorch's; None: no checkpoints
        self._compiles = compiles
        self._thread = threading.local()
        self._roots = weakref.WeakKeyDictionary()  # the blocks of each root module

    def install(self):
        around, inner = self, self._call

        def call(module, *args, **kwargs):
            if torch.compiler.is_compiling():
                return inner(module, *args, **kwargs)
            return around(module, args, kwargs)
        torch.nn.Module.__call__ = call

    def __call__(self, module, args, kwargs):
        blocks = getattr(self._thread, "blocks", None)
        if blocks is None:
            # A recompute within backward is not a forward.
            if not torch.is_grad_enabled() or torch._C._current_graph_task_id() != -1:
                return self._call(module, *args, **kwargs)
            return self._forward(module, args, kwargs)
        if module not in blocks or not torch.is_grad_enabled():
            return self._call(module, *args, **kwargs)
        return self._checkpoint(functools.partial(self._block, module), *args, **kwargs)

    def _forward(self, root, args, kwargs):
        if root not in self._roots:
            self._roots[root] = self._prepared(root)
        with self._offload or contextlib.nullcontext(), self._within(self._roots[root]):
            return self._call(root, *args, **kwargs)

    def _prepared(self, root):
        if self._offload is not None:
            self._offload.exempt(root)
        blocks = self._checkpointed(root) if self._checkpoint is not None else ()
        if not self._compiles or _is_compiled(root) or next(root.parameters(), None) is None:
            return blocks
        for block in blocks:
            block.forward = functools.partial(self._checkpoint, block.forward)
        apart = _blocks(root) if self._offload is not None else ()
        for module in apart or (root,):
            module.compile()
        return ()

    def _checkpointed(self, root):
        """Returns the blocks that are left to checkpoint."""
        if not hasattr(root, "gradient_checkpointing_enable"):
            return _blocks(root)
        root.gradient_checkpointing_enable()
        for module in root.modules():
            if hasattr(module, "_gradient_checkpointing_func"):
                module._gradient_checkpointing_func = self._checkpoint
        return ()

    def _block(self, block, *args, **kwargs):
        with self._within(()):
            return self._call(block, *args, **kwargs)

    @contextlib.contextmanager
    def _within(self, blocks):
        before = getattr(self._thread, "blocks", None)
        self._thread.blocks = blocks
        try:
            yield
        finally:
            self._thread.blocks = before


def apply(policy, packages):
    """Puts the policy in place. `packages` is the folder of torch_ferry if it is not installed."""
    if policy == "keep":
        return
    compiles = policy.split("-")[0] == "compile"
    pytorchs = functools.partial(checkpoint, use_reentrant=False)
    if policy in ("checkpoint", "compile", "compile-checkpoint"):
        _Around(None, None if policy == "compile" else pytorchs, compiles).install()
        return
    ferry = _torch_ferry(packages)
    if policy in ("offload", "compile-offload"):
        _Around(ferry.offload(device="cuda"), None, compiles).install()
    elif policy == "checkpoint-offload":
        _Around(ferry.offload(device="cuda"), ferry.checkpoint).install()
    else:
        _Around(ferry.execute(policy)).install()
