// Checks in-place writes of stages, for one micro-batch. A stage may write a tensor that it is
// given only if nobody else has its bytes, and if the stage will not be recomputed from it.
//
// Without stages, a tensor that is both returned and stashed is one tensor: a write to it is seen
// in both places, and autograd knows. Between stages the two go separate ways, each in a graph of
// its own and perhaps as a copy. Then some readers see the write and others do not, and its
// gradient is lost. So it is an error.
//
//     stage 1 stashes y, and returns it ──▶ stage 2 writes y ──▶ stage 3 pops: what?
//
// Bytes on one device are identified by their version counter, which views and detached tensors
// share. What crosses between stages also has a number, since a copy on another device has another
// counter. (Inference tensors have no counter, so writes to them are not noticed.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/pipeline/pipeline_rules.h"
#include "shared/pipeline/stage.h"
#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/error.h"
#include "shared/seam/invariant.h"
#include "shared/skip/layout.h"

namespace ferry {

// Returns none if the value has no tensor.
template <PipelineAutograd A>
std::optional<typename A::Tensor> tensor_of(const A& autograd, const typename A::Value& value) {
  return autograd.exists(value) ? std::optional(autograd.tensor(value)) : std::nullopt;
}

template <PipelineDevice D>
class SharedBytes {
 public:
  using Tensor = std::optional<typename D::Tensor>;

  SharedBytes(std::shared_ptr<const SkipLayout> layout, const PipelineRules& rules)
      : layout_(std::move(layout)), rules_(rules) {}

  // Call it before the first run of a stage, with what the stage is given on its device.
  void enter(D device, const Crossings<Tensor>& given) {
    invariant(lanes_.empty(), "a micro-batch is in one stage at a time");
    invariant(values_.empty() || values_.size() == given.values.size(),
              "a stage is given the values that the one before it made");
    values_.resize(given.values.size(), kNew);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      add(device, given.values[i], std::nullopt, values_[i]);
    }
    for (const auto& [route, tensor] : given.skips) {
      invariant(skips_.contains(route), "a skip tensor that arrives has left its stage");
      add(device, tensor, route, skips_.at(route));
      skips_.erase(route);
    }
  }
  // Call it after that run, with what the stage made. Throws ValueError if it wrote what it must
  // not.
  void leave(D device, const Crossings<Tensor>& made, std::size_t stage, bool runs_again) {
    for (const Lane& lane : lanes_) {
      if (!lane.version || device.read(*lane.version) == lane.version_before) continue;
      if (runs_again && rules_.refuses_rewriting()) {
        refuse(stage, given(lane) + ", and could not run again on it");
      }
      const auto other = others(lane);
      if (other && rules_.refuses_sharing()) {
        refuse(stage, given(lane) + ", whose bytes are those of " + *other +
                          " as well: expected a clone of the one or the other");
      }
    }
    values_.clear();
    for (const Tensor& tensor : made.values) {
      values_.push_back(add(device, tensor, std::nullopt, kNew));
    }
    for (const auto& [route, tensor] : made.skips) {
      skips_.insert_or_assign(route, add(device, tensor, route, kNew));
    }
    lanes_.clear();
  }

 private:
  // A number that stands for the bytes.
  using Bytes = std::uint64_t;
  static constexpr Bytes kNew = 0;

  struct Lane {
    Bytes bytes;
    std::optional<std::size_t> route;            // none: a value
    std::optional<typename D::Version> version;  // none: there is no tensor
    std::uint64_t version_before;                // if there is a version
  };

  // New bytes may turn out to be those of a tensor that is known already.
  Bytes add(D device, const Tensor& tensor, std::optional<std::size_t> route, Bytes bytes) {
    Lane lane{bytes, route, std::nullopt, 0};
    if (tensor) {
      lane.version = device.version(*tensor);
      lane.version_before = device.read(*lane.version);
    }
    if (bytes == kNew) lane.bytes = bytes_of(device, lane.version);
    lanes_.push_back(std::move(lane));
    return lanes_.back().bytes;
  }
  Bytes bytes_of(D device, const std::optional<typename D::Version>& version) {
    const std::uint64_t identity = version ? device.identity(*version) : 0;
    for (const Lane& lane : lanes_) {
      if (identity != 0 && lane.version && device.identity(*lane.version) == identity) {
        return lane.bytes;
      }
    }
    return ++last_;
  }
  // Returns, in words, who else has the bytes; none if nobody has.
  std::optional<std::string> others(const Lane& lane) const {
    for (const auto& [route, bytes] : skips_) {
      if (bytes == lane.bytes) return "the skip tensor '" + name(route) + "'";
    }
    for (const Lane& other : lanes_) {
      if (&other == &lane || other.bytes != lane.bytes) continue;
      return other.route ? "the skip tensor '" + name(*other.route) + "'" : "another of its inputs";
    }
    return std::nullopt;
  }
  std::string given(const Lane& lane) const {
    return lane.route ? "what it popped as '" + name(*lane.route) + "'" : "its input";
  }
  std::string name(std::size_t route) const { return layout_->routes()[route].name.name; }
  [[noreturn]] static void refuse(std::size_t stage, const std::string& what) {
    throw make_error<typename D::Tensor>(
        ValueError("stage " + std::to_string(stage) + " writes in place " + what));
  }

  std::shared_ptr<const SkipLayout> layout_;
  PipelineRules rules_;
  Bytes last_ = kNew;
  std::vector<Bytes> values_;           // on their way to the next stage
  std::map<std::size_t, Bytes> skips_;  // skip tensors on their way, by route
  std::vector<Lane> lanes_;             // what the running stage was given, and what it made
};

}  // namespace ferry
