#include "verify/hunted/unmoved.h"

#include <algorithm>

namespace ferry::verify {
namespace {

constexpr std::int64_t kBytesMin = 1024;  // smaller tensors may stay on the device

bool overlap(const Range& a, const Range& b) { return a.address < b.end() && b.address < a.end(); }

}  // namespace

class Unmoved::Pair final : public Hooks<sim::Tensor> {
 public:
  Pair(Unmoved& watch, std::shared_ptr<Hooks<sim::Tensor>> inner)
      : watch_(watch), inner_(std::move(inner)) {}
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    watch_.copied_ = false;
    auto saved = inner_->pack(tensor);
    watch_.packed(tensor);
    return saved;
  }

 private:
  Unmoved& watch_;
  std::shared_ptr<Hooks<sim::Tensor>> inner_;
};

class Unmoved::Watched final : public sim::Scheduler {
 public:
  Watched(Unmoved& watch, std::unique_ptr<sim::Scheduler> inner)
      : watch_(watch), inner_(std::move(inner)) {}
  std::shared_ptr<Hooks<sim::Tensor>> hooks() override {
    return std::make_shared<Pair>(watch_, inner_->hooks());
  }
  void exempt(const sim::Tensor& tensor) override {
    watch_.exempt_.push_back(tensor.get());
    inner_->exempt(tensor);
  }
  void begin_forward() override { inner_->begin_forward(); }
  void finish() override { inner_->finish(); }
  bool empty() const override { return inner_->empty(); }

 private:
  Unmoved& watch_;
  std::unique_ptr<sim::Scheduler> inner_;
};

std::unique_ptr<sim::Scheduler> Unmoved::watch(std::unique_ptr<sim::Scheduler> scheduler) {
  return std::make_unique<Watched>(*this, std::move(scheduler));
}

void Unmoved::operator()(const StreamOp& op) {
  if (op.step == Step::kOffload) copied_ = true;
  const auto forget = [this](const Range& range) {
    std::erase_if(moved_, [&](const Range& moved) { return overlap(moved, range); });
  };
  if (op.kind == StreamOpKind::kFree) forget(op.range);
  for (const Range& range : op.writes) forget(range);
}

void Unmoved::packed(const sim::Tensor& tensor) {
  const Range range = sim::range_of(tensor);
  if (copied_) {
    moved_.push_back(range);
    return;
  }
  const auto size = static_cast<std::int64_t>(range.bytes);
  const bool exempt = std::find(exempt_.begin(), exempt_.end(), tensor.get()) != exempt_.end();
  if (exempt || size < kBytesMin ||
      std::find(moved_.begin(), moved_.end(), range) != moved_.end()) {
    return;
  }
  ++count_;
  bytes_ += size;
}

std::string Unmoved::words() const {
  return std::to_string(count_) + " saved tensors (" + std::to_string(bytes_) +
         " bytes) stayed on the device, and the host has no copy of them";
}

}  // namespace ferry::verify
