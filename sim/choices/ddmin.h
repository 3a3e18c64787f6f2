// Delta debugging (Zeller, Hildebrandt 2002): reduces a failing list to a part that still fails,
// and from which no single item can be removed. It makes the schedules and the random programs of
// failure reports short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ferry::choices {

// `fails(list)` says if a list still fails; the given list must fail. In the worst case the number
// of calls grows with the square of the list's length.
template <class T, class Fails>
std::vector<T> ddmin(std::vector<T> list, Fails fails) {
  for (std::size_t chunk = std::max<std::size_t>(list.size() / 2, 1); !list.empty();) {
    bool smaller = false;
    for (std::size_t begin = 0; begin < list.size();) {
      const std::size_t end = std::min(begin + chunk, list.size());
      std::vector<T> without(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(begin));
      without.insert(without.end(), list.begin() + static_cast<std::ptrdiff_t>(end), list.end());
      if (fails(without)) {
        list = std::move(without);
        smaller = true;
      } else {
        begin = end;
      }
    }
    if (chunk > 1) {
      chunk = (chunk + 1) / 2;
    } else if (!smaller) {
      break;
    }
  }
  return list;
}

}  // namespace ferry::choices
