"""What PyTorch tests and the virtual GPU has not: each is refused, by name."""

import pytest
import torch


# PyTorch: test_cudart_register
def test_registering_memory_of_the_hosts_fails_by_its_code():
    tensor = torch.zeros(20)
    failed = torch.cuda.cudart().cudaHostRegister(tensor.data_ptr(), tensor.numel() * 4, 0)
    assert int(failed) == 801  # cudaErrorNotSupported
    assert not tensor.is_pinned()


def test_a_kernel_that_is_compiled_is_refused():
    code = "template <typename T> T plus(T x) { return x + 1; }"
    with pytest.raises(RuntimeError):
        torch.cuda.jiterator._create_jit_fn(code)(torch.ones(4, device="cuda"))


# PyTorch: test_cuda_simple
def test_memory_is_not_shared_with_other_processes():
    with pytest.raises(RuntimeError, match="cudaIpcGetMemHandle|not supported"):
        torch.ones(4, device="cuda").untyped_storage()._share_cuda_()


# PyTorch: test_event_handle_importer
def test_an_event_is_not_shared_with_other_processes():
    event = torch.cuda.Event(interprocess=True)
    with pytest.raises(RuntimeError, match="cudaIpcGetEventHandle|not supported"):
        event.ipc_handle()


def test_there_is_one_device():
    assert torch.cuda.device_count() == 1
    with pytest.raises((RuntimeError, AssertionError), match="[Ii]nvalid device"):
        torch.ones(1, device="cuda:1")


try:
    import triton
    from triton import language
except ImportError:
    triton = None
else:
    @triton.jit
    def plus_one(x, size: language.constexpr):
        at = x + language.arange(0, size)
        language.store(at, language.load(at) + 1)

    tuned = triton.autotune([triton.Config({}, num_warps=warps) for warps in (1, 2)], ["size"])


@pytest.mark.skipif(triton is None, reason="there is no Triton")
def test_a_kernel_of_tritons_runs_or_is_refused_by_its_version():
    x = torch.ones(16, device="cuda")
    version = getattr(triton, "__version__", "")
    runs = version.startswith("3.9.")
    for kernel in (plus_one, tuned(plus_one)):
        if runs:
            kernel[(1,)](x, 16)
            continue
        refusal = rf"compiled kernels \(plus_one, of Triton {version}\)"
        with pytest.raises(NotImplementedError, match=refusal):
            kernel[(1,)](x, 16)
    assert x.sum().item() == (48 if runs else 16)
