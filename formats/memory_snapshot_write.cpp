// Writes a memory snapshot as a pickle, with the keys that torch.cuda._memory_viz reads.
#include <cstddef>
#include <map>

#include "formats/atomic_file.h"
#include "formats/memory_snapshot.h"
#include "formats/pickle_write.h"

namespace ferry {
namespace {

class Writer {
 public:
  explicit Writer(const MemorySnapshot& snapshot) : snapshot_(snapshot) {}

  std::string write() {
    const MemorySnapshot& snapshot = snapshot_;
    out_.begin_dict();
    out_.text("segments");
    out_.begin_list();
    for (const MemorySegment& segment : snapshot.segments) write(segment);
    out_.end_list();
    out_.text("device_traces");
    out_.begin_list();
    for (const std::vector<MemoryEvent>& trace : snapshot.traces) {
      out_.begin_list();
      for (const MemoryEvent& event : trace) write(event);
      out_.end_list();
    }
    out_.end_list();
    out_.text("allocator_settings");
    write(snapshot.conf);
    out_.text("external_annotations");
    out_.begin_list();
    for (const MemoryMark& mark : snapshot.marks) write(mark);
    out_.end_list();
    out_.end_dict();
    return out_.finish();
  }

 private:
  void integer(std::string_view key, std::int64_t value) {
    out_.text(key);
    out_.integer(value);
  }
  void text(std::string_view key, std::string_view value) {
    out_.text(key);
    out_.text(value);
  }
  void boolean(std::string_view key, bool value) {
    out_.text(key);
    out_.boolean(value);
  }
  // Writes a stack once, as PyTorch does, and refers to it from then on.
  void frames(StackId stack = kNoStack) {
    out_.text("frames");
    const auto known = stacks_.find(stack);
    if (stack != kNoStack && known != stacks_.end()) return out_.repeat(known->second);
    out_.begin_list();
    if (stack != kNoStack) {
      for (const std::uint32_t number : snapshot_.stacks[stack]) frame(number);
    }
    out_.end_list();
    if (stack != kNoStack) stacks_[stack] = out_.remember();
  }
  void frame(std::uint32_t number) {
    if (const auto known = frames_.find(number); known != frames_.end()) {
      return out_.repeat(known->second);
    }
    const MemoryFrame& frame = snapshot_.frames[number];
    out_.begin_dict();
    text("name", frame.function);
    text("filename", frame.file);
    integer("line", frame.line);
    out_.end_dict();
    frames_[number] = out_.remember();
  }
  void write(const MemoryMark& mark) {
    out_.begin_dict();
    text("stage", mark.begins ? "START" : "END");
    text("name", mark.name);
    integer("device", 0);
    integer("time_us", mark.time_us);
    out_.end_dict();
  }
  void pool(bool is_private) {
    out_.text("segment_pool_id");
    out_.begin_tuple();
    out_.integer(0);
    out_.integer(is_private ? 1 : 0);
    out_.end_tuple();
  }

  void write(const MemorySegment& segment) {
    std::int64_t allocated = 0;
    std::int64_t active = 0;
    std::int64_t requested = 0;
    for (const MemoryBlock& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      active += block.bytes;
      requested += block.requested_bytes;
      if (block.state == BlockState::kAllocated) allocated += block.bytes;
    }
    out_.begin_dict();
    integer("device", segment.device);
    integer("address", static_cast<std::int64_t>(segment.address));
    integer("total_size", segment.bytes);
    integer("allocated_size", allocated);
    integer("active_size", active);
    integer("requested_size", requested);
    integer("stream", static_cast<std::int64_t>(segment.stream));
    text("segment_type", segment.small ? "small" : "large");
    pool(segment.private_pool);
    boolean("is_expandable", segment.expandable);
    frames();
    out_.text("blocks");
    out_.begin_list();
    for (const MemoryBlock& block : segment.blocks) {
      out_.begin_dict();
      integer("address", static_cast<std::int64_t>(block.address));
      integer("size", block.bytes);
      integer("requested_size", block.requested_bytes);
      text("state", name(block.state));
      frames(block.stack);
      out_.end_dict();
    }
    out_.end_list();
    out_.end_dict();
  }

  void write(const MemoryEvent& event) {
    out_.begin_dict();
    text("action", name(event.action));
    integer(event.action == MemoryAction::kOom ? "device_free" : "addr",
            static_cast<std::int64_t>(event.address));
    integer("size", event.bytes);
    integer("stream", static_cast<std::int64_t>(event.stream));
    integer("time_us", event.time_us);
    if (event.private_pool) pool(true);
    frames(event.stack);
    out_.end_dict();
  }

  void write(const AllocConf& conf) {
    out_.begin_dict();
    text("PYTORCH_CUDA_ALLOC_CONF", to_string(conf));
    integer("max_split_size", conf.max_split_bytes.value_or(-1));
    out_.text("garbage_collection_threshold");
    out_.real(conf.garbage_collection_threshold);
    boolean("expandable_segments", conf.expandable_segments);
    out_.text("roundup_power2_divisions");
    out_.begin_dict();
    for (std::size_t i = 0; i < conf.roundup_power2_divisions.size(); ++i) {
      integer(std::to_string(std::int64_t{1} << i), conf.roundup_power2_divisions[i]);
    }
    out_.end_dict();
    out_.end_dict();
  }

  const MemorySnapshot& snapshot_;
  pickle::Writer out_;
  std::map<StackId, std::uint32_t> stacks_;        // their numbers in the pickle's memo
  std::map<std::uint32_t, std::uint32_t> frames_;  // likewise
};

}  // namespace

std::string to_pickle(const MemorySnapshot& snapshot) { return Writer(snapshot).write(); }

void write_memory_snapshot(const std::filesystem::path& path, const MemorySnapshot& snapshot) {
  write_file(path, to_pickle(snapshot));
}

}  // namespace ferry
