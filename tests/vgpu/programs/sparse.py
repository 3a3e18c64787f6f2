"""Sparse tensors on `cuda` and on the CPU give the same, to the bit."""

import unittest
import warnings

import torch

warnings.filterwarnings("ignore", message="Sparse")


def filled(generator, rows, columns):
    values = torch.randn(rows, columns, generator=generator)
    return values * (torch.rand(rows, columns, generator=generator) > 0.5)


GENERATOR = torch.Generator().manual_seed(0)
M, N, D = filled(GENERATOR, 5, 4), filled(GENERATOR, 5, 4), torch.randn(4, 3, generator=GENERATOR)


def twice_in_one_place(m):
    places = torch.tensor([[0, 0, 1], [1, 1, 2]], device=m.device)
    return torch.sparse_coo_tensor(places, torch.tensor([1.0, 2.0, 3.0], device=m.device), (3, 3))


def zeros(like, *shape):
    return torch.zeros(*shape, device=like.device)


def csr(m):
    return m.to_sparse_csr()


# What CUDA has kernels of its own for, each of them, and some of what is composed. They are given
# two matrices of five rows and four columns, and one of four and three.
OPERATORS = {
    "to_sparse": lambda m, n, d: m.to_sparse(),
    "of its parts": lambda m, n, d: twice_in_one_place(m),
    "coalesce": lambda m, n, d: twice_in_one_place(m).coalesce(),
    "to_dense": lambda m, n, d: m.to_sparse().to_dense(),
    "add": lambda m, n, d: m.to_sparse() + n.to_sparse(),
    "add_": lambda m, n, d: m.to_sparse().add_(n.to_sparse()),
    "add.out": lambda m, n, d: torch.add(m.to_sparse(), n.to_sparse(),
                                         out=zeros(m, 5, 4).to_sparse()),
    "add to a dense one": lambda m, n, d: m + n.to_sparse(),
    "mul": lambda m, n, d: m.to_sparse() * n.to_sparse(),
    "mul by a dense one": lambda m, n, d: m.to_sparse() * n,
    "mul by a number": lambda m, n, d: (m.to_sparse() * 2).sin(),
    "mm": lambda m, n, d: torch.sparse.mm(m.to_sparse(), d),
    "mm of two": lambda m, n, d: torch.sparse.mm(m.to_sparse(), d.to_sparse()),
    "addmm": lambda m, n, d: torch.sparse.addmm(zeros(m, 5, 3) + 1, m.to_sparse(), d),
    "addmm_": lambda m, n, d: (zeros(m, 5, 3) + 1).addmm_(m.to_sparse(), d),
    "addmm.out": lambda m, n, d: torch.addmm(zeros(m, 5, 3) + 1, m.to_sparse(), d,
                                             out=zeros(m, 0)),
    "bmm": lambda m, n, d: torch.bmm(m.to_sparse().unsqueeze(0), d.unsqueeze(0)),
    "bmm.out": lambda m, n, d: torch.bmm(m.to_sparse().unsqueeze(0), d.unsqueeze(0),
                                         out=zeros(m, 1, 5, 3)),
    "hspmm": lambda m, n, d: torch.hspmm(m.to_sparse(), d),
    "sspaddmm": lambda m, n, d: torch.sspaddmm(zeros(m, 5, 3).to_sparse(), m.to_sparse(), d),
    "sum": lambda m, n, d: torch.sparse.sum(m.to_sparse(), 1),
    "sum of all": lambda m, n, d: m.to_sparse().sum(),
    "softmax": lambda m, n, d: torch.sparse.softmax(m.to_sparse(), 1),
    "log_softmax": lambda m, n, d: torch.sparse.log_softmax(m.to_sparse(), 1),
    "index_select": lambda m, n, d: m.to_sparse().index_select(
        0, torch.tensor([1, 3], device=m.device)),
    "sparse_mask": lambda m, n, d: m.sparse_mask(n.to_sparse().coalesce()),
    "sparse_mask of a sparse one": lambda m, n, d: m.to_sparse().sparse_mask(n.to_sparse()),
    "cat": lambda m, n, d: torch.cat([m.to_sparse(), n.to_sparse()]),
    "norm": lambda m, n, d: m.to_sparse().norm(),
    "to_sparse_csr": lambda m, n, d: csr(m),
    "to_sparse_csc": lambda m, n, d: m.to_sparse_csc(),
    "to_sparse_bsr": lambda m, n, d: m[:4].contiguous().to_sparse_bsr((2, 2)),
    "to_sparse_bsc": lambda m, n, d: m[:4].contiguous().to_sparse_bsc((2, 2)),
    "csr to_sparse": lambda m, n, d: csr(m).to_sparse(),
    "csr add": lambda m, n, d: csr(m) + csr(n),
    "csr addmm": lambda m, n, d: csr(m) @ d,
    "csr addmv": lambda m, n, d: csr(m) @ d[:, 0].contiguous(),
    "csr sum": lambda m, n, d: torch._sparse_csr_sum(csr(m), [1], True),
    "csr prod": lambda m, n, d: torch._sparse_csr_prod(csr(m), [1], True),
    "csr sampled_addmm": lambda m, n, d: torch.sparse.sampled_addmm(csr(zeros(m, 5, 3) + 1), m, d),
    "csr triangular_solve": lambda m, n, d: torch.triangular_solve(
        d, csr((zeros(m, 4, 4) + 1).tril() + m[:4]), upper=False)[0],
}


def train(device):
    """An embedding by SparseAdam, and gradients of what sparse operators take."""
    embedding = torch.nn.Embedding(10, 4, sparse=True)
    with torch.no_grad():
        embedding.weight.copy_(torch.linspace(-1, 1, 40).view(10, 4))
    embedding.to(device)
    optimizer = torch.optim.SparseAdam(embedding.parameters())
    for _ in range(3):
        embedding(torch.tensor([1, 2, 2, 5], device=device)).sin().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    weight = D.to(device, copy=True).requires_grad_()
    sparse = M.to(device).to_sparse().requires_grad_()
    made = torch.sparse.softmax(sparse, 1)
    logs = torch.sparse.log_softmax(sparse, 1)
    (torch.sparse.mm(made, weight).sin().sum() + torch.sparse.sum(logs, 0).to_dense().sum()
     + torch.sparse.mm(logs, weight.to_sparse()).to_dense().sum()).backward()
    return embedding.weight.detach(), weight.grad, sparse.grad


class Sparse(unittest.TestCase):
    def equal(self, made, wanted):
        made = made.cpu()
        self.assertEqual((made.layout, made.shape), (wanted.layout, wanted.shape))
        if made.layout != torch.strided:
            made, wanted = made.to_dense(), wanted.to_dense()
        self.assertTrue(torch.equal(made, wanted), f"{made} is not {wanted}")

    def test_operators(self):
        for name, operator in OPERATORS.items():
            with self.subTest(name):
                made = operator(M.cuda(), N.cuda(), D.cuda())
                self.assertTrue(made.is_cuda)
                self.equal(made, operator(M, N, D))

    def test_a_training(self):
        for made, wanted in zip(train("cuda"), train("cpu"), strict=True):
            self.equal(made, wanted)

    def test_it_is_printed(self):
        self.assertIn("device='cuda:0', size=(5, 4)", str(M.cuda().to_sparse()))


if __name__ == "__main__":
    unittest.main()
