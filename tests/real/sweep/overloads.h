// Which overloads of the dispatcher's are to be tried.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <string>
#include <vector>

namespace ferry::sweep {

struct Overloads {
  // aten overloads with a kernel for the CPU or a composite one, tensors in and tensors out, by
  // name.
  std::map<std::string, c10::OperatorHandle> tried;
  // Those of them that write to an `out` argument: autograd refuses them where one requires a
  // gradient, so they have nothing to save.
  std::size_t with_out = 0;
};

Overloads overloads();

// Dimensions by name: a kernel that takes those has no boxed form.
bool takes_names(const c10::OperatorHandle& op);

// Why no call of such an overload can be made from samples or drawn; empty: no reason is known.
std::string why_not_called(const c10::OperatorHandle& op);

}  // namespace ferry::sweep
