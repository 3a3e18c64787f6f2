#include "real/autograd/cpu_generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "real/autograd/below_autograd.h"
#include "real/autograd/slots.h"

namespace ferry::real {

struct GeneratorSlot : c10::DebugInfoBase {
  explicit GeneratorSlot(at::Generator of) : generator(std::move(of)) {}
  const at::Generator generator;
};

namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

Draw draw_of_new(const OperatorHandle& op) {
  const auto& schema = op.schema();
  const std::string_view name = schema.name();
  // The tag is for CUDA; on the CPU the op has no dropout.
  if (name == "aten::_scaled_dot_product_flash_attention_for_cpu") return {};
  Draw draw{op.hasTag(at::Tag::nondeterministic_seeded), std::nullopt};
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    if (schema.arguments()[i].type()->str() == "Generator?") draw = {true, i};
  }
  return draw;
}

at::Tensor state_of(at::Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}
void set_state(at::Generator& generator, const at::Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

const GeneratorSlot* generator_slot() {
  return static_cast<const GeneratorSlot*>(c10::ThreadLocalDebugInfo::get(kGeneratorSlot));
}

}  // namespace

const Draw& draw_of(const OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, Draw> known;
  const auto [found, added] = known.try_emplace(&op.schema());
  if (added) found->second = draw_of_new(op);
  return found->second;
}

LentCpuGenerator::LentCpuGenerator(at::Generator own)
    : turn_(one_at_a_time()),
      own_(std::move(own)),
      default_(at::detail::getDefaultCPUGenerator()),
      before_(state_of(default_)) {
  set_state(default_, state_of(own_));
}
LentCpuGenerator::~LentCpuGenerator() {
  set_state(own_, state_of(default_));
  set_state(default_, before_);
}

class OwnCpuGenerator::Drawing final : public OpScope {
 public:
  explicit Drawing(at::Generator generator)
      : slot_(std::make_shared<GeneratorSlot>(std::move(generator))) {}

  void run(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) override {
    const Draw& draw = draw_of(op);
    // An inner scope has a generator of its own.
    if (!draw.draws || generator_slot() != slot_.get() || !drawing_device(op, *stack).is_cpu()) {
      return run_outside(op, keys, stack);
    }
    drawn_ = true;
    if (draw.argument) {
      c10::IValue& given = torch::jit::peek(*stack, *draw.argument, op.schema().arguments().size());
      if (given.isNone()) given = slot_->generator;
      return run_outside(op, keys, stack);
    }
    const LentCpuGenerator lent(slot_->generator);
    run_outside(op, keys, stack);
  }

  const std::shared_ptr<GeneratorSlot>& info() const { return slot_; }
  bool drawn() const { return drawn_; }

 private:
  const std::shared_ptr<GeneratorSlot> slot_;
  std::atomic<bool> drawn_ = false;
};

OwnCpuGenerator::OwnCpuGenerator(at::Generator generator)
    : OwnCpuGenerator((install_below_autograd(), std::make_shared<Drawing>(std::move(generator)))) {
}

OwnCpuGenerator::OwnCpuGenerator(std::shared_ptr<Drawing> drawing)
    : drawing_(std::move(drawing)),
      ops_(OpScope::enter(drawing_)),
      slot_(kGeneratorSlot, drawing_->info()) {}

bool OwnCpuGenerator::drawn() const { return drawing_->drawn(); }

at::Generator cpu_generator() {
  const GeneratorSlot* const own = generator_slot();
  return own ? own->generator : at::detail::getDefaultCPUGenerator();
}

bool has_own_cpu_generator() { return generator_slot() != nullptr; }

c10::Device drawing_device(const OperatorHandle& op, const Stack& stack) {
  for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
    if (argument.isTensor() && argument.toTensor().defined()) return argument.toTensor().device();
    if (argument.isDevice()) return argument.toDevice();
  }
  return c10::kCPU;
}

}  // namespace ferry::real
