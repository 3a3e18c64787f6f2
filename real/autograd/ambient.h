// The state outside their inputs that ops depend on, as a recompute must see it: autocast and, if
// requested, the random generators.
//
// The autocast state is that of the CPU and of the accelerator: whether it is on, its dtype, and
// whether casts are cached. In a scope casts are cached as in an autocast region of its own, and
// the cache is cleared at the end of the outermost scope. The generators are the thread's generator
// on the CPU (cpu_generator.h) and that of each device that holds a tensor. A scope forks them:
// after it they continue as if nothing had run. Once several threads have run segments
// (shared_draws.h), a scope uses a CPU generator of its own and does not touch the shared one.
//
// These are not replayed: generators of the user, default dtypes, thread counts, and flags of
// at::globalContext().
//
// Source: torch/utils/checkpoint.py (_get_autocast_kwargs, get_device_states), torch/random.py
// (fork_rng), torch/amp/autocast_mode.py.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "real/autograd/cpu_generator.h"

namespace ferry::real {

class Ambient {
 public:
  // Captures the present state of the calling thread. With `random` it includes the generators of
  // the CPU and of the devices of `values`. Undefined values are ignored.
  Ambient(std::span<const at::Tensor> values, bool random);

  // Call it after forward, on the same thread. Throws an Error if the accelerator was used for the
  // first time since construction, because the state of its generators is then missing here. Throws
  // CheckpointError if a segment on another thread has used the CPU's generator meanwhile, or may
  // have.
  void check() const;

  class Scope;

 private:
  struct Autocast {
    struct Of {
      c10::DeviceType device;
      bool enabled;
      c10::ScalarType dtype;
    };
    std::vector<Of> devices;
    bool cache = true;

    static Autocast now();
    void set() const;
  };
  struct Generator {
    at::Generator generator;
    at::Tensor state;

    explicit Generator(at::Generator of);
    void set();
    // True for a CPU generator that belongs to a thread, or if the calling thread has one of its
    // own. The numbers must then come from a generator that nobody else uses.
    bool is_apart() const;
    bool is_shared() const { return generator.device().is_cpu() && !is_apart(); }
    bool has_drawn() const;  // since construction
    at::Generator copy() const;
  };

  Autocast autocast_;
  std::vector<Generator> generators_;
  std::optional<std::uint64_t> turn_;      // of the process's CPU generator, if it is the one used
  std::optional<c10::DeviceType> unused_;  // the accelerator, if nothing has run on it yet
};

// Replays the state while it lives. It must end on its thread.
class Ambient::Scope {
 public:
  explicit Scope(const Ambient& ambient);
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() = default;

 private:
  class AutocastScope {
   public:
    explicit AutocastScope(const Autocast& autocast);
    AutocastScope(const AutocastScope&) = delete;
    AutocastScope& operator=(const AutocastScope&) = delete;
    ~AutocastScope();

   private:
    Autocast before_ = Autocast::now();
  };
  class Fork {
   public:
    explicit Fork(const std::vector<Generator>& generators);
    Fork(const Fork&) = delete;
    Fork& operator=(const Fork&) = delete;
    ~Fork();

   private:
    std::vector<Generator> before_;
    std::optional<OwnCpuGenerator> own_;
    bool in_turn_ = false;  // uses the process's CPU generator, which other threads may use too
  };
  Fork fork_;
  AutocastScope autocast_;
};

}  // namespace ferry::real
