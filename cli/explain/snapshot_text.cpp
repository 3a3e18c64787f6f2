#include "cli/explain/snapshot_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "formats/error.h"
#include "formats/limits.h"
#include "scenarios/units.h"
#include "sim/peak/bar_table.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;
using peak::When;
__extension__ typedef __int128 Wide;

// Adds blocks up to owners.
class Owners {
 public:
  explicit Owners(const MemorySnapshot& snapshot) : snapshot_(snapshot) {}

  void add(const peak::LiveBlock& block, bool by_size) {
    if (by_size) return add(SnapshotOwner{.size_bytes = block.bytes}, block.bytes);
    const bool old = !block.entry && block.stack == kNoStack;
    add(SnapshotOwner{.words = words_of(block.stack), .old = old}, block.bytes);
  }

  void add(const peak::Failure& failure) {
    add(SnapshotOwner{.words = words_of(failure.stack), .failed = true}, failure.bytes);
  }

  const peak::StackWords& words_of(StackId stack) {
    const auto [known, fresh] = words_.try_emplace(stack);
    if (fresh) known->second = peak::words_of(snapshot_, stack);
    return known->second;
  }

  // Returns the owners, largest first.
  std::vector<SnapshotOwner> all() {
    std::vector<SnapshotOwner> owners;
    for (auto& [key, owner] : owners_) owners.push_back(std::move(owner));
    std::stable_sort(
        owners.begin(), owners.end(),
        [](const SnapshotOwner& a, const SnapshotOwner& b) { return a.bytes > b.bytes; });
    return owners;
  }

 private:
  using Key = std::tuple<When, std::string, std::int64_t, std::string, std::string, bool, bool,
                         std::int64_t>;

  void add(SnapshotOwner owner, std::int64_t bytes) {
    const peak::StackWords& words = owner.words;
    const Key key{words.when, words.file, words.line,   words.function,
                  words.what, owner.old,  owner.failed, owner.size_bytes};
    SnapshotOwner& found = owners_.try_emplace(key, std::move(owner)).first->second;
    found.bytes += bytes;
    found.blocks += found.failed ? 0 : 1;
  }

  const MemorySnapshot& snapshot_;
  std::map<StackId, peak::StackWords> words_;
  std::map<Key, SnapshotOwner> owners_;
};

// The time that the bytes take to the host and back, one after the other.
std::int64_t offload_ns(const Link& link, std::int64_t bytes) {
  const auto time = [bytes](std::int64_t bytes_per_us) {
    if (bytes_per_us <= 0) return std::int64_t{0};
    const Wide ns = static_cast<Wide>(bytes) * 1000 / bytes_per_us;
    return static_cast<std::int64_t>(std::min<Wide>(ns, limits::kTimeNs));
  };
  return time(link.d2h_alone) + time(link.h2d_alone);
}

std::string when_words(const SnapshotOwner& owner) {
  if (owner.size_bytes > 0) return "?";
  return owner.old ? "earlier" : std::string(name(owner.words.when));
}

std::string place_words(const SnapshotOwner& owner) {
  if (owner.size_bytes > 0) return fmt::format("blocks of {}", format_bytes(owner.size_bytes));
  if (owner.old) return "before the history began";
  const std::string place = owner.words.place();
  const std::string& what = owner.words.what;
  if (place.empty() && what.empty()) return "no Python frame, as on the threads of backward";
  if (place.empty()) return what;
  return what.empty() ? place : place + " (" + what + ")";
}

std::string where_words(const SnapshotOwner& owner) {
  if (!owner.failed) return place_words(owner);
  const bool known = owner.words.when != When::kNoFrames;
  return "the request that failed" + (known ? ": " + place_words(owner) : "");
}

