"""Records one training step as events. `torch_ferry.lower` makes a program of them.

A tensor is recorded as a `Ref`: the number of a storage and a window on it. Storages are numbered
as they appear and forgotten as they die, so nothing depends on an address. The trace keeps no
tensor alive: a storage dies when the model drops it, and that is an event too. So `pack` keeps only
a description of a tensor, and `unpack` makes a new fake tensor.

Each event belongs to a node. In forward PyTorch counts nodes (the sequence number). The node under
construction at a pack is the last one counted, and a node was made before an event if its number is
below the event's count. In backward, a hook before each node and one after it mark its body. What
runs between nodes (sums of gradients, AccumulateGrad) is not recorded, because whoever runs the
program does it.
"""

import contextlib
import weakref
from typing import NamedTuple
from weakref import WeakValueDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

from . import progress
from .asking import asking_line
from .costs import cost
from .kernels import adds_mask_in_place
from .known import carry, read_in_cxx
from .once import runs_once
from .op_call import tensors_in, tensors_of
from .program import CaptureError

LEAF = "torch::autograd::AccumulateGrad"
sequence_number = torch._C._autograd._get_sequence_nr
aten = torch.ops.aten
# Operators in place that also write another argument without counting its version. Operators that
# are not named as in place count no version at all.
LATE_IN_PLACE = ("rrelu_with_noise_",)
# The parts that these make share a storage but have versions of their own: a write to one does not
# count for the others. A program counts versions by storage, so such writes are left out of it, and
# no replay may make the storage again without them.
UNSAFE = ("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk")
ZEROS = ("aten.new_zeros", "aten.zeros")
# PyTorch's backward formulas write to new zeros in place, but not for tensor subclasses such as
# fake tensors (areAnyTensorSubclassLike). For each operator: the one in place.
IN_PLACE = {
    aten.index_put.default: aten._index_put_impl_.default,  # without checks: forward made them
    aten.scatter_add.default: aten.scatter_add_.default,
    aten.scatter.src: aten.scatter_.src,
    aten.index_add.default: aten.index_add_.default,
}


class Ref(NamedTuple):
    storage: int
    dtype: torch.dtype
    shape: tuple
    strides: tuple
    offset: int


class OpEvent(NamedTuple):
    made: int  # how many nodes were made before it
    name: str
    inputs: list
    outputs: list
    writes: list
    once: bool  # in forward: no replay may run it again
    costs: dict  # keys of its line in a program


class PackEvent(NamedTuple):
    made: int
    pack: int


class ModuleEvent(NamedTuple):
    made: int
    key: str  # enter or leave
    name: str


class SegmentEvent(NamedTuple):  # a call of a checkpoint begins, or a module that may be called so
    made: int
    name: str
    called: bool
    arguments: list  # Refs
    behind: list  # (node, output number): the edges of the arguments


class DeathEvent(NamedTuple):
    storage: int


class DropEvent(NamedTuple):
    pack: int  # a pack whose node died without running


class Node:
    """A node of the graph. An edge is None, the Ref of a leaf, or (node, output number)."""

    def __init__(self, name, edges):
        self.name, self.edges = name, edges


class Body:
    """One run of a node in backward."""

    def __init__(self, arguments, is_pythons):
        self.arguments = arguments
        self.is_pythons = is_pythons
        self.saved = {}  # number of the pack → Ref
        self.results = []
        self.events = []
        # Unpacked tensors. A C++ node releases them at the end of its formula, before PyTorch sums
        # gradients of broadcast inputs. A Python function may unpack them again.
        self.held = {} if is_pythons else WeakValueDictionary()


class Packed:
    """The object that autograd holds in place of a saved tensor."""

    __slots__ = ("number", "ref", "bytes", "device", "_ferry_value", "_ferry_line",
                 "__weakref__")

    def __init__(self, number, ref, tensor):
        self.number, self.ref, self.device = number, ref, tensor.device
        self.bytes = tensor.untyped_storage().nbytes()
        carry(tensor, self)


