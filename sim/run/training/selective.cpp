#include "sim/run/training/selective.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "sim/gpu/mutex.h"
#include "sim/gpu/tensor.h"

namespace ferry::sim {
namespace {

struct Tensors {
  using Tensor = sim::Tensor;
  using Version = sim::Version;
  using Mutex = SimMutex;
  static Version version(const Tensor& tensor) { return tensor->version; }
  static std::uint64_t read(const Version& version) { return version->value; }
  static Tensor alias(const Tensor& tensor) {
    return make_tensor(tensor->storage, tensor->layout, tensor->version);
  }
};
static_assert(SelectiveDevice<Tensors>);

// The generator's states before and after an op that used random numbers.
struct Drawn {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

using Cache = SelectiveCache<Tensors, Drawn>;
using Recompute = SelectiveRecompute<Tensors, Drawn>;

CheckpointPolicy policy_of(const OpPolicies& policies, const std::string& op) {
  const auto found = policies.find(op);
  return found != policies.end() ? found->second : CheckpointPolicy::kPreferRecompute;
}

bool always_runs(const OpCall& call) { return !call.op.writes.empty(); }

void run_forward(Cache& cache, const OpPolicies& policies, OpCall& call) {
  if (always_runs(call)) return call.run();
  const CheckpointPolicy policy = policy_of(policies, call.op.name);
  const std::uint64_t before = call.ambient.random;
  try {
    call.run();
  } catch (...) {  // the function may catch it, and a recompute runs the op too
    cache.ran(call.op.name, CheckpointPolicy::kMustRecompute, {});
    throw;
  }
  Cache::Outputs outputs;
  if (keeps(policy)) {
    for (const Slot slot : call.op.out) outputs.emplace_back(call.frame.at(slot).tensor);
    outputs.emplace_back(Drawn{before, call.ambient.random});
  }
  cache.ran(call.op.name, policy, outputs);
}

// If the generator is in another state than before the op, the checkpoint must not advance it.
void run_again(Recompute& recompute, const OpPolicies& policies, OpCall& call) {
  if (always_runs(call)) return call.run();
  const std::string& op = call.op.name;
  const auto outputs = recompute.next(op, [&] { return policy_of(policies, op); });
  if (!outputs) return call.run();
  for (std::size_t i = 0; i < call.op.out.size(); ++i) {
    call.frame.at(call.op.out[i]).tensor = std::get<Tensor>((*outputs)[i]);
  }
  const Drawn& drawn = std::get<Drawn>(outputs->back());
  if (call.ambient.random == drawn.before) call.ambient.random = drawn.after;
}

CheckpointScope entered(Tape& tape, OpScope scope) {
  tape.op_scopes().push_back(std::move(scope));
  return {nullptr, [&tape](void*) { tape.op_scopes().pop_back(); }};
}

}  // namespace

std::function<CheckpointContexts()> selective(Tape& tape,
                                              std::shared_ptr<const OpPolicies> policies,
                                              const Rules& rules) {
  return [&tape, policies = std::move(policies), rules] {
    const auto cache = std::make_shared<Cache>(Tensors(), tape.autograd().hooks(),
                                               /*allow_mutation=*/false, rules);
    return CheckpointContexts{[&tape, cache, policies] {
                                return entered(tape, [cache, policies](OpCall& call) {
                                  run_forward(*cache, *policies, call);
                                });
                              },
                              [&tape, cache, policies] {
                                const auto recompute = std::make_shared<Recompute>(cache);
                                return entered(tape, [recompute, policies](OpCall& call) {
                                  run_again(*recompute, *policies, call);
                                });
                              }};
  };
}

}  // namespace ferry::sim
