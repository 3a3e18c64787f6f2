// Runs an operator on the virtual GPU: finds the shapes of its results, allocates the results, and
// queues a closure that computes them on the current stream. If the results depend on values, the
// host waits and computes them at once instead. If the kernel is in Python, it computes at the
// call, but the host does not wait.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "scenarios/cuda_memory.h"
#include "vgpu/operators/costs.h"
#include "vgpu/operators/host_views.h"
#include "vgpu/operators/operator.h"
#include "vgpu/operators/random.h"
#include "vgpu/operators/shapes.h"
#include "vgpu/operators/temporaries.h"
#include "vgpu/operators/values.h"
#include "vgpu/operators/workspaces.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

using c10::IValue;

// The state that a kernel has, on whichever thread it runs: no autograd, no autocast, no
// RecordFunction callbacks.
struct InKernel {
  c10::impl::ForceDispatchKeyGuard keys{
      c10::default_included_set - c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView),
      c10::default_excluded_set | c10::autograd_dispatch_keyset_with_ADInplaceOrView};
  at::DisableRecordFunctionGuard unrecorded;
};

void check_strided(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided,
                              "the virtual GPU does not compute with a tensor of layout ",
                              tensor.layout());
}

std::optional<c10::Device> device_of(const Values& arguments) {
  std::optional<c10::Device> device;
  for (const IValue& value : arguments) {
    each_tensor(value, [&](const at::Tensor& tensor) {
      check_strided(tensor);
      if (!device && tensor.is_cuda()) device = tensor.device();
    });
  }
  for (const IValue& value : arguments) {
    if (!device && value.isDevice() && value.toDevice().is_cuda()) device = value.toDevice();
  }
  if (device && !device->has_index()) device->set_index(c10::cuda::current_device());
  return device;
}

// The closure that is queued. It owns only CPU tensors, most of them views of the device's bytes.
struct Body {
  const Operator* op;
  Values arguments;
  std::vector<at::Tensor> into;  // a target for each new tensor of the results
  Drawn drawn;

  void operator()() const {
    const InKernel in_kernel;
    if (drawn.seed) drawn.seed();
    try {
      fill(call(*op, arguments, c10::DispatchKey::CPU, drawn.generator));
    } catch (const c10::Error& error) {
      throw std::runtime_error(op->name + ": " + error.what_without_backtrace());
    }
  }
  void fill(const Values& results) const {
    std::size_t filled = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (op->returned_as[i]) continue;
      each_tensor(results[i], [&](const at::Tensor& result) {
        const at::Tensor& target = into[filled++];
        TORCH_CHECK(target.sizes() == result.sizes(), "returned shape ", result.sizes(),
                    ", expected ", target.sizes());
        target.copy_(result);
      });
    }
  }
};

// Selects the device for this scope. The destructor swallows earlier CUDA errors; the next call
// reports them.
class OnDevice {
 public:
  explicit OnDevice(c10::Device device) : before_(c10::cuda::current_device()) {
    c10::cuda::set_device(device.index());
  }
  ~OnDevice() {
    try {
      c10::cuda::set_device(before_);
    } catch (const c10::Error&) {
    }
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  c10::DeviceIndex before_;
};

class ComputedCall {
 public:
  ComputedCall(const Operator& op, Values arguments)
      : op_(op),
        arguments_(std::move(arguments)),
        device_(*device_of(arguments_)),
        guard_(device_),
        stream_(c10::cuda::getCurrentCUDAStream(device_.index())) {}

  Values run() {
    if (op_.draws) drawn_ = draw(given_generator(), device_.index());
    const std::shared_ptr<const Shapes> shapes = find_shapes(op_, arguments_);
    bool resizes = false;
    for (const bool out : op_.outs) resizes = resizes || out;
    if (!shapes && (op_.by_data || op_.makes_tensors || resizes)) {
      return at_once();
    }
    if (shapes) resize_outs(shapes->arguments);
    Body body = bound();
    Values results;
    make_results(shapes ? shapes->results : Values(), body, results);
    const Temporaries workspace(make_workspaces(op_.label, arguments_, stream_), stream_);
    const Temporaries taken(temporaries(op_.label, arguments_, results), stream_);
    if (!op_.can_compute()) {
      launch([] {}, results);
      for (const Range range : writes_) note_unknown(range);
    } else if (op_.is_in_python()) {
      compute_now(body);
      launch([] {}, results);
    } else {
      launch(std::move(body), results);
    }
    return results;
  }

 private:
  std::optional<at::Generator> given_generator() const {
    for (const IValue& value : arguments_) {
      if (value.isGenerator()) return value.toGenerator();
    }
    return std::nullopt;
  }

