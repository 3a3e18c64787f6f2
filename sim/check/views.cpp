#include "sim/check/views.h"

#include <algorithm>

namespace ferry::check {

void Views::begin(Range range, View view) {
  ++count_;
  if (range.bytes == 0) return;
  longest_ = std::max(longest_, range.bytes);
  views_[{range.address, range.bytes}].push_back(std::move(view));
}

void Views::end(Range range) {
  const auto found = views_.find({range.address, range.bytes});
  if (found == views_.end()) return;  // it began before the log did
  found->second.pop_back();
  if (found->second.empty()) views_.erase(found);
}

bool Views::is_of(Range range) const { return views_.contains({range.address, range.bytes}); }

}  // namespace ferry::check
