#include "verify/programs/codec.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/error.h"

namespace ferry::verify {
namespace {

constexpr std::uint64_t kFormat = 10;
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kMostItems = 1000;  // of a list; random trials never have more

[[noreturn]] void refuse(const std::string& what) {
  throw InputError("--replay", 0, what + ": expected the line as a report printed it");
}

class Writer {
 public:
  static constexpr bool kReads = false;
  template <class T>
  void number(const T& value, std::int64_t, std::int64_t) {
    auto rest = static_cast<std::uint64_t>(value);
    do {
      const std::uint64_t more = rest >= 0x80 ? 0x80 : 0;
      bytes_.push_back(static_cast<std::uint8_t>((rest & 0x7f) | more));
      rest >>= 7;
    } while (rest != 0);
  }
  std::string text() {
    std::uint64_t check = kFormat;
    for (const std::uint8_t byte : bytes_) check = choices::mix_bits(check ^ byte);
    bytes_.push_back(static_cast<std::uint8_t>(check));
    bytes_.push_back(static_cast<std::uint8_t>(check >> 8));
    std::string text;
    std::uint32_t bits = 0;
    int count = 0;
    for (const std::uint8_t byte : bytes_) {
      bits = (bits << 8) | byte;
      for (count += 8; count >= 6; count -= 6) text.push_back(kLetters[(bits >> (count - 6)) & 63]);
    }
    if (count > 0) text.push_back(kLetters[(bits << (6 - count)) & 63]);
    return text;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view text) {
    std::uint32_t bits = 0;
    int count = 0;
    for (const char letter : text) {
      const std::size_t value = kLetters.find(letter);
      if (value == std::string_view::npos) refuse(std::string("'") + letter + "' is not allowed");
      bits = (bits << 6) | static_cast<std::uint32_t>(value);
      count += 6;
      if (count < 8) continue;
      count -= 8;
      bytes_.push_back(static_cast<std::uint8_t>(bits >> count));
    }
    std::uint64_t check = kFormat;
    if (bytes_.size() < 2) refuse("too short");
    for (std::size_t i = 0; i + 2 < bytes_.size(); ++i)
      check = choices::mix_bits(check ^ bytes_[i]);
    const std::size_t end = bytes_.size() - 2;
    if (bytes_[end] != static_cast<std::uint8_t>(check) ||
        bytes_[end + 1] != static_cast<std::uint8_t>(check >> 8)) {
      refuse("cut off, mistyped, or from another version");
    }
    bytes_.resize(end);
  }
  template <class T>
  void number(T& value, std::int64_t first, std::int64_t last) {
    std::uint64_t whole = 0;
    for (int shift = 0;; shift += 7) {
      if (at_ == bytes_.size() || shift > 63) refuse("it ends too early");
      const std::uint8_t byte = bytes_[at_++];
      whole |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
    }
    const auto number = static_cast<std::int64_t>(whole);
    if (number < first || number > last) refuse("a number is out of its range");
    value = static_cast<T>(number);
  }
  void end() const {
    if (at_ != bytes_.size()) refuse("it has letters after its end");
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

// Each function below both writes and reads: `Io` is a Writer or a Reader.

template <class Io, class List, class Item>
void list(Io& io, List& items, Item item) {
  auto count = static_cast<std::int64_t>(items.size());
  io.number(count, 0, static_cast<std::int64_t>(kMostItems));
  if constexpr (Io::kReads) items.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < items.size(); ++i) item(items[i]);
}

template <class Io, class R>
void recipe(Io& io, R& value) {
  const auto field = [&io](auto& each, int first, int end) { io.number(each, first, end - 1); };
  visit_fields(value, field);
  list(io, value.layers, [&](auto& layer) { visit_layer(layer, field); });
}

template <class Io, class O>
void options(Io& io, O& value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  io.number(value.host_memory, 0, 1);
  io.number(value.copy_streams, 0, 2);
  io.number(value.reload_pool, 0, 1);
  io.number(value.min_bytes, 0, kMost);
  io.number(value.window_tensors, 1, kMost);
  io.number(value.window_bytes, kAutomatic, kMost);
  io.number(value.prefetch_bytes, kAutomatic, kMost);
  io.number(value.prefetch_tensors, 0, kMost);
  io.number(value.hold_bytes, kAutomatic, kMost);
  list(io, value.offload, [&io](auto&& each) {
    bool chosen = each;
    io.number(chosen, 0, 1);
    if constexpr (Io::kReads) each = chosen;
  });
}

template <class Io, class P>
void plan(Io& io, P& value, int depth) {
  io.number(value.checkpoint, 0, 1);
  io.number(value.unlisted, 0, 1);
  list(io, value.choices, [&io](auto& each) { io.number(each, 0, 2); });
  if (depth == 0) return;
  list(io, value.segments, [&](auto& each) { plan(io, each, depth - 1); });
}

constexpr int kPlanDepth = 3;

template <class Io, class S>
void spans(Io& io, S& value, int levels) {
  list(io, value, [&](auto& each) {
    io.number(each.skips, 0, 1000);
    io.number(each.operators, 1, 1000);
    io.number(each.kept, 0, 63);
    if (levels > 1) spans(io, each.inner, levels - 1);
  });
}

template <class Io, class T>
void selective(Io& io, T& trial) {
  io.number(trial.selective, 0, 1);
  if (!trial.selective) return;
  for (auto& policy : trial.policies) io.number(policy, 0, kOpChoices - 1);
}

// Writes or reads the index of a layer; -1 means none.
template <class Io, class T>
void index(Io& io, T& layer) {
  std::int64_t next = layer + 1;
  io.number(next, 0, static_cast<std::int64_t>(kMostItems));
  if constexpr (Io::kReads) layer = static_cast<int>(next) - 1;
}

template <class Io, class T>
void pipeline(Io& io, T& trial) {
  io.number(trial.kind, 0, 3);
  io.number(trial.mode, 0, 2);
  io.number(trial.microbatches, 1, 1000);
  io.number(trial.each, 1, 100);
  io.number(trial.backwards_order, 0, 1);
  io.number(trial.backwards, 1, 10);
  io.number(trial.steps, 1, 10);
  io.number(trial.ahead, 0, 1);
  io.number(trial.passenger, 0, 1);
  index(io, trial.carried);
  io.number(trial.ids, 0, 1);
  io.number(trial.random, 0, 1);
  io.number(trial.preserves, 0, 1);
  io.number(trial.grad, 0, 1);
  io.number(trial.nodes_before, 0, 1000);
  io.number(trial.balanced, 0, static_cast<std::int64_t>(kMostItems));
  io.number(trial.policies, 0, 1);
  io.number(trial.isolated, 0, 1);
  io.number(trial.stray, 0, 2);
  io.number(trial.stray_layer, 0, static_cast<std::int64_t>(kMostItems));
  io.number(trial.stray_of, 0, static_cast<std::int64_t>(kMostItems));
  list(io, trial.layers, [&](auto& layer) {
    io.number(layer.size, 0, 2);
    index(io, layer.pops);
    io.number(layer.begins, 0, 1);
    io.number(layer.uses, 0, 1);
    io.number(layer.detached, 0, 1);
    io.number(layer.frozen, 0, 1);
    io.number(layer.stops, 0, 1);
    io.number(layer.writes, 0, 1);
    io.number(layer.cost, 0, kCosts - 1);
    io.number(layer.policy, 0, kStagePolicies - 1);
  });
  bool offloads = trial.offload.has_value();
  io.number(offloads, 0, 1);
  if (!offloads) return;
  if constexpr (Io::kReads) trial.offload.emplace();
  options(io, *trial.offload);
}

}  // namespace

std::string encode(const Trial& trial) {
  Writer writer;
  recipe(writer, trial.recipe);
  options(writer, trial.options);
  const bool planned = trial.plan != nullptr;
  writer.number(planned, 0, 1);
  if (planned) plan(writer, *trial.plan, kPlanDepth);
  spans(writer, trial.spans, kSpanLevels);
  selective(writer, trial);
  return writer.text();
}

Trial decode_trial(std::string_view text) {
  Reader reader(text);
  Trial trial;
  recipe(reader, trial.recipe);
  options(reader, trial.options);
  bool planned = false;
  reader.number(planned, 0, 1);
  if (planned) {
    SegmentPlan found;
    plan(reader, found, kPlanDepth);
    trial.plan = std::make_shared<const SegmentPlan>(std::move(found));
  }
  spans(reader, trial.spans, kSpanLevels);
  selective(reader, trial);
  reader.end();
  return trial;
}

std::string encode(const PipelineTrial& trial) {
  Writer writer;
  pipeline(writer, trial);
  return writer.text();
}

PipelineTrial decode_pipeline_trial(std::string_view text) {
  Reader reader(text);
  PipelineTrial trial;
  pipeline(reader, trial);
  reader.end();
  if (trial.layers.size() < 2) refuse("fewer than two layers");
  if (trial.layers.size() > kMostNetLayers) refuse("too many layers");
  for (std::size_t i = 0; i < trial.layers.size(); ++i) {
    if (trial.layers[i].pops + 1 >= static_cast<int>(i) && trial.layers[i].pops >= 0) {
      refuse("a layer reads one that does not come before it");
    }
  }
  return trial;
}

}  // namespace ferry::verify
