#include "real/autograd/ambient.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "real/autograd/shared_draws.h"
#include "real/tensors/accelerator.h"
#include "real/tensors/torch_error.h"
#include "shared/checkpoint/errors.h"

namespace ferry::real {
namespace {

// True if anything has run on the accelerator. It never becomes false again.
bool used(c10::DeviceType accelerator) {
  static std::atomic<bool> known{false};
  if (known.load(std::memory_order_relaxed)) return true;
  const auto& hooks = at::globalContext().getAcceleratorHooksInterface(accelerator);
  const c10::DeviceIndex count = hooks.deviceCount();
  for (c10::DeviceIndex i = 0; i < count; ++i) {
    if (!hooks.hasPrimaryContext(i)) continue;
    known.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace

Ambient::Autocast Ambient::Autocast::now() {
  Autocast autocast;
  const auto add = [&](c10::DeviceType device) {
    autocast.devices.push_back({device, at::autocast::is_autocast_enabled(device),
                                at::autocast::get_autocast_dtype(device)});
  };
  add(at::kCPU);
  const auto& with_autocast = at::autocast::_AUTOCAST_SUPPORTED_DEVICES;
  const auto accelerator = present_accelerator();
  if (accelerator && std::ranges::find(with_autocast, *accelerator) != with_autocast.end()) {
    add(*accelerator);
  }
  autocast.cache = at::autocast::is_autocast_cache_enabled();
  return autocast;
}

void Ambient::Autocast::set() const {
  for (const Of& of : devices) {
    at::autocast::set_autocast_enabled(of.device, of.enabled);
    at::autocast::set_autocast_dtype(of.device, of.dtype);
  }
  at::autocast::set_autocast_cache_enabled(cache);
}

Ambient::Generator::Generator(at::Generator of) : generator(std::move(of)) {
  const std::lock_guard lock(generator.mutex());
  state = generator.get_state();
}

void Ambient::Generator::set() {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

bool Ambient::Generator::is_apart() const {
  return generator.device().is_cpu() &&
         (has_own_cpu_generator() || generator != at::detail::getDefaultCPUGenerator());
}

bool Ambient::Generator::has_drawn() const {
  const at::Tensor now = Generator(generator).state;
  return now.nbytes() != state.nbytes() ||
         std::memcmp(now.const_data_ptr(), state.const_data_ptr(), now.nbytes()) != 0;
}

at::Generator Ambient::Generator::copy() const {
  at::Generator made = at::detail::createCPUGenerator();
  made.set_state(state);
  return made;
}

Ambient::Ambient(std::span<const at::Tensor> values, bool random) : autocast_(Autocast::now()) {
  if (!random) return;
  if (!has_own_cpu_generator()) turn_ = mark_shared_draws();
  generators_.emplace_back(cpu_generator());
  const auto accelerator = present_accelerator();
  if (!accelerator) return;
  std::vector<c10::Device> devices;
  for (const at::Tensor& value : values) {
    if (!value.defined() || value.device().type() != *accelerator) continue;
    if (std::ranges::find(devices, value.device()) == devices.end()) {
      devices.push_back(value.device());
    }
  }
  for (const c10::Device device : devices) {
    generators_.emplace_back(at::globalContext().defaultGenerator(device));
  }
  if (devices.empty() && !used(*accelerator)) unused_ = accelerator;
}

void Ambient::check() const {
  if (unused_ && used(*unused_)) throw torch_error(Error(checkpoint_text::kLateDevice));
  if (turn_ && mark_shared_draws() != *turn_ && generators_.front().has_drawn()) {
    throw torch_error(CheckpointError(checkpoint_text::kSharedDraws));
  }
}

Ambient::Scope::AutocastScope::AutocastScope(const Autocast& autocast) {
  at::autocast::increment_nesting();
  autocast.set();
}

Ambient::Scope::AutocastScope::~AutocastScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  before_.set();
}

Ambient::Scope::Fork::Fork(const std::vector<Generator>& generators) {
  const bool shared = std::ranges::any_of(generators, &Generator::is_shared);
  const bool own = shared && draws_are_shared();
  in_turn_ = shared && !own;
  if (in_turn_) mark_shared_draws();
  const auto apart = [own](const Generator& one) {
    return one.is_apart() || (own && one.is_shared());
  };
  for (const Generator& other : generators) {
    if (!apart(other)) before_.emplace_back(other.generator);
  }
  for (Generator other : generators) {
    apart(other) ? static_cast<void>(own_.emplace(other.copy())) : other.set();
  }
}

Ambient::Scope::Fork::~Fork() {
  for (Generator& generator : before_) generator.set();
  if (in_turn_) mark_shared_draws();
}

Ambient::Scope::Scope(const Ambient& ambient)
    : fork_(ambient.generators_), autocast_(ambient.autocast_) {}

}  // namespace ferry::real
