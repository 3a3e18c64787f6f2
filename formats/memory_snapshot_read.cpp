// Reads a memory snapshot from a pickle. Each value is checked; errors name the place in the
// snapshot and what was expected.
#include <algorithm>
#include <array>
#include <cstddef>

#include "formats/error.h"
#include "formats/file_kind.h"
#include "formats/limits.h"
#include "formats/memory_snapshot.h"
#include "formats/memory_stacks.h"
#include "formats/pickle.h"
#include "formats/printable.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

using pickle::Document;
using pickle::Kind;
using pickle::Value;

constexpr std::size_t kDevicesMost = 1024;
constexpr std::array<std::string_view, 10> kActions = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom",
    "snapshot",     "user_defined"};
constexpr std::array<std::string_view, 3> kStates = {"inactive", "active_allocated",
                                                     "active_pending_free"};

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file)
      : file_(file), document_(pickle::parse(bytes, file)), stacks_(document_) {}

  MemorySnapshot read() {
    const Value& root = document_.root();
    if (root.kind != Kind::kDict || document_.find(root, "segments") == nullptr) {
      refuse("expected a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot), found " +
             document_.in_words(root) + (root.kind == Kind::kDict ? " without 'segments'" : ""));
    }
    place_ = "segments";
    for (const pickle::Id id : get(root, "segments", Kind::kList).items) {
      place_ = "segment " + std::to_string(snapshot_.segments.size());
      snapshot_.segments.push_back(segment(as(document_[id], Kind::kDict)));
    }
    place_ = "segments";
    check_segments();
    if (document_.find(root, "device_traces") != nullptr) read_traces(root);
    place_ = "allocator_settings";
    if (const Value* settings = document_.find(root, "allocator_settings")) {
      read_settings(as(*settings, Kind::kDict));
    }
    snapshot_.marks = read_marks(document_);
    stacks_.move_to(snapshot_);
    return std::move(snapshot_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(file_, 0, place_.empty() ? why : place_ + ": " + why);
  }

  const Value& as(const Value& value, Kind kind) const {
    if (value.kind == kind) return value;
    refuse("expected " + std::string(name(kind)) + ", found " + document_.in_words(value));
  }
  const Value& get(const Value& dict, std::string_view key, Kind kind) const {
    const Value* value = document_.find(dict, key);
    if (value == nullptr) refuse("expected '" + std::string(key) + "'");
    if (value->kind == kind) return *value;
    refuse(std::string(key) + ": expected " + std::string(name(kind)) + ", found " +
           document_.in_words(*value));
  }
  std::int64_t integer(const Value& dict, std::string_view key, std::int64_t most) const {
    const std::int64_t value = get(dict, key, Kind::kInteger).integer;
    if (value >= 0 && value <= most) return value;
    refuse(std::string(key) + ": expected 0 to " + std::to_string(most) + ", found " +
           std::to_string(value));
  }
  // Reads a number that no replay needs; returns 0 if it is missing or wrong.
  std::int64_t told(const Value& dict, std::string_view key) const {
    const Value* value = document_.find(dict, key);
    if (value == nullptr || value->kind != Kind::kInteger) return 0;
    return std::max<std::int64_t>(value->integer, 0);
  }
  std::int64_t bytes(const Value& dict, std::string_view key) const {
    return integer(dict, key, limits::kBytes);
  }
  std::uint64_t address(const Value& dict, std::string_view key) const {
    return static_cast<std::uint64_t>(integer(dict, key, INT64_MAX - limits::kBytes));
  }
  bool flag(const Value& dict, std::string_view key) const {
    return document_.find(dict, key) != nullptr && get(dict, key, Kind::kBool).integer != 0;
  }
  // Returns the index of a value among the words that are allowed.
  template <std::size_t N>
  std::size_t word(const Value& dict, std::string_view key,
                   const std::array<std::string_view, N>& words) const {
    const std::string_view text = get(dict, key, Kind::kText).text;
    const auto found = std::find(words.begin(), words.end(), text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
    std::string list;
    for (const std::string_view each : words)
      list += (list.empty() ? "" : ", ") + std::string(each);
    refuse(std::string(key) + ": expected one of " + list + ", found '" +
           printable(text.substr(0, limits::kNameBytes)) + "'");
  }
  // The pool (0, 0) is the allocator's own.
  bool private_pool(const Value& dict) const {
    const Value* pool = document_.find(dict, "segment_pool_id");
    if (pool == nullptr) pool = document_.find(dict, "pool_id");
    if (pool == nullptr) return false;
    for (const pickle::Id id : as(*pool, Kind::kTuple).items) {
      if (as(document_[id], Kind::kInteger).integer != 0) return true;
    }
    return false;
  }

  MemorySegment segment(const Value& dict) {
    MemorySegment segment;
    segment.device = static_cast<std::uint32_t>(integer(dict, "device", kDevicesMost - 1));
    segment.address = address(dict, "address");
    segment.bytes = bytes(dict, "total_size");
    segment.stream = static_cast<std::uint64_t>(integer(dict, "stream", INT64_MAX));
    segment.small =
        word(dict, "segment_type", std::array<std::string_view, 2>{"small", "large"}) == 0;
    segment.expandable = flag(dict, "is_expandable");
    segment.private_pool = private_pool(dict);
    std::int64_t left = segment.bytes;
    for (const pickle::Id id : get(dict, "blocks", Kind::kList).items) {
      const Value& block = as(document_[id], Kind::kDict);
      const std::int64_t size = bytes(block, "size");
      if (size == 0 || size > left) refuse("blocks: expected blocks that fill the segment");
      segment.blocks.push_back({segment.address + static_cast<std::uint64_t>(segment.bytes - left),
                                size, bytes(block, "requested_size"),
                                static_cast<BlockState>(word(block, "state", kStates)),
                                stacks_.stack_of(block)});
      left -= size;
    }
    if (left != 0) refuse("blocks: expected blocks that fill the segment");
    return segment;
  }

  void check_segments() {
    auto& segments = snapshot_.segments;
    std::stable_sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) {
      return a.device != b.device ? a.device < b.device : a.address < b.address;
    });
    for (std::size_t i = 1; i < segments.size(); ++i) {
      const MemorySegment& before = segments[i - 1];
      if (before.device == segments[i].device &&
          before.address + static_cast<std::uint64_t>(before.bytes) > segments[i].address) {
        refuse("expected no overlap, found two at " + std::to_string(segments[i].address));
      }
    }
  }

  void read_traces(const Value& root) {
    place_ = "device_traces";
    const Value& traces = get(root, "device_traces", Kind::kList);
    if (traces.items.size() > kDevicesMost) refuse("more than 1024 devices");
    for (const pickle::Id trace : traces.items) {
      auto& events = snapshot_.traces.emplace_back();
      for (const pickle::Id id : as(document_[trace], Kind::kList).items) {
        place_ = "device_traces " + std::to_string(snapshot_.traces.size() - 1) + ", entry " +
                 std::to_string(events.size());
        events.push_back(event(as(document_[id], Kind::kDict)));
      }
    }
  }

  MemoryEvent event(const Value& dict) {
    MemoryEvent event;
    event.action = static_cast<MemoryAction>(word(dict, "action", kActions));
    event.time_us = told(dict, "time_us");
    // These are marks on the time line, not actions of the allocator.
    if (event.action == MemoryAction::kSnapshot || event.action == MemoryAction::kUserDefined) {
      event.address = static_cast<std::uint64_t>(told(dict, "addr"));
      event.bytes = told(dict, "size");
      event.stream = static_cast<std::uint64_t>(told(dict, "stream"));
      return event;
    }
    event.address = address(dict, event.action == MemoryAction::kOom ? "device_free" : "addr");
    event.bytes = bytes(dict, "size");
    event.stream = static_cast<std::uint64_t>(integer(dict, "stream", INT64_MAX));
    event.private_pool = private_pool(dict);
    event.stack = stacks_.stack_of(dict);
    return event;
  }

  // The text has the options that were set last. The keys beside it have the values in force.
  void read_settings(const Value& settings) {
    AllocConf& conf = snapshot_.conf;
    if (document_.find(settings, "PYTORCH_CUDA_ALLOC_CONF") != nullptr) {
      try {
        conf = parse_alloc_conf(get(settings, "PYTORCH_CUDA_ALLOC_CONF", Kind::kText).text, "",
                                OtherOptions::kSkipped);
      } catch (const InputError& error) {
        refuse("PYTORCH_CUDA_ALLOC_CONF" + std::string(error.what()));
      }
    }
    if (document_.find(settings, "expandable_segments") != nullptr) {
      conf.expandable_segments = flag(settings, "expandable_segments");
    }
    if (document_.find(settings, "max_split_size") != nullptr) {
      const std::int64_t most = get(settings, "max_split_size", Kind::kInteger).integer;
      conf.max_split_bytes.reset();
      if (most > 0) conf.max_split_bytes = most;
    }
    if (document_.find(settings, "garbage_collection_threshold") != nullptr) {
      conf.garbage_collection_threshold =
          get(settings, "garbage_collection_threshold", Kind::kFloat).real;
    }
    if (document_.find(settings, "roundup_power2_divisions") == nullptr) return;
    const Value& divisions = get(settings, "roundup_power2_divisions", Kind::kDict);
    for (std::size_t i = 0; i < conf.roundup_power2_divisions.size(); ++i) {
      const std::int64_t value = integer(divisions, std::to_string(std::int64_t{1} << i), 1 << 30);
      if ((value & (value - 1)) != 0) refuse("roundup_power2_divisions: expected powers of two");
      conf.roundup_power2_divisions[i] = value;
    }
  }

  const std::string& file_;
  Document document_;
  StackReader stacks_;
  std::string place_;
  MemorySnapshot snapshot_;
};

}  // namespace

std::string_view name(MemoryAction action) { return kActions[static_cast<std::size_t>(action)]; }

std::string_view name(BlockState state) { return kStates[static_cast<std::size_t>(state)]; }

MemorySnapshot parse_memory_snapshot(std::string_view bytes, const std::string& file) {
  return Reader(bytes, file).read();
}

MemorySnapshot read_memory_snapshot(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  refuse_other_kinds(bytes, path.string(), {FileKind::kPickle});
  return parse_memory_snapshot(bytes, path.string());
}

}  // namespace ferry
