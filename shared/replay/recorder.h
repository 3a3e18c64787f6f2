// Decides which operator calls of a span are recorded, and knows which tensors these calls made.
//
// A call is recorded if its world says that it can be replayed, if it writes only tensors that the
// span made, and if it runs on the thread and stream of the span. It must not run in a backward
// inside the span: if a checkpoint around the span recomputes, that backward may run other calls.
// The results of a call that is not recorded count as from outside. A made storage that such a call
// writes is *lost*: from then on it also counts as from outside. So everything that is not
// understood stays on the device, as it would without the span.
//
// Storages are identified by identity, with weak references. There is no lock here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "shared/replay/recording.h"

namespace ferry {

// A call as its world saw it, after the call ran.
template <ReplayDevice D>
struct SeenCall {
  using Tensor = typename D::Tensor;
  struct Argument {
    Tensor tensor;
    bool written = false;
    bool passes = true;  // whether hooks around the span may get it
  };

  std::vector<Argument> arguments;  // all tensor arguments, in order
  std::vector<Tensor> outputs;
  typename ReplayCall<D>::Run run;  // null if the call cannot be replayed
  bool makes_blank = false;         // the contents of its results are undefined
  bool overwrites = false;          // it overwrites the whole of each argument that it writes
};

template <ReplayDevice D>
class SpanRecorder {
 public:
  using Tensor = typename D::Tensor;
  using Call = ReplayCall<D>;
  using Seen = SeenCall<D>;

  explicit SpanRecorder(D device) : device_(std::move(device)) {}

  // Returns the window of a tensor on a made storage, or none if the tensor is from outside.
  std::optional<typename Call::Window> find(const Tensor& tensor) {
    const std::optional<std::size_t> number = made(tensor);
    if (!number || !device_.plain(tensor) || known_[*number].blank) return std::nullopt;
    return typename Call::Window{*number, device_.layout(tensor)};
  }

  // Returns true if the call was recorded. The call's `run` is then moved out of `seen`.
  bool ran(ReplayRecording<D>& recording, Seen& seen) {
    if (!seen.run || !is_contained(seen)) {
      lose(seen);
      return false;
    }
    Call call;
    for (const auto& argument : seen.arguments) {
      if (!argument.written) continue;
      const std::size_t number = *made(argument.tensor);
      if (seen.overwrites && covers(argument.tensor)) known_[number].blank = false;
      call.writes.push_back(number);
    }
    for (const auto& output : make(recording, seen)) call.makes.push_back(output);
    if (call.makes.empty() && call.writes.empty()) return false;  // it made a view or a number
    for (auto& argument : seen.arguments) {
      if (auto window = window_of(argument)) {
        call.arguments.emplace_back(std::move(*window));
      } else {
        call.arguments.emplace_back(std::make_shared<HeldArgument<D>>(
            device_, device_.detach(argument.tensor), argument.passes));
      }
    }
    call.run = std::move(seen.run);
    recording.add(std::move(call));
    return true;
  }

  // Forgets all storages: from now on every tensor is from outside.
  void end() {
    known_.clear();
    numbers_.clear();
  }

 private:
  // A made storage. The weak reference prevents the reuse of its identity.
  struct Known {
    typename D::WeakStorage storage;
    bool blank = false;
    bool lost = false;
  };

  std::optional<std::size_t> made(const Tensor& tensor) {
    const typename D::Storage storage = device_.storage(tensor);
    if (!device_.exists(storage)) return std::nullopt;
    const auto found = numbers_.find(device_.identity(storage));
    if (found == numbers_.end() || known_[found->second].lost) return std::nullopt;
    return found->second;
  }

  // Returns the window of an argument. It may be on a blank storage, but only to write it.
  std::optional<typename Call::Window> window_of(const typename Seen::Argument& argument) {
    const std::optional<std::size_t> number = made(argument.tensor);
    if (!number) return std::nullopt;
    return typename Call::Window{*number, device_.layout(argument.tensor)};
  }

  bool covers(const Tensor& tensor) {
    return device_.dense(tensor) && device_.extent(device_.layout(tensor)) ==
                                        Extent{0, device_.bytes(device_.storage(tensor))};
  }

  // True if the call writes made storages only and reads no blank one. Tensors that windows stand
  // for must be plain.
  bool is_contained(const Seen& seen) {
    for (const auto& argument : seen.arguments) {
      const std::optional<std::size_t> number = made(argument.tensor);
      if (!number && argument.written) return false;
      if (!number) continue;
      if (!device_.plain(argument.tensor)) return false;
      const bool fills = argument.written && seen.overwrites && covers(argument.tensor);
      if (known_[*number].blank && !fills) return false;
    }
    for (const Tensor& output : seen.outputs) {
      if (!device_.plain(output)) return false;
    }
    return true;
  }

  void lose(const Seen& seen) {
    for (const auto& argument : seen.arguments) {
      const std::optional<std::size_t> number = made(argument.tensor);
      if (number && (argument.written || known_[*number].blank)) known_[*number].lost = true;
    }
  }

  // Returns the storages that the call made: those of its outputs that are neither an argument's
  // nor known already.
  std::vector<typename Call::Output> make(ReplayRecording<D>& recording, const Seen& seen) {
    std::vector<typename Call::Output> makes;
    for (std::size_t i = 0; i < seen.outputs.size(); ++i) {
      const typename D::Storage storage = device_.storage(seen.outputs[i]);
      if (!device_.exists(storage) || is_argument(seen, storage)) continue;
      const std::uint64_t identity = device_.identity(storage);
      if (numbers_.contains(identity)) continue;
      const std::size_t number = recording.add_storage(device_.bytes(storage));
      known_.push_back({device_.weak(storage), seen.makes_blank, false});
      numbers_.emplace(identity, number);
      makes.push_back({number, i});
    }
    return makes;
  }
  bool is_argument(const Seen& seen, const typename D::Storage& storage) {
    for (const auto& argument : seen.arguments) {
      const typename D::Storage other = device_.storage(argument.tensor);
      if (device_.exists(other) && device_.identity(other) == device_.identity(storage)) {
        return true;
      }
    }
    return false;
  }

  D device_;
  std::vector<Known> known_;                      // by number
  std::map<std::uint64_t, std::size_t> numbers_;  // by identity
};

}  // namespace ferry
