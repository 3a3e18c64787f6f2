// Reads how long the kernels of each operator call took, from a profile that PyTorch's profiler
// exported.
//
//   with torch.profiler.profile(record_shapes=True) as profile: ...   # one training step or more
//   profile.export_chrome_trace("step.json")
//
// The file is Chrome's JSON in Kineto's dialect. The reader uses complete events ("X") of category
// "cpu_op" (an operator's call on a thread, with shapes and dtypes of its arguments) and of
// "kernel", "gpu_memcpy" and "gpu_memset" (work on the GPU). Such work has the "External id" of the
// innermost call that launched it. It counts for that call and for the calls around it: `to` is
// around `_to_copy`, which is around `copy_`. All other events are skipped.
//
// Source of the dialect: libkineto's output_json.cpp, torch/csrc/profiler/collection.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/program.h"

namespace ferry {

// A tensor argument of a call. The members of a list of tensors are separate inputs, for which the
// profile gives no dtype.
struct ProfiledInput {
  std::optional<DType> dtype;
  std::vector<std::int64_t> shape;
  auto operator<=>(const ProfiledInput&) const = default;
};

struct ProfiledCall {
  std::string name;  // as in programs: "aten.mm"
  std::vector<ProfiledInput> inputs;
  std::int64_t kernels_ns = 0;  // the sum for its kernels, at least 1
};

// True if the text may be a profile: it is JSON, but not a file of Ferry. Throws InputError if it
// is compressed.
bool is_profile(std::string_view text, const std::string& file);

// Returns the calls that launched GPU work, in the order in which they began. Throws InputError if
// the text is not such a profile, or has no shapes or no kernels. `file` is its name in messages.
std::vector<ProfiledCall> parse_profile(std::string_view text, const std::string& file);

}  // namespace ferry