  void resize_outs(const Values& like) {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!op_.outs[i]) continue;
      std::vector<at::Tensor> wanted;
      each_tensor(like[i], [&](const at::Tensor& tensor) { wanted.push_back(tensor); });
      std::size_t next = 0;
      each_tensor(arguments_[i], [&](const at::Tensor& out) { resize(out, wanted[next++]); });
    }
  }
  static void resize(const at::Tensor& out, const at::Tensor& like) {
    if (out.sizes() == like.sizes()) return;
    out.resize_({elements_spanned(like)});
    out.as_strided_(like.sizes(), like.strides());
  }

  Body bound() {
    Values host;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      host.push_back(map_tensors(arguments_[i], [&](const at::Tensor& tensor) {
        if (tensor.is_cuda() && !op_.outs[i]) reads_.push_back(bytes_of(tensor));
        if (tensor.is_cuda() && op_.writes[i]) writes_.push_back(bytes_of(tensor));
        return views_.of(tensor);
      }));
    }
    return {&op_, on_device(op_, std::move(host), c10::kCPU), {}, drawn_};
  }

  // Allocates the results in the order in which CUDA's code allocates them.
  void make_results(const Values& like, Body& body, Values& results) {
    const std::size_t count = op_.returned_as.size();
    const bool last_first = makes_last_result_first(op_.label);
    results.resize(count);
    std::vector<std::vector<at::Tensor>> into(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t number = last_first ? count - 1 - i : i;
      const auto same = op_.returned_as[number];
      results[number] = same ? arguments_[*same] : allocate(like[number], into[number]);
    }
    for (const auto& each : into) body.into.insert(body.into.end(), each.begin(), each.end());
  }

  // Allocates a new tensor for each tensor that the result must have.
  IValue allocate(const IValue& result, std::vector<at::Tensor>& into) {
    return map_tensors(result, [&](const at::Tensor& like) {
      check_strided(like);
      at::Tensor made =
          at::empty_strided(like.sizes(), like.strides(), at::device(device_).dtype(like.dtype()));
      into.push_back(views_.of(made));
      writes_.push_back(bytes_of(made));
      return made;
    });
  }

  void launch(std::function<void()> body, const Values& results) {
    std::erase_if(reads_, [](Range range) { return range.bytes == 0; });
    std::erase_if(writes_, [](Range range) { return range.bytes == 0; });
    vgpu::launch(stream_.stream(), op_.name.c_str(), reads_, writes_, std::move(body),
                 cost_of(op_, arguments_, results), op_.overwrites);
  }

  // Python computes now, when all that was queued before is done. A program might see the results
  // that early on a GPU, too. Only the log has the operator in its turn on the stream.
  void compute_now(const Body& body) {
    if (!vgpu::computes(reads_, writes_)) return;
    TORCH_CHECK(c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None,
                op_.name, ": a kernel in Python cannot be captured in a CUDA graph here");
    vgpu::run_everything();
    body.fill(call(op_, body.arguments, c10::DispatchKey::CPU, drawn_.generator));
  }

  // The results depend on values: the host waits for the values, as it does for a GPU, and
  // computes.
  Values at_once() {
    TORCH_CHECK_NOT_IMPLEMENTED(op_.can_compute(), op_.name,
                                " has no kernel that the virtual GPU runs, and its fake "
                                "implementation gives no shapes for these arguments");
    stream_.synchronize();
    vgpu::run_everything();
    Body body = bound();
    require_known(op_.name, reads_);
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!op_.outs[i]) continue;
      body.arguments[i] = map_tensors(
          body.arguments[i], [](const at::Tensor& out) { return at::empty({0}, out.options()); });
    }
    const Values made = call(op_, body.arguments, c10::DispatchKey::CPU, drawn_.generator);
    if (!made.empty()) resize_outs(body.arguments);
    Values results;
    for (std::size_t i = 0; i < op_.returned_as.size(); ++i) {
      const auto same = op_.returned_as[i];
      results.push_back(same ? arguments_[*same] : allocate(made[i], body.into));
    }
    if (op_.is_in_python()) {  // Python's tensors must not die in the queue
      if (vgpu::computes(reads_, writes_)) body.fill(made);
      launch([] {}, results);
      return results;
    }
    const auto compute = [this_body = std::move(body), made, outs = outs_of()] {
      const InKernel in_kernel;
      this_body.fill(made);
      std::size_t next = 0;
      for (std::size_t i = 0; i < this_body.arguments.size(); ++i) {
        if (!this_body.op->outs[i]) continue;
        each_tensor(this_body.arguments[i],
                    [&](const at::Tensor& value) { outs[next++].copy_(value); });
      }
    };
    launch(compute, results);
    return results;
  }
  // Returns views of the out arguments, which were resized before.
  std::vector<at::Tensor> outs_of() {
    std::vector<at::Tensor> outs;
    HostViews resized;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (!op_.outs[i]) continue;
      each_tensor(arguments_[i], [&](const at::Tensor& out) { outs.push_back(resized.of(out)); });
    }
    return outs;
  }

  const Operator& op_;
  const Values arguments_;
  const c10::Device device_;
  const OnDevice guard_;
  const c10::cuda::CUDAStream stream_;
  Drawn drawn_;
  HostViews views_;
  std::vector<Range> reads_;
  std::vector<Range> writes_;
};

}  // namespace

void run_queued(const Operator& op, torch::jit::Stack* stack) {
  const InKernel in_kernel;
  Values arguments = torch::jit::last(*stack, op.arguments).vec();
  torch::jit::drop(*stack, op.arguments);
  Values results = ComputedCall(op, std::move(arguments)).run();
  for (IValue& result : results) stack->push_back(std::move(result));
}

}  // namespace ferry::vgpu
