#include "plan/span_groups.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <variant>

namespace ferry::plan {
namespace {

// Bound on the operators of a group. Larger: more in-place writes can be recomputed, in longer
// groups.
constexpr std::size_t kMost = 16;

// `writer` writes in place to a storage that `maker` made (operators).
struct Write {
  std::size_t maker;
  std::size_t writer;
};

class Grouping {
 public:
  Grouping(const Program& program, const std::vector<OperatorRange>& ranges)
      : statements_(program.codes[*spanned_code(program)].statements),
        ranges_(ranges),
        globals_(program.globals),
        reads_outside_(ranges.size()) {
    for (auto* const each : {&found_.writes_outside, &found_.lost, &found_.reads_written}) {
      each->assign(ranges.size(), false);
    }
  }

  SpanGroups groups() {
    find_writes();
    // Grow each group while an operator after its end writes to one of its storages.
    std::vector<std::size_t> last_of(ranges_.size());
    for (std::size_t i = 0; i < last_of.size(); ++i) last_of[i] = i;
    for (const Write& write : writes_) {
      last_of[write.maker] = std::max(last_of[write.maker], write.writer);
    }
    for (std::size_t first = 0; first < ranges_.size();) {
      std::size_t last = last_of[first];
      for (std::size_t i = first; i <= last && last - first < kMost; ++i) {
        last = std::max(last, last_of[i]);
      }
      const bool joins = std::all_of(ranges_.begin() + static_cast<std::ptrdiff_t>(first),
                                     ranges_.begin() + static_cast<std::ptrdiff_t>(last),
                                     [](const OperatorRange& each) { return each.joins_next; });
      if (last - first < kMost && joins) {
        found_.group.insert(found_.group.end(), last - first + 1, next_++);
        first = last + 1;
      } else {  // a group of one
        found_.group.push_back(next_++);
        ++first;
      }
    }
    for (const Write& write : writes_) {
      if (found_.group[write.maker] == found_.group[write.writer]) continue;
      found_.lost[write.maker] = true;
      found_.writes_outside[write.writer] = true;
    }
    return std::move(found_);
  }

 private:
  void find_writes() {
    std::size_t place = 0;
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      const Action& action = statements_[i].action;
      if (const auto* view = std::get_if<View>(&action)) see(*view);
      if (place == ranges_.size() || ranges_[place].op != i) continue;
      see(std::get<Op>(action), place++);
    }
    for (std::size_t op = 0; op < ranges_.size(); ++op) {
      for (const Slot slot : reads_outside_[op]) {
        if (written_outside_.contains(slot)) found_.reads_written[op] = true;
      }
    }
  }
  void see(const View& view) {
    const auto maker = makers_.find(view.of);
    if (maker != makers_.end()) {
      makers_[view.out] = maker->second;
    } else {
      makers_.erase(view.out);
      outside_[view.out] = base(view.of);
    }
  }
  void see(const Op& op, std::size_t place) {
    for (const Slot slot : op.in) {
      if (!makers_.contains(slot)) reads_outside_[place].push_back(base(slot));
    }
    for (const std::uint32_t position : op.writes) {
      const Slot slot = op.in[position];
      const auto maker = makers_.find(slot);
      if (maker != makers_.end()) {
        writes_.push_back({maker->second, place});
      } else {
        found_.writes_outside[place] = true;
        written_outside_.insert(base(slot));
      }
    }
    for (const Slot slot : op.out) makers_[slot] = place;
  }
  // Returns the slot of the storage that a slot views, if no operator made it.
  Slot base(Slot slot) const {
    const auto view = outside_.find(slot);
    const Slot of = view == outside_.end() ? slot : view->second;
    return of < globals_.size() && globals_[of].alias != kNoSlot ? globals_[of].alias : of;
  }

  const std::vector<Statement>& statements_;
  const std::vector<OperatorRange>& ranges_;
  SpanGroups found_;
  const std::vector<Global>& globals_;
  std::vector<Write> writes_;
  std::map<Slot, std::size_t> makers_;            // the operator that made a slot's storage
  std::map<Slot, Slot> outside_;                  // views of storages that no operator made
  std::vector<std::vector<Slot>> reads_outside_;  // by operator
  std::set<Slot> written_outside_;
  std::uint32_t next_ = 0;
};

}  // namespace

SpanGroups span_groups(const Program& program, const std::vector<OperatorRange>& ranges) {
  return Grouping(program, ranges).groups();
}

}  // namespace ferry::plan
