"""Every overload that has a CUDA kernel and no CPU kernel is computed, or refused by its name and
listed on the page.

    overloads.py PAGE     docs/reference/virtual-gpu.md; run by `ferry run`
"""

import pathlib
import re
import sys
import unittest

import torch

PAGE = pathlib.Path(sys.argv[1])
HEADING = "## Overloads that fail"
COMPOSED = "c10d::"             # of calls to the process group
KEPT = {"aten::record_stream", "aten::_fused_sdp_choice"}  # compute nothing
REFUSED = "the virtual GPU does not compute "


TEXT = PAGE.read_text().split(HEADING)[1]
LISTED = re.findall(r"[\w.:]+", TEXT.split("```")[1])
VERSION = re.search(r"With PyTorch (\S+):", TEXT)[1]
of_the_page = unittest.skipUnless(torch.__version__.startswith(VERSION + "."),
                                  f"the page's list is PyTorch {VERSION}'s")


def has_kernel(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def operator(name):
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")


def draws_unasked(op):
    """The CPU's kernel would draw from its own generator."""
    given = any("Generator" in str(argument.type) for argument in op._schema.arguments)
    return torch.Tag.nondeterministic_seeded in op.tags and not given


def of_cuda_alone():
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if not has_kernel(name, "CUDA") or name.startswith(COMPOSED) or name in KEPT:
            continue
        if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "CPU"):
            yield name
        elif draws_unasked(operator(name)):
            yield name


def stand_in(argument):
    kind = str(argument.type)
    if kind == "Tensor":
        return torch.zeros(2, 2, device="cuda")
    if argument.name == "device":
        return torch.device("cuda")
    if argument.has_default_value() or kind.startswith("Optional"):
        return argument.default_value
    if kind.startswith("List"):
        one = torch.zeros(2, 2, device="cuda") if "Tensor" in kind else "bool" in kind or 1
        return [one] * (argument.N or 1)
    return {"int": 1, "float": 0.5, "bool": False, "str": "", "number": 1}.get(kind)


def error_of(name):
    op = operator(name)
    positional, named = [], {}
    for argument in op._schema.arguments:
        if argument.kwarg_only:
            named[argument.name] = stand_in(argument)
        else:
            positional.append(stand_in(argument))
    try:
        op(*positional, **named)
    except Exception as error:
        return error
    return None


def said_of(name):
    """By the dispatcher, of the kernel that is called for a CUDA tensor."""
    return re.search(r"^CUDA(?: \(\w+\))?: (.*)", torch._C._dispatch_dump(name), re.M)[1]


class Overloads(unittest.TestCase):
    def test_none_runs_cudas_own_kernel(self):
        names = list(of_cuda_alone())
        self.assertGreater(len(names), 100)
        for name in names:
            self.assertRegex(said_of(name), "^(computed|refused) by Ferry", name)

    @of_the_page
    def test_what_is_refused_is_what_the_page_lists(self):
        refused = [name for name in sorted(torch._C._dispatch_get_all_op_names())
                   if has_kernel(name, "CUDA") and said_of(name).startswith("refused by Ferry")]
        self.assertEqual(refused, sorted(LISTED))

    @of_the_page
    def test_it_is_refused_by_its_name_and_not_by_an_error_that_pytorch_itself_swallows(self):
        for name in LISTED:
            if "__torch__" in str(operator(name)._schema):
                continue  # takes an object of a class that needs several GPUs
            if "inductor" in name:
                continue  # for compiled code, where its generator decides which kernel is called
            error = error_of(name)
            self.assertIs(type(error), RuntimeError, (name, error))
            self.assertTrue(str(error).startswith(f"{REFUSED}{name}\n") or
                            str(error) == REFUSED + name, error)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
