// A scripted autograd over LibTorch's tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "tests/support/scripted.h"

namespace ferry::real {

using Script = test::Scripted<at::Tensor>;
using ScriptAutograd = test::ScriptedAutograd<at::Tensor>;
static_assert(Autograd<ScriptAutograd>);

}  // namespace ferry::real
