// A recording: a copy of a stream of operations, with the names and ranges that they refer to.
//
// Checkers see each operation once. A recording allows a second look: which ops a hazard is about,
// and which other orders they allow. It consumes a machine's operations, or is filled from any log
// (formats/stream_log.h). Memory grows with the ops, by about 200 bytes each.
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
  // Gives the next op this number, as in HappensBefore: hazards name ops by it. By default ops are
  // counted from 0. Numbers only grow.
  void number_next(std::uint64_t op) { next_ = op; }

  std::size_t size() const { return entries_.size(); }
  // The spans and the name of the result are valid until the next op is added.
  StreamOp operator[](std::size_t i) const;
  std::uint64_t number(std::size_t i) const { return entries_[i].number; }
  // Returns the index of the op with this number, if there is one.
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
