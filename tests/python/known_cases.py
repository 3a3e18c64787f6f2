"""Steps that ask for values: what they make of `y`, of floating point and not known, and of `k`."""

import torch
import torch.nn.functional as F
from torch.nn.utils import rnn

LENGTHS, REPEATS = torch.tensor([6, 4, 2]), torch.tensor([3, 2, 1])
VALUES = {
    "lengths": LENGTHS, "repeats": REPEATS, "ends": torch.tensor([0, 3, 5, 6]),
    "mask": torch.tensor([True, False, True, True, False, True]),
    "places": torch.tensor([0, 1, 1, 3, 3, 5]), "floats": torch.tensor([1.0, 0, 1, 0, 1, 1]),
}
CASES = {}  # name → the function of (y, k); `k` gives each of VALUES by its name


def case(function):
    CASES[function.__name__] = function
    return function


def _add(name, expression):
    CASES[name] = expression


# Python's numbers.
_add("item", lambda y, k: y * int(k("lengths").max()))
_add("float", lambda y, k: y * float(k("floats").mean()))
_add("condition", lambda y, k: y * 2 if (k("lengths") > 5).any() else y.exp())
_add("comparison", lambda y, k: y * max(k("lengths")[0], k("lengths")[1]))
_add("contains", lambda y, k: y * 2 if 4 in k("lengths") else y.exp())
_add("equal", lambda y, k: y * 2 if torch.equal(k("lengths"), LENGTHS) else y.exp())
_add("allclose", lambda y, k: y * 2 if torch.allclose(k("floats"), k("floats") + 0) else y)
_add("is_nonzero", lambda y, k: y * 2 if torch.is_nonzero(k("lengths").sum()) else y.exp())
_add("tolist", lambda y, k: torch.cat(y.split(k("repeats").tolist())))
_add("numpy", lambda y, k: y[:k("repeats").cpu().numpy().max()])
_add("format", lambda y, k: y * len(f"{k('floats').mean():.3f}"))
_add("range", lambda y, k: sum(y[at].exp().sum() for at in range(k("lengths").max())))
_add("tensor", lambda y, k: y[torch.tensor([k("lengths")[1], k("lengths")[2]])])
_add("slice", lambda y, k: y[:k("lengths")[1]].exp())
_add("select", lambda y, k: y[k("lengths").max() - 1].exp())
_add("narrow", lambda y, k: y.narrow(0, k("lengths")[2], 3).exp())
_add("view", lambda y, k: y.exp().view(k("lengths")[2], -1).exp())
_add("arange", lambda y, k: y * torch.arange(k("lengths").max(), device=y.device))
_add("full", lambda y, k: y + y.new_zeros(k("lengths")[0], 6))

# Shapes.
_add("nonzero", lambda y, k: y[k("mask").nonzero().squeeze(1)])
_add("where", lambda y, k: y[torch.where(k("mask"))])
_add("argwhere", lambda y, k: y[torch.argwhere(k("mask"))[:, 0]])
_add("index", lambda y, k: y[k("mask")])
_add("index_floats", lambda y, k: y[:, k("floats") > 0])
_add("index_isin", lambda y, k: y[torch.isin(torch.arange(6, device=y.device), k("lengths"))])
_add("masked_select", lambda y, k: y.masked_select(k("mask")))
_add("masked_select_wide", lambda y, k: y.masked_select(k("mask")[:, None]))
_add("unique", lambda y, k: y[:k("places").unique().numel()].exp())
_add("unique_alone", lambda y, k: y[:torch.ops.aten._unique(k("places"))[0].numel()].exp())
_add("unique_dim", lambda y, k: y[:k("places").view(3, 2).unique(dim=0).shape[0]].exp())
_add("unique_consecutive", lambda y, k: y[k("places").unique_consecutive()])
_add("bincount", lambda y, k: y * torch.bincount(k("places")))
_add("bincount_weights", lambda y, k: y * torch.bincount(k("places"), y.detach()[0]))
_add("one_hot", lambda y, k: y @ F.one_hot(k("places")).float())
_add("repeats", lambda y, k: y[:3].repeat_interleave(k("repeats"), 0))
_add("repeats_alone", lambda y, k: y[torch.repeat_interleave(k("repeats"))])
_add("tensor_split", lambda y, k: y.tensor_split(k("ends").cpu())[2].exp())
_add("unpad", lambda y, k: rnn.unpad_sequence(_three(y), k("lengths"))[1].exp())


