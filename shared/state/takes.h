// The order in which wards were taken, and what that says of the next ones.
//
// A training takes its wards in the same order again and again: an optimizer once a step, frozen
// weights in forward and again in backward. What follows is expected to be what followed the last
// time that the same two were taken one after the other. No call has to say where a step, a forward
// or a backward begins, so an evaluation or a generation in between costs one wrong guess.
//
// A *mark* separates steps if its user wants that: nothing is expected across it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ferry {

enum class WardId : std::uint64_t {};  // never reused

class Takes {
 public:
  static constexpr WardId kMark{~std::uint64_t{0}};

  // Returns false if another ward was expected: then all that is expected has changed.
  bool took(WardId id) {
    const bool expected = next_ < end() && at(next_) == id;
    if (expected) {
      ++next_;
    } else if (const std::optional<std::size_t> before = find(id)) {
      next_ = *before + 1;
    }
    if (!taken_.empty()) after_[{before_last_, last_}] = latest_[last_] = end() - 1;
    taken_.push_back(id);
    before_last_ = std::exchange(last_, id);
    if (taken_.size() > 8 * latest_.size() + kFew) forget_oldest();
    return expected;
  }

  // A step ends. With `forget`, what was taken since the last mark is as if it had not been.
  void mark(bool forget) {
    if (forget) {
      taken_.resize(marked_ - first_);
      next_ = expected_at_mark_;
    } else {
      took(kMark);
      marked_ = end();
      expected_at_mark_ = next_;
    }
    last_ = kMark;
  }

  // Positions of takes, past ones and expected ones: the next one is expected to be as the take at
  // next(), the one after it as that at next() + 1, and so on until end().
  std::size_t next() const { return next_; }
  std::size_t end() const { return first_ + taken_.size(); }
  WardId at(std::size_t position) const { return taken_[position - first_]; }

  // Returns the wards that are expected next, until a mark or the limit of their bytes, and at
  // least the next one. `bytes_of` is 0 for a ward that has ended.
  template <class BytesOf>
  std::set<WardId> soon(std::int64_t limit, const BytesOf& bytes_of) const {
    std::set<WardId> found;
    std::int64_t bytes = 0;
    for (std::size_t position = next_; position < end() && at(position) != kMark; ++position) {
      const WardId id = at(position);
      const std::int64_t of_it = bytes_of(id);
      if (of_it == 0 || found.contains(id)) continue;
      bytes += of_it;
      if (bytes > limit && !found.empty()) break;
      found.insert(id);
    }
    return found;
  }

 private:
  static constexpr std::size_t kFew = 1024;

  // Returns the last take of this ward that another one followed, if there was one after the same
  // ward as now.
  std::optional<std::size_t> find(WardId id) const {
    const auto pair = after_.find({last_, id});
    if (pair != after_.end() && is_at(pair->second, id)) return pair->second;
    const auto single = latest_.find(id);
    if (single != latest_.end() && is_at(single->second, id)) return single->second;
    return std::nullopt;
  }
  bool is_at(std::size_t position, WardId id) const {
    return position >= first_ && position < end() && at(position) == id;
  }

  void forget_oldest() {
    const std::size_t half = taken_.size() / 2;
    taken_.erase(taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(half));
    first_ += half;
    const auto is_gone = [this](const auto& each) { return each.second < first_; };
    std::erase_if(after_, is_gone);
    std::erase_if(latest_, is_gone);
    for (std::size_t* position : {&next_, &marked_, &expected_at_mark_}) {
      *position = std::max(*position, first_);
    }
  }

  std::vector<WardId> taken_;  // without the `first_` oldest ones
  std::size_t first_ = 0;
  std::size_t next_ = 0;
  WardId last_ = kMark;
  WardId before_last_ = kMark;
  // Where a ward was taken last, after another one or at all, and another followed.
  std::map<std::pair<WardId, WardId>, std::size_t> after_;
  std::map<WardId, std::size_t> latest_;
  std::size_t marked_ = 0;
  std::size_t expected_at_mark_ = 0;
};

}  // namespace ferry
