"""An extension's operators whose CUDA kernels cannot be launched are computed by their CPU kernels.

    extension.py LIBRARY     tests/vgpu/extension; run by `ferry run`, whose verdict is to be clean
"""

import sys
import unittest

import torch

LIBRARY = sys.argv[1]
KERNEL = r"void \(anonymous namespace\)::scale<float>\(float\*, int\)"


class Extension(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.x = torch.tensor([-1.0, 2.0, 3.0], device="cuda")  # before there are the operators
        torch.ops.load_library(LIBRARY)
        cls.ops = torch.ops.ferry_extension

    def gives(self, made, values):
        self.assertTrue(made.is_cuda)
        self.assertEqual(made.tolist(), values)

    def test_the_cpu_kernel_computes_whether_or_not_the_launch_is_checked(self):
        for _ in range(2):  # the second is not tried
            self.gives(self.ops.twice(self.x), [-2.0, 4.0, 6.0])
            self.gives(self.ops.unchecked(self.x), [-3.0, 6.0, 9.0])
        written = self.x.clone()
        self.assertIs(self.ops.add_(written, 4), written)
        self.gives(self.ops.add_(written, 4), [7.0, 10.0, 11.0])

    def test_shapes_may_depend_on_values_and_work_before_is_done(self):
        later = self.x * -1
        self.gives(self.ops.positive(later), [1.0])
        self.gives(self.ops.positive(self.x), [2.0, 3.0])

    def test_a_cuda_kernel_that_launches_nothing_of_its_own_stays(self):
        self.gives(self.ops.composed(self.x), [-5.0, 10.0, 15.0])
        with self.assertRaisesRegex(RuntimeError, "^not 1"):
            self.ops.failing(self.x)

    def test_without_a_cpu_kernel_it_fails_by_its_name_and_the_kernels(self):
        for name in ("alone", "alone_unchecked"):
            with self.assertRaisesRegex(
                    RuntimeError, f"^ferry_extension::{name}: the virtual GPU runs no compiled "
                                  rf"kernel \({KERNEL}\), and the operator has no CPU kernel"):
                getattr(self.ops, name)(self.x)

    def test_scripts_call_them_as_well(self):
        twice = torch.jit.script(scripted)
        self.gives(twice(self.x), [-2.0, 4.0, 6.0])


def scripted(x):
    return torch.ops.ferry_extension.twice(x)


class OfPython(unittest.TestCase):
    def test_an_operator_in_python_whose_cuda_kernel_is_tritons(self):
        import triton
        import triton.language as tl

        @triton.jit
        def negate(pointer):  # the virtual GPU runs no assembly
            tl.store(pointer, tl.inline_asm_elementwise("neg.f32 $0, $1;", "=f,f",
                                                        [tl.load(pointer)], tl.float32, True, 1))

        @torch.library.custom_op("ferry_python::negated", mutates_args=(), device_types="cpu")
        def negated(x: torch.Tensor) -> torch.Tensor:
            return -x

        @negated.register_kernel("cuda")
        def _(x):
            made = torch.empty_like(x)
            negate[(1,)](made)
            return made

        for _ in range(2):
            self.assertEqual(negated(torch.ones(2, device="cuda")).tolist(), [-1.0, -1.0])

    def test_an_error_of_the_kernels_own_stays(self):
        library = torch.library.Library("ferry_raising", "DEF")
        library.define("f(Tensor x) -> Tensor")

        def raises(x):
            raise KeyError("mine")
        library.impl("f", raises, "CUDA")
        library.impl("f", lambda x: x, "CPU")
        with self.assertRaises(KeyError):
            torch.ops.ferry_raising.f(torch.ones(1, device="cuda"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
