#include "verify/trials/try_weights.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/state/weights.h"
#include "verify/trials/state_world.h"

namespace ferry::verify {
namespace {

struct Weight {
  WardId id{};
  std::int64_t bytes = 0;
  std::uint64_t contents = 0;
  int holds = 0;
};

// What a module saved in a forward.
struct SavedWeight {
  std::size_t module = 0;
  std::size_t weight = 0;
  std::unique_ptr<Saved<sim::Tensor>> saved;
};

class Trained : private StateWorld {
 public:
  Trained(std::uint64_t number, std::optional<Mutation> mutation);
  std::optional<Verdict> live();

 private:
  void add();
  void pass();
  void forward(std::size_t module, bool saves);
  void backward();
  void read(const sim::Tensor& tensor, const Weight& weight);
  void expect_bounded();
  void end();

  const std::int64_t ahead_;
  std::shared_ptr<Weights<Device>> weights_;
  std::vector<Weight> all_;
  std::vector<std::vector<std::size_t>> modules_;  // the weights of each; some are in several
  std::vector<SavedWeight> saved_;
};

Trained::Trained(std::uint64_t number, std::optional<Mutation> mutation)
    : StateWorld(number), ahead_(kBounds[any(kBounds.size())]) {
  weights_ =
      std::make_shared<Weights<Device>>(device(mutation), WardOptions{.ahead_bytes = ahead_});
}

std::optional<Verdict> Trained::live() {
  for (int weights = draws_.in(1, 7); weights > 0; --weights) add();
  for (int modules = draws_.in(1, 6); modules > 0; --modules) {
    std::vector<std::size_t>& module = modules_.emplace_back();
    for (int count = draws_.in(1, 4); count > 0; --count) {
      const std::size_t weight = any(all_.size());
      if (std::find(module.begin(), module.end(), weight) == module.end()) module.push_back(weight);
    }
  }
  for (int passes = draws_.in(2, 6); passes > 0 && !verdict_; --passes) pass();
  end();
  return last_verdict();
}

void Trained::add() {
  const sim::Tensor tensor = world_.make(any_size());
  Weight weight{.id = {}, .bytes = tensor->storage->bytes, .contents = world_.contents(tensor)};
  insist([&] { weight.id = weights_->add(tensor->storage); });
  all_.push_back(weight);
}

// A forward and mostly a backward. Without one, what was saved is dropped, or stays for later.
void Trained::pass() {
  const bool trains = !draws_.one_in(4);
  for (std::size_t module = 0; module < modules_.size(); ++module) {
    if (!draws_.one_in(10)) forward(module, trains);
    if (!odds_.host_computes && draws_.one_in(8)) world_.turn_to_other_stream();
  }
  if (draws_.one_in(8)) {
    saved_.clear();
  } else if (!draws_.one_in(6)) {
    backward();
  }
}

void Trained::forward(std::size_t module, bool saves) {
  if (draws_.one_in(2)) make_and_drop();
  std::vector<sim::Storage> held;
  for (const std::size_t index : modules_[module]) {
    insist([&] { held.push_back(weights_->hold(all_[index].id)); });
    ++all_[index].holds;
  }
  expect_bounded();
  for (std::size_t i = 0; i < held.size(); ++i) {
    Weight& weight = all_[modules_[module][i]];
    const sim::Tensor tensor = on(held[i]);
    read(tensor, weight);
    if (saves && !draws_.one_in(5)) {
      saved_.push_back({module, modules_[module][i], weights_->refer(weight.id, tensor)});
    }
  }
  while (!held.empty()) {
    Weight& weight = all_[modules_[module][held.size() - 1]];
    held.pop_back();
    weights_->release(weight.id);
    --weight.holds;
  }
  expect_bounded();
}

void Trained::backward() {
  while (!saved_.empty() && !verdict_) {
    SavedWeight last = std::move(saved_.back());
    saved_.pop_back();
    if (draws_.one_in(8)) forward(last.module, false);  // as a checkpoint does
    if (draws_.one_in(10)) continue;
    Weight& weight = all_[last.weight];
    sim::Tensor tensor;
    insist([&] { tensor = last.saved->unpack(); });
    ++weight.holds;
    read(tensor, weight);
    if (!odds_.host_computes && draws_.one_in(10)) world_.turn_to_other_stream();
    if (draws_.one_in(6)) {
      insist([&] { tensor = last.saved->unpack(); });
      read(tensor, weight);
    }
    tensor.reset();
    last.saved.reset();
    --weight.holds;
    expect_bounded();
  }
}

void Trained::read(const sim::Tensor& tensor, const Weight& weight) {
  if (world_.contents(tensor) != weight.contents) {
    complain(Oracle::kValue, "a weight has other contents than at its beginning");
  }
  use(tensor, false);
}

void Trained::expect_bounded() {
  const std::int64_t largest = kSizes.back();
  std::int64_t most = ahead_ > 0 ? std::max(ahead_, largest) : 0;
  for (const Weight& weight : all_) most += weight.holds > 0 ? weight.bytes : 0;
  if (!fails_ && weights_->statistics().device_bytes > most) {
    complain(Oracle::kBound, "more bytes of weights are on the device than are held or expected");
  }
}

void Trained::end() {
  others_.clear();
  if (draws_.one_in(2)) {
    for (const Weight& weight : all_) weights_->remove(weight.id);
  }
  saved_.clear();
  weights_.reset();
}

}  // namespace

std::optional<Verdict> try_weights(std::uint64_t number, std::optional<Mutation> mutation) {
  return Trained(number, mutation).live();
}

}  // namespace ferry::verify
