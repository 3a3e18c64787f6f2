// A recording: a copy of a stream of operations, with the names and ranges that they refer to.
//
// What the checkers judge in passing can then be looked at again: which ops a hazard was about, and
// what other orders they allow. A consumer of a machine's operations, or filled by hand from any
// log (formats/trace.h). Memory grows with the ops: about 200 bytes each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/name_ids.h"
#include "formats/stream_op.h"

namespace ferry::explore {

class Recording final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override;
  // The next op has this number (by default they are counted from 0), as in HappensBefore: hazards
  // name ops by it. Numbers only grow.
  void number_next(std::uint64_t op) { next_ = op; }

  std::size_t size() const { return entries_.size(); }
  // Its spans and name are valid while nothing is added.
  StreamOp operator[](std::size_t i) const;
  std::uint64_t number(std::size_t i) const { return entries_[i].number; }
  // Returns the place of the op with this number; none where there is no such op.
  std::optional<std::size_t> find(std::uint64_t number) const;

 private:
  struct Entry {
    StreamOp op;  // without its spans and name
    std::uint64_t number;
    std::uint32_t name;
    std::uint32_t reads, writes;  // how many
    std::size_t ranges;           // where they begin
  };
  std::vector<Entry> entries_;
  std::vector<Range> ranges_;
  NameIds names_;
  std::uint64_t next_ = 0;
};

}  // namespace ferry::explore