class Trace(TorchDispatchMode):
    def __init__(self, mode, device, moves):
        """`moves`: real tensors of the script are moved to the device, like the module."""
        super().__init__()
        self.mode, self.device, self.moves = mode, device, moves
        self.start = 0  # PyTorch's count of nodes when the step began
        self.events = []  # the events of forward
        self.sink = None  # the list that takes events now, or None
        self.open = None  # (node, Body) while a node runs
        self.storage_bytes = []  # bytes of each storage, by its number
        self.bodies = {}  # node → Body
        self.nodes = {}  # node → Node
        self.behind = {}  # node → its edges, noted during its construction
        self.packs = []  # [node, Ref]
        self.constants = []  # Refs of other tensors from before: no parameter, buffer or input
        self.apart = set()  # storages that an UNSAFE operator split
        self.leaves = {}  # storage → Ref of a leaf that accumulates a gradient
        self.root = None  # the loss's (node, output number)
        self.segments = 0  # number of calls of checkpoints
        self.foreign = False  # True if some are calls of torch.utils.checkpoint
        self._alive = {}  # address of a living storage → (number, weak reference)
        self._watches = {}
        self._moved = WeakTensorKeyDictionary()
        self._lifted = None  # the result of the last call, if that was lift_fresh

    def begin(self, fixed):
        """Begins the step. `fixed` are the tensors that exist before it."""
        self.start = sequence_number()
        for tensor in fixed:
            self.ref(self.fake(tensor))
        self.sink = self.events

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is aten.lift_fresh.default and self.moves and self.device != "cpu":
            return self._lift(func, *args)
        args, kwargs = tree_map_only(torch.Tensor, self.fake, (args, kwargs or {}))
        is_creation = func is aten._to_copy.default and args[0] is self._lifted
        if func.namespace != "prim":  # these only look at the device
            self._lifted = None
        func, args = self._as_of_no_subclass(func, args)
        if self.sink is self.events and torch.is_grad_enabled():
            self._note_behind(tensors_in([*args, *kwargs.values()]))
        result = func(*args, **kwargs)
        if self.sink is not None and not is_creation:
            self._record(func, args, kwargs, result)
        return result

    def _lift(self, func, tensor):
        """Makes the host tensor that torch.tensor makes of numbers. It stays there if the script
        requested that. Otherwise the next call moves it, and the two calls are one creation."""
        self._lifted = func(self.mode.twin(tensor))
        return self._lifted

    def _as_of_no_subclass(self, func, args):
        """Returns the call that a C++ formula would make here if the tensors were plain ones."""
        if func is aten.add.Tensor and adds_mask_in_place():
            return aten.add_.Tensor, args  # the mask
        if self.open is None or func not in IN_PLACE or self.open[1].is_pythons:
            return func, args
        before = self.sink[-1] if self.sink else None
        made_zeros = isinstance(before, OpEvent) and before.name in ZEROS
        if not made_zeros or before.outputs[0] != self.ref(args[0]):
            return func, args
        unchecked = (True,) if func is aten.index_put.default else ()
        return IN_PLACE[func], (*args, *unchecked)

    def fake(self, tensor):
        """Returns the step's fake tensor for a real tensor that existed before the step."""
        if isinstance(tensor, FakeTensor):
            return tensor
        if not self.moves:
            return self.mode.twin(tensor)
        if tensor not in self._moved:
            sink, self.sink = self.sink, None
            with torch._C.DisableTorchFunction(), torch.no_grad(), self.mode:
                fake = self.mode.twin(tensor).to(self.device)
            self._moved[tensor] = fake.detach().requires_grad_(tensor.requires_grad)
            self.sink = sink
        return self._moved[tensor]

    def _record(self, func, args, kwargs, result):
        inputs, written = tensors_of(func, args, kwargs)
        name = func._overloadpacket.__name__
        inputs, written = self._on_device(inputs, written)
        refs = [self.known(tensor) for tensor in inputs]
        if name in UNSAFE and refs:
            self.apart.add(refs[0].storage)
        fresh = [tensor for tensor in tensors_in(result)
                 if not self.knows(tensor) and tensor.device.type == self.device]
        fresh = {self.ref(tensor).storage: tensor for tensor in reversed(fresh)}  # each once
        fresh = list(fresh.values())[::-1]
        if not fresh and not written:
            return  # a view, or a look at a shape
        costs = cost(func, args, kwargs, result, inputs, written, fresh)
        once = self.sink is self.events and runs_once(func, args, kwargs)
        outputs = [self.ref(tensor) for tensor in fresh]
        if any(refs[at].storage in self.apart for at in written):
            written, once = [at for at in written if refs[at].storage not in self.apart], True
        label = f"{func.namespace}.{name}"
        late = self._packs_of_late_writes(name) if written else []
        self.sink.append(OpEvent(self.count(), label, refs, outputs, written, once, costs))
        self.sink += late
        progress.operator()

    def _packs_of_late_writes(self, name):
        """Takes back the packs of an operator that saves a tensor before it fills it, without
        counting a version. Such a tensor is packed after the operator, as the hooks of a run do
        (real/autograd/late_writes.h)."""
        packs = []
        if name.endswith("_") and name not in LATE_IN_PLACE or self.sink is not self.events:
            return packs
        while self.sink and isinstance(self.sink[-1], PackEvent) \
                and self.packs[self.sink[-1].pack][0] == self.count() - 1:
            packs.insert(0, self.sink.pop())
        return packs

    def _on_device(self, inputs, written):
        """Returns the arguments without tensors on the host, which use no device memory."""
        places = [at for at, tensor in enumerate(inputs) if tensor.device.type == self.device]
        return ([inputs[at] for at in places],
                [number for number, at in enumerate(places) if at in written])

    def count(self):
        return sequence_number() - self.start

    # Storages.

    def knows(self, tensor):
        if tensor.layout != torch.strided:
            raise CaptureError(f"{asking_line()} makes a tensor of {tensor.layout}, and a program "
                               "has only dense tensors: make a dense one")
        return tensor.untyped_storage()._cdata in self._alive

    def known(self, tensor):
        """Returns the Ref of an argument. If no recorded call made its storage, it is a constant.
        """
        is_new = not self.knows(tensor)
        ref = self.ref(tensor)
        if is_new and self.sink is self.events:
            self.constants.append(ref)
        return ref

    def ref(self, tensor):
        storage = tensor.untyped_storage()
        address = storage._cdata
        if address not in self._alive:
            number = len(self.storage_bytes)
            self.storage_bytes.append(storage.nbytes())
            watch = weakref.ref(storage, lambda _: self._died(address, number))
            self._alive[address] = (number, watch)
        number = self._alive[address][0]
        return Ref(number, tensor.dtype, tuple(map(int, tensor.shape)),
                   tuple(map(int, tensor.stride())), int(tensor.storage_offset()))

    def _died(self, address, number):
        del self._alive[address]
        if self.sink is not None:
            self.sink.append(DeathEvent(number))

    def alive(self):
        """Returns the numbers of the storages that are alive now, in order."""
        return sorted(number for number, _ in self._alive.values())

    # Saved tensors.

    def pack(self, tensor):
        if self.sink is None:  # outside of the step
            return tensor
        tensor = self.fake(tensor)
        number = len(self.packs)
        packed = Packed(number, self.known(tensor), tensor)
        self.packs.append([self.count() - 1, packed.ref])
        if self.sink is self.events:
            self._watches[number] = weakref.ref(packed, lambda _: self._dropped(number))
            self.events.append(PackEvent(self.count(), number))
        return packed

    def _dropped(self, number):
        del self._watches[number]
        if self.sink is self.events:
            self.events.append(DropEvent(number))

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        if self.open is None:
            return self._fresh(packed)
        node, body = self.open
        if packed.number not in body.saved:
            self._belongs(packed.number, node)
            real = read_in_cxx(packed, self.nodes[node].name)
            tensor = body.held[packed.number] = self._fresh(packed) if real is None else real
            body.saved[packed.number] = self.ref(tensor)
            return tensor
        if packed.number not in body.held:
            raise CaptureError(f"{self.nodes[node].name} unpacks a saved tensor again after it "
                               "released it, which cannot be captured")
        return body.held[packed.number]

    def _belongs(self, pack, node):
        """Checks that the node that unpacks is the one that packed. CopySlices wraps an earlier
        node and runs in its place; any other later node takes what was saved for another."""
        if node > self.packs[pack][0] and self.nodes[node].name != "CopySlices":
            raise CaptureError(f"{self.nodes[node].name} unpacks what another node saved: a "
                               "checkpoint that is not torch.utils.checkpoint's cannot be captured")
        self.packs[pack][0] = node

    def _fresh(self, packed):
        sink, self.sink = self.sink, None
        ref = packed.ref
        items = -(-packed.bytes // ref.dtype.itemsize)
        with torch.no_grad():
            flat = torch.empty(items, dtype=ref.dtype, device=packed.device)
            tensor = flat.as_strided(ref.shape, ref.strides, ref.offset)
        carry(packed, tensor)
        self.sink = sink
        return tensor

    # Checkpoints, which run without a recompute while they are recorded (segments.py).

    @contextlib.contextmanager
    def segment(self, args, kwargs):
        """A context whose code is one call of a checkpoint with these arguments."""
        if not torch.is_grad_enabled() or self.sink is not self.events:
            yield
            return
        name = f"checkpoint.{self.segments}"
        self.segments += 1
        self.enter_segment(name, [*args, *kwargs.values()])
        yield
        self.events.append(ModuleEvent(self.count(), "leave", name))

    def enter_segment(self, name, arguments, called=True):
        tensors = [self.fake(each) for each in arguments if isinstance(each, torch.Tensor)]
        tensors = [tensor for tensor in tensors if tensor.device.type == self.device]
        behind = [tensor for tensor in tensors if tensor.grad_fn is not None]
        for tensor in behind:
            self.note(tensor.grad_fn)
        edges = [(self.number_of(tensor.grad_fn), tensor.output_nr) for tensor in behind]
        refs = [self.known(tensor) for tensor in tensors]
        self.events.append(SegmentEvent(self.count(), name, called, refs, edges))

    # The graph.

    def note(self, function):
        """Records the graph behind this node, each node once."""
        todo = [function]
        while todo:
            function = todo.pop()
            node = self.number_of(function)
            if node is None or node in self.nodes:
                continue
            edges = []
            for child, output in function.next_functions:
                if child is None:
                    edges.append(None)
                elif child.name() == LEAF:
                    leaf = self.ref(self.fake(child.variable))
                    self.leaves[leaf.storage] = leaf
                    edges.append(leaf)
                else:
                    edges.append((self.number_of(child), output))
                    todo.append(child)
            self.nodes[node] = Node(function.name().removeprefix("torch::autograd::"), edges)

    def _note_behind(self, arguments):
        """Records what is behind the node under construction, in case no result shows it: `Results`
        does not see calls inside PyTorch's own Python functions, and a node may die there."""
        node = self.count() - 1
        if node < 0 or node in self.behind or node in self.nodes:
            return
        edges = self.behind[node] = []
        for tensor in arguments:
            if tensor.grad_fn is not None:
                self.note(tensor.grad_fn)
                edges.append((self.number_of(tensor.grad_fn), tensor.output_nr))
            elif tensor.requires_grad:
                edges.append(self.known(tensor))

    def number_of(self, function):
        if function.name() == LEAF:
            return None
        return function._sequence_nr() - self.start

    def finish_forward(self, loss):
        """Ends forward, and hooks every node that backward will run."""
        self.sink = None
        self.note(loss.grad_fn)
        for node, edges in self.behind.items():
            self.nodes.setdefault(node, Node("Unknown", edges))
        self.root = (self.number_of(loss.grad_fn), loss.output_nr)
        seen, todo = set(), [loss.grad_fn]
        while todo:
            function = todo.pop()
            node = self.number_of(function)
            if node is None or node in seen:
                continue
            seen.add(node)
            is_pythons = isinstance(function, torch.autograd.function.BackwardCFunction)
            function.register_prehook(self._entering(node, is_pythons))
            function.register_hook(self._leaving(node))
            todo.extend(child for child, _ in function.next_functions if child is not None)

    def _entering(self, node, is_pythons):
        def before(gradients):
            body = Body([None if g is None else self.ref(g) for g in gradients], is_pythons)
            self.bodies[node] = body
            self.open, self.sink = (node, body), body.events
        return before

    def _leaving(self, node):
        def after(results, _):
            body = self.bodies[node]
            body.results = [None if r is None else self.ref(r) for r in results]
            self.open = self.sink = None
            body.held.clear()
        return after