@case
def index_put(y, k):
    z = y.exp()
    z[k("mask")] = y[:4]
    return z


@case
def written(y, k):
    lengths = torch.empty_like(k("lengths"))
    lengths.copy_(k("lengths"))
    return y[:int(lengths.min())].exp()


# Sequences of different lengths.
def _three(y):
    """As six steps of three sequences."""
    return y[:, None, :].expand(6, 3, 6).exp()


def _ctc(y, lengths, targets, **options):
    wide = targets.dim() == 2
    flat = torch.tensor([1, 2, 3, 1, 2, 1], device=y.device)
    padded = torch.tensor([[1, 2, 3], [1, 2, 0], [1, 0, 0]], device=y.device)
    return F.ctc_loss(_three(y).log_softmax(-1), padded if wide else flat, lengths,
                      targets[0] if wide else targets, **options)


_add("ctc", lambda y, k: _ctc(y, k("lengths"), k("repeats")))
_add("ctc_padded", lambda y, k: _ctc(y, k("lengths"), k("repeats")[None]))
_add("ctc_int", lambda y, k: _ctc(y, k("lengths").int(), k("repeats").int(), reduction="none"))
_add("ctc_zeros", lambda y, k: _ctc(y, k("lengths"), k("repeats"), zero_infinity=True))
_add("ctc_lists", lambda y, k: F.ctc_loss(
    _three(y).log_softmax(-1), torch.ones(6, dtype=torch.int64, device=y.device),
    k("lengths").tolist(), (3, 2, 1), reduction="sum"))
_add("pack", lambda y, k: rnn.pack_padded_sequence(_three(y), k("lengths").cpu()).data)
_add("pack_unsorted", lambda y, k: rnn.pack_padded_sequence(
    _three(y).transpose(0, 1), k("lengths").cpu().flip(0), True, enforce_sorted=False).data)


@case
def packed_lstm(y, k):
    torch.manual_seed(1)
    lstm = torch.nn.LSTM(6, 6, device=y.device)
    packed = rnn.pack_padded_sequence(_three(y), k("lengths").cpu().flip(0), enforce_sorted=False)
    with torch.backends.cudnn.flags(enabled=False):
        output, lengths = rnn.pad_packed_sequence(lstm(packed)[0], total_length=8)
    return output[:int(lengths[1])]


@case
def packed_gru(y, k):
    torch.manual_seed(1)
    gru = torch.nn.GRU(6, 6, bidirectional=True, device=y.device)
    packed = rnn.pack_padded_sequence(_three(y), k("lengths").cpu())
    with torch.backends.cudnn.flags(enabled=False):
        return rnn.pad_packed_sequence(gru(packed)[0], batch_first=True)[0]


# Their shapes and their results need no value, whatever is known.
FREE = {
    "combinations": lambda y, k: y.sum() * torch.combinations(k("lengths")).sum(),
    "nonzero_static": lambda y, k: y[torch.nonzero_static(k("mask"), size=4).squeeze(1)],
    "repeats_sized": lambda y, k: y[:3].repeat_interleave(k("repeats"), 0, output_size=6),
    "one_hot_sized": lambda y, k: y @ F.one_hot(k("places"), 6).float(),
    "histc": lambda y, k: y * torch.histc(k("floats"), bins=6),
    "masked_scatter": lambda y, k: y.masked_scatter(k("mask"), y.detach().exp()),
    "masked_fill": lambda y, k: y.masked_fill(k("mask"), 0),
    "embedding_bag": lambda y, k: F.embedding_bag(k("places"), y, k("ends"), mode="mean"),
    "segment_reduce": lambda y, k: torch.segment_reduce(y, "max", offsets=k("ends")),
    "gru": lambda y, k: torch.gru(
        y[:, None], torch.zeros(1, 1, 2, device=y.device), [y[:, :6], y[:, :2]], False, 1, 0.0,
        True, False, False)[0],
    "lstsq": lambda y, k: torch.linalg.lstsq(y + torch.eye(6, device=y.device), y).solution,
}
