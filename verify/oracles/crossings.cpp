#include "verify/oracles/crossings.h"

namespace ferry::verify {

void CrossingCounts::move(std::uint32_t from, std::uint32_t to, std::int64_t times,
                          std::int64_t tensors) {
  arrive(from, to, times, tensors);
  take(from, to, times, tensors);
}
void CrossingCounts::arrive(std::uint32_t from, std::uint32_t to, std::int64_t times,
                            std::int64_t tensors) {
  if (from == to) return;
  add(from, Step::kSent, times);
  add(to, Step::kReceiveAfterSent, times);
  add(to, Step::kSendInUse, tensors);
  add(to, Step::kReceive, tensors);
}
void CrossingCounts::take(std::uint32_t from, std::uint32_t to, std::int64_t times,
                          std::int64_t tensors) {
  if (from == to) return;
  add(to, Step::kReceived, times);
  add(to, Step::kTakeReceived, times);
  add(to, Step::kReceivedInUse, tensors);
}

std::string CrossingCounts::difference(const CrossingCounts& expected) const {
  if (of_ == expected.of_) return "";
  for (std::size_t device = 0; device < of_.size(); ++device) {
    for (std::size_t step = 0; step < of_[device].size(); ++step) {
      const std::int64_t is = of_[device][step], must = expected.of_[device][step];
      if (is == must) continue;
      return "`" + std::string(name(static_cast<Step>(kFirst + step))) + "` " + std::to_string(is) +
             " times on device " + std::to_string(device) + ", not " + std::to_string(must);
    }
  }
  return "";
}

}  // namespace ferry::verify
