// A profile that PyTorch's profiler exported, read for one thing: how long the kernels of each
// operator's call took.
//
//   with torch.profiler.profile(record_shapes=True) as profile: ...   # one training step or more
//   profile.export_chrome_trace("step.json")
//
// Of Chrome's JSON in Kineto's dialect it reads the complete events ("X") of category "cpu_op", an
// operator's call on a thread with the shapes and dtypes of its arguments, and of "kernel",
// "gpu_memcpy" and "gpu_memset", what ran on the GPU. Such an event names the innermost call that
// launched it by "External id"; it counts for that call and for the calls around it, as `to` is
// around `_to_copy` and that around `copy_`. All other events are skipped.
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

// A tensor that a call was handed. The members of a list of tensors stand one by one, and of which
// dtype they are a profile does not say.
struct ProfiledInput {
  std::optional<DType> dtype;
  std::vector<std::int64_t> shape;
  auto operator<=>(const ProfiledInput&) const = default;
};

struct ProfiledCall {
  std::string name;  // as programs have it: "aten.mm"
  std::vector<ProfiledInput> inputs;
  std::int64_t kernels_ns = 0;  // their sum, at least 1
};

// Whether it may be one: JSON that is no file of Ferry's. Throws InputError if it is compressed.
bool is_profile(std::string_view text, const std::string& file);

// The calls that launched something, in the order of their beginnings. Throws InputError on what is
// no such profile, on one without shapes and on one without kernels; `file` names it in messages.
std::vector<ProfiledCall> parse_profile(std::string_view text, const std::string& file);

}  // namespace ferry
