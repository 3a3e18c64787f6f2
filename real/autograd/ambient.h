// What ops depend on beside their inputs, as a recompute is to see it: autocast, and where it
// matters the random generators.
//
// Autocast is that of the CPU and of the accelerator (whether it is on, its dtype, whether casts
// are cached); in a scope casts are cached as in a region of its own, and dropped with the
// outermost. Random numbers are those of the thread's generator on the CPU (cpu_generator.h) and of
// each device that holds a tensor; a scope forks them: whatever runs inside, they go on as if it
// had not. Once several threads have run segments (shared_draws.h), a scope has a generator of its
// own on the CPU, and touches nobody's.
//
// Not replayed: generators of the user's own, default dtypes, thread counts, flags of
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
  // The calling thread's, now. `random`: the generators as well, of the CPU and of the devices
  // where `values` are. Undefined values are none.
  Ambient(std::span<const at::Tensor> values, bool random);

  // After forward, on its thread. Throws std::runtime_error where the accelerator was first used
  // since, so that its generators' state is not in here; and CheckpointError where another thread's
  // segment drew from the CPU's generator meanwhile, or may have.
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
    // On the CPU, where this is a thread's own, or the calling thread has one: its numbers are to
    // come from a generator that nobody else has.
    bool is_apart() const;
    bool is_shared() const { return generator.device().is_cpu() && !is_apart(); }
    bool has_drawn() const;  // since
    at::Generator copy() const;
  };

  Autocast autocast_;
  std::vector<Generator> generators_;
  std::optional<std::uint64_t> turn_;      // of the CPU's generator, where it is the process's
  std::optional<c10::DeviceType> unused_;  // the accelerator, where nothing ran on it yet
};

// Ends on its thread.
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
    bool in_turn_ = false;  // draws from the CPU's generator, which others may begin to
  };
  Fork fork_;
  AutocastScope autocast_;
};

}  // namespace ferry::real