std::string head(const ExplainedSnapshot& explained) {
  const peak::Moment& moment = explained.moment;
  std::string text = fmt::format("{}: cuda:{}, ", explained.file, moment.device);
  if (moment.entries == 0) {
    text += "when the snapshot was taken";
  } else if (moment.entry) {
    text += fmt::format("at its peak, entry {} of {}", *moment.entry + 1, moment.entries);
  } else {
    text += fmt::format("at its peak, before the first of {} entries", moment.entries);
  }
  text += fmt::format(": {} allocated in {} blocks, {} reserved\n",
                      format_bytes(moment.allocated_bytes), moment.blocks.size(),
                      format_bytes(moment.reserved_bytes));
  if (moment.failure) {
    text += fmt::format(
        "Out of memory: {} more were requested, and {} were free on the device. With them the "
        "peak is {}.\n",
        format_bytes(moment.failure->bytes), format_bytes(moment.failure->device_free_bytes),
        format_bytes(moment.peak_bytes()));
  }
  if (const auto& steps = explained.steps) {
    text += fmt::format(
        "The history has {} steps of optimizers; {} ended before the peak. {} in {} blocks are "
        "older than the last of these.\n",
        steps->all, steps->before, format_bytes(steps->old_bytes), steps->old_blocks);
  }
  for (const peak::Moment& other : explained.others) {
    text += fmt::format("cuda:{}: {} allocated (--device {} explains it)\n", other.device,
                        format_bytes(other.peak_bytes()), other.device);
  }
  return text;
}

std::string by_time(const ExplainedSnapshot& explained) {
  peak::BarTable table{
      .titles = {}, .text_title = "requested in", .whole_bytes = explained.moment.peak_bytes()};
  std::map<std::string, peak::BarLine> lines;
  for (const SnapshotOwner& owner : explained.owners) {
    peak::BarLine& line = lines[when_words(owner)];
    line.bytes += owner.bytes;
    line.parts += owner.blocks;
  }
  std::vector<peak::BarLine> all;
  for (auto& [when, line] : lines) {
    line.text = when;
    all.push_back(std::move(line));
  }
  return to_text(table, std::move(all));
}

std::string by_owner(const ExplainedSnapshot& explained) {
  peak::BarTable table{.titles = {"offload", "when"},
                       .text_title = "requested by",
                       .whole_bytes = explained.moment.peak_bytes()};
  std::vector<peak::BarLine> lines;
  for (const SnapshotOwner& owner : explained.owners) {
    const std::string time = format_time(offload_ns(explained.card.link, owner.bytes));
    lines.push_back({owner.bytes, owner.blocks, {time, when_words(owner)}, where_words(owner)});
  }
  return to_text(table, std::move(lines));
}

std::string unused_words(const peak::Moment& moment) {
  const peak::Unused& unused = moment.unused;
  std::string text = fmt::format("Reserved and not allocated: {}\n",
                                 format_bytes(moment.reserved_bytes - moment.allocated_bytes));
  text += fmt::format(
      "  {:>9}  fragments: {} holes between blocks, the largest {}, and what rounding adds\n",
      format_bytes(unused.holes_bytes), unused.holes, format_bytes(unused.largest_hole_bytes));
  text += fmt::format(
      "  {:>9}  cached: {} segments without a block; torch.cuda.empty_cache() gives them back\n",
      format_bytes(unused.cached_bytes), unused.cached_segments);
  text += fmt::format("  {:>9}  freed, but another stream may still use them (record_stream)\n",
                      format_bytes(unused.pending_bytes));
  return text;
}

std::string costs(const ExplainedSnapshot& explained) {
  const Link& link = explained.card.link;
  return fmt::format(
      "offload: the time to move the bytes to the host and back, over the link of {} ({} out, {} "
      "back).\n"
      "It gives back these bytes at most: blocks in use at the peak have to stay. Ferry moves what "
      "forward saves for backward.\n"
      "recompute: not known from a snapshot, which has no times of operators; `ferry plan` finds "
      "both for a model or a script.\n",
      explained.card.name, format_bytes_per_us(link.d2h_alone),
      format_bytes_per_us(link.h2d_alone));
}

}  // namespace

