#include "verify/promises/refusals.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace ferry::verify {
namespace {

// Empty: it is not refused.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

Verdict differs(const std::string& must, const std::string& is) {
  return {Oracle::kError, "it must say \"" + must + "\", not \"" + is + "\""};
}

// Each option just below what it may be, and there.
std::optional<Verdict> judge_options(const Refusing& core) {
  using O = CoreOptions;
  static constexpr std::array<std::tuple<std::int64_t O::*, const char*, std::int64_t, int>, 7>
      kOptions = {{{&O::bytes_min, "bytes_min", 0, -1},
                   {&O::window_packs, "window_packs", 1, 0},
                   {&O::window_bytes, "window_bytes", 0, -2},
                   {&O::prefetch_bytes, "prefetch_bytes", 0, -2},
                   {&O::prefetch_packs, "prefetch_packs", 0, -1},
                   {&O::hold_bytes, "hold_bytes", 0, -2},
                   {&O::host_warn_percent, "host_warn_percent", 0, -1}}};
  for (const auto& [option, name, least, wrong] : kOptions) {
    CoreOptions options;
    const auto check = [&] { core.check_options(options); };
    options.*option = wrong;
    const std::string must = std::string(name) + " should be at least " + std::to_string(least) +
                             " but is " + std::to_string(wrong);
    if (const std::string is = refusal(check); is != must) return differs(must, is);
    options.*option = least;
    if (const std::string is = refusal(check); !is.empty()) return differs("", is);
    options.*option = wrong + 1;  // kAutomatic, or the least
    if (const std::string is = refusal(check); !is.empty()) return differs("", is);
  }
  return std::nullopt;
}

std::optional<Verdict> judge_schedules(const Refusing& core) {
  struct Shape {
    std::size_t devices, stages_each, microbatches;
    std::string words;
  };
  const std::string none = ": expected at least one device, one stage and one micro-batch";
  for (const ScheduleKind kind :
       {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kInterleaved}) {
    std::vector<Shape> shapes = {{0, 1, 2, none}, {2, 0, 2, none}, {2, 1, 0, none}};
    if (kind == ScheduleKind::kInterleaved) {
      shapes.push_back(
          {2, 2, 3, ": expected micro-batches that divide by the devices, found 3 for 2"});
    } else {
      shapes.push_back({2, 2, 4, ": expected one stage on each device"});
    }
    for (const Shape& shape : shapes) {
      const std::string must = std::string(name(kind)) + shape.words;
      const std::string is = refusal(
          [&] { core.make_schedule(kind, shape.devices, shape.stages_each, shape.microbatches); });
      if (is != must) return differs(must, is);
    }
  }
  return std::nullopt;
}

std::optional<Verdict> judge_balance(const Refusing& core) {
  struct Asked {
    std::vector<std::int64_t> costs;
    std::size_t parts;
    std::string words;
  };
  const std::array<Asked, 3> all = {{
      {{1, 2}, 0, "expected at least one part to balance"},
      {{1, 2}, 3, "expected an item for each part: 2 items cannot be 3 parts"},
      {{1, -1}, 2, "expected costs of at least 0"},
  }};
  for (const Asked& each : all) {
    const std::string is = refusal([&] { core.balance(each.costs, each.parts); });
    if (is != each.words) return differs(each.words, is);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> judge_refusals(const Refusing& core) {
  if (auto wrong = judge_options(core)) return wrong;
  if (auto wrong = judge_schedules(core)) return wrong;
  return judge_balance(core);
}

}  // namespace ferry::verify
