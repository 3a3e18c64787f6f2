// The options' reader against PyTorch's own: whatever is taken here PyTorch takes, as the same
// options; and what PyTorch refuses is refused.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "formats/alloc_conf.h"
#include "formats/error.h"
#include "tests/vgpu/allocator/torch_pool.h"

namespace ferry::vgpu {
namespace {

std::size_t below(std::size_t end) {
  return *rc::gen::resize(100, rc::gen::inRange<std::size_t>(0, end));
}

std::string one_of(const std::vector<std::string>& words) { return words[below(words.size())]; }

std::string draw_number() {
  return one_of({"0",   "1",   "2",     "3",     "4",       "8",  "11",  "12",
                 "19",  "20",  "21",    "32",    "40",      "64", "0.5", "0.25",
                 "1.0", "1.5", "32768", "65536", "1048576", "-1", "x",   ""});
}

std::string draw_list() {
  std::string text = "[";
  for (std::size_t left = below(5); left > 0; --left) {
    text += (below(4) == 0 ? ">" : draw_number()) + one_of({":", ":", ":", ""}) + draw_number();
    if (left > 1 || below(8) == 0) text += one_of({",", ",", ",", ""});
  }
  return text + one_of({"]", "]", "]", ""});
}

std::string draw_option() {
  const std::string name = one_of(
      {"expandable_segments", "large_segment_size_mb", "max_split_size_mb",
       "max_non_split_rounding_mb", "roundup_power2_divisions", "garbage_collection_threshold",
       "per_process_memory_fraction", "backend", "pinned_num_register_threads", "nothing", ""});
  if (name == "large_segment_size_mb" && !kHasLargeSegments) return "";
  std::string value = draw_number();
  if (name == "expandable_segments") value = one_of({"True", "False", "true", value});
  if (name == "backend") value = one_of({"native", value});
  if (name == "roundup_power2_divisions" && below(3) > 0) value = draw_list();
  return name + one_of({":", ":", ":", ":", " : ", ""}) + value;
}

RC_GTEST_PROP(TorchPoolConfProp, OptionsAreReadAsPyTorchReadsThem, ()) {
  std::string text;
  for (std::size_t left = below(4); left > 0; --left) {
    text += draw_option();
    if (left > 1 || below(8) == 0) text += one_of({",", ",", ",", ", ", ""});
  }
  RC_LOG() << '"' << text << "\"\n";
  const TorchConf theirs = torch_conf(text);
  AllocConf ours;
  try {
    ours = parse_alloc_conf(text, "conf");
  } catch (const InputError&) {
    RC_TAG("refused");
    return;
  }
  RC_TAG("taken");
  RC_ASSERT(theirs.refused.value_or("") == "");
  RC_ASSERT(parse_alloc_conf(to_string(ours), "conf") == ours);
  ours.max_non_split_rounding_bytes = ours.non_split_rounding_bytes();
  ours.per_process_memory_fraction = 1;
  RC_ASSERT(to_string(ours) == to_string(theirs.conf));
  RC_ASSERT(ours == theirs.conf);
}

}  // namespace
}  // namespace ferry::vgpu