ExplainedSnapshot explained(const std::string& file, const MemorySnapshot& snapshot,
                            const Hardware& card, std::optional<std::uint32_t> device) {
  ExplainedSnapshot result{.file = file, .card = card};
  result.others = peak::moments_of(snapshot);
  const auto by_bytes = [](const peak::Moment& a, const peak::Moment& b) {
    return a.peak_bytes() < b.peak_bytes();
  };
  auto chosen = std::max_element(result.others.begin(), result.others.end(), by_bytes);
  if (chosen == result.others.end()) {
    throw InputError(file, 0,
                     "expected memory of a CUDA device, found none: take the snapshot in the "
                     "process that trains, after its first step");
  }
  if (device) {
    chosen = std::find_if(result.others.begin(), result.others.end(),
                          [&](const peak::Moment& each) { return each.device == *device; });
  }
  if (chosen == result.others.end()) {
    throw InputError(
        "--device", 0,
        fmt::format("expected a device with memory in the snapshot, found {}", *device));
  }
  result.moment = std::move(*chosen);
  result.others.erase(chosen);
  result.steps = peak::steps_of(snapshot, result.moment);
  Owners words(snapshot);
  const auto is_understood = [&](const peak::LiveBlock& block) {
    return words.words_of(block.stack).when != When::kNoFrames;
  };
  const auto& blocks = result.moment.blocks;
  result.any_stack = std::any_of(blocks.begin(), blocks.end(), is_understood);
  for (const peak::LiveBlock& block : blocks) {
    if (!block.pending) words.add(block, !result.any_stack);
  }
  if (result.moment.failure) words.add(*result.moment.failure);
  result.owners = words.all();
  return result;
}

std::string to_text(const ExplainedSnapshot& explained) {
  std::string text = head(explained);
  if (explained.moment.peak_bytes() > 0) {
    if (explained.any_stack) text += "\n" + by_time(explained);
    text += "\n" + by_owner(explained);
  }
  return text + "\n" + unused_words(explained.moment) + "\n" + costs(explained);
}

Json to_json(const ExplainedSnapshot& explained) {
  const peak::Moment& moment = explained.moment;
  Json json = {{"schema", 1},
               {"kind", "snapshot"},
               {"device", moment.device},
               {"entries", moment.entries},
               {"entry", nullptr},
               {"peak_bytes", moment.peak_bytes()},
               {"allocated_bytes", moment.allocated_bytes},
               {"reserved_bytes", moment.reserved_bytes},
               {"failed", nullptr},
               {"steps", nullptr},
               {"card", explained.card.name},
               {"owners", Json::array()},
               {"unused", nullptr},
               {"mismatches", moment.mismatches},
               {"other_devices", Json::array()}};
  if (moment.entry) json["entry"] = *moment.entry;
  if (moment.failure) {
    json["failed"] = {{"bytes", moment.failure->bytes},
                      {"device_free_bytes", moment.failure->device_free_bytes}};
  }
  if (const auto& steps = explained.steps) {
    json["steps"] = {{"in_history", steps->all},
                     {"before_peak", steps->before},
                     {"older_blocks", steps->old_blocks},
                     {"older_bytes", steps->old_bytes}};
  }
  for (const SnapshotOwner& owner : explained.owners) {
    const bool sized = owner.size_bytes > 0;
    Json each = {{"bytes", owner.bytes}, {"blocks", owner.blocks}, {"when", nullptr},
                 {"file", nullptr},      {"line", nullptr},        {"function", nullptr},
                 {"operator", nullptr}};
    if (!sized) each["when"] = when_words(owner);
    if (sized) each["block_bytes"] = owner.size_bytes;
    if (owner.failed) each["failed"] = true;
    if (!owner.words.file.empty()) {
      each["file"] = owner.words.file;
      each["line"] = owner.words.line;
      each["function"] = owner.words.function;
    }
    if (!owner.words.what.empty()) each["operator"] = owner.words.what;
    each["offload_ns"] = offload_ns(explained.card.link, owner.bytes);
    each["recompute_ns"] = nullptr;
    json["owners"].push_back(std::move(each));
  }
  const peak::Unused& unused = moment.unused;
  json["unused"] = {{"holes_bytes", unused.holes_bytes},
                    {"holes", unused.holes},
                    {"largest_hole_bytes", unused.largest_hole_bytes},
                    {"cached_bytes", unused.cached_bytes},
                    {"cached_segments", unused.cached_segments},
                    {"pending_bytes", unused.pending_bytes}};
  for (const peak::Moment& other : explained.others) {
    json["other_devices"].push_back({{"device", other.device}, {"peak_bytes", other.peak_bytes()}});
  }
  return json;
}

}  // namespace ferry::cli
