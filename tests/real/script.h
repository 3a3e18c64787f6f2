// A scripted autograd over LibTorch's tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "sim/verify/scripted.h"

namespace ferry::real {

using Script = Scripted<at::Tensor>;
using ScriptAutograd = ScriptedAutograd<at::Tensor>;
static_assert(Autograd<ScriptAutograd>);

}  // namespace ferry::real
