// The class torch_ferry._C.Weights, which python/torch_ferry/stream_weights.py uses.

#include "real/python/weights.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <torch/csrc/utils/pybind.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "real/api/device_wards.h"
#include "real/python/gil.h"
#include "real/python/saved.h"
#include "real/tensors/torch_tensors.h"

namespace ferry::real::python {
namespace {

constexpr const char* kAway =
    "a weight on the host (torch_ferry.stream_weights) was used outside the forward of its module: "
    "list a module in `units` whose forward is around this use, or call remove() before it";

// The weights that modules hold on this thread, by their storages.
struct Held {
  std::shared_ptr<DeviceWeights> weights;
  WardId id;
  int times = 0;
};
std::unordered_map<const c10::StorageImpl*, Held>& held_here() {
  thread_local std::unordered_map<const c10::StorageImpl*, Held> here;
  return here;
}

const Held* find_held(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return nullptr;
  const auto found = held_here().find(tensor.storage().unsafeGetStorageImpl());
  return found == held_here().end() ? nullptr : &found->second;
}

// A tensor that autograd saves as if there were no hooks.
class PlainSaved final : public Saved<at::Tensor> {
 public:
  explicit PlainSaved(at::Tensor tensor)
      : tensor_(std::move(tensor)),
        version_(TorchTensors::version(tensor_)),
        at_save_(TorchTensors::read(version_)) {}
  at::Tensor unpack() override {
    const std::uint64_t now = TorchTensors::read(version_);
    if (now != at_save_) throw torch_error(ModifiedInPlace(now, at_save_));
    return tensor_;
  }

 private:
  const at::Tensor tensor_;
  const TorchTensors::Version version_;
  const std::uint64_t at_save_;
};

class WeightPair final : public Hooks<at::Tensor> {
 public:
  std::unique_ptr<Saved<at::Tensor>> pack(const at::Tensor& tensor) override {
    if (const Held* const held = find_held(tensor)) return held->weights->refer(held->id, tensor);
    return std::make_unique<PlainSaved>(tensor);
  }
};

class PythonWeights {
 public:
  PythonWeights(at::Device device, std::optional<std::int64_t> ahead, bool pinned,
                const Disk& disk) {
    WardOptions options;
    options.ahead_bytes = ahead;
    options.host_memory = pinned ? HostMemory::kPinned : HostMemory::kPageable;
    const GilReleased released;
    weights_ = make_weights(device, std::move(options), disk);
  }
  PythonWeights(const PythonWeights&) = delete;
  PythonWeights& operator=(const PythonWeights&) = delete;
  ~PythonWeights() {
    const GilReleased released;
    weights_.reset();
    all_.clear();
  }

  // Moves the storage that all these parameters lie in. Returns the number of the weight.
  std::size_t add(std::vector<at::Tensor> parameters) {
    const GilReleased released;
    const c10::Storage storage = parameters.at(0).storage();
    for (const at::Tensor& parameter : parameters) {
      TORCH_CHECK_VALUE(parameter.storage().is_alias_of(storage),
                        "the parameters of a weight lie in one storage");
    }
    const std::lock_guard lock(mutex_);
    Weight weight{.id = weights_->add(storage), .parameters = std::move(parameters), .away = {}};
    weight.away = c10::Storage(c10::Storage::use_byte_size_t(), storage.nbytes(),
                               c10::DataPtr(nullptr, storage.device()), nullptr, false);
    weight.away.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(kAway);
    put(weight, weight.away);
    all_.push_back(std::move(weight));
    return all_.size() - 1;
  }

  // The calling thread enters the forward of a module with these weights. If it throws, it has not.
  void enter(const std::vector<std::size_t>& numbers) {
    const GilReleased released;
    const std::lock_guard lock(mutex_);
    std::size_t entered = 0;
    try {
      for (; entered < numbers.size(); ++entered) enter_one(all_.at(numbers[entered]));
    } catch (...) {
      while (entered > 0) leave_one(all_[numbers[--entered]]);
      throw;
    }
  }
  void leave(const std::vector<std::size_t>& numbers) {
    const GilReleased released;
    const std::lock_guard lock(mutex_);
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
      leave_one(all_.at(*number));
    }
  }

  // The weight ends. Its parameters keep no bytes.
  void remove(std::size_t number) {
    const GilReleased released;
    const std::lock_guard lock(mutex_);
    Weight& weight = all_.at(number);
    TORCH_CHECK(weight.entered == 0, "a weight is removed while its module is in its forward");
    if (!std::exchange(weight.is_removed, true)) weights_->remove(weight.id);
    weight.parameters.clear();
  }
  WardStatistics statistics() const { return weights_->statistics(); }

 private:
  struct Weight {
    WardId id{};
    std::vector<at::Tensor> parameters;
    c10::Storage away;  // without bytes
    int entered = 0;    // by all threads
    bool is_removed = false;
  };

  static void put(const Weight& weight, const c10::Storage& storage) {
    for (const at::Tensor& parameter : weight.parameters) {
      parameter.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
    }
  }

  void enter_one(Weight& weight) {
    TORCH_CHECK(!weight.is_removed, "this weight is not on the host any more");
    const c10::Storage storage = weights_->hold(weight.id);
    Held& held = held_here()[storage.unsafeGetStorageImpl()];
    held.weights = weights_;
    held.id = weight.id;
    ++held.times;
    put(weight, storage);
    ++weight.entered;
  }
  void leave_one(Weight& weight) {
    TORCH_CHECK(weight.entered > 0, "a weight is left that was not entered");
    const auto found = held_here().find(weight.parameters.front().storage().unsafeGetStorageImpl());
    TORCH_CHECK(found != held_here().end(), "a weight is left by another thread than entered it");
    if (--found->second.times == 0) held_here().erase(found);
    if (--weight.entered == 0) put(weight, weight.away);
    weights_->release(weight.id);
  }

  std::shared_ptr<DeviceWeights> weights_;
  std::mutex mutex_;
  std::vector<Weight> all_;
};

}  // namespace

bool holds_weights() { return !held_here().empty(); }

void SavedBesideWeights::call_pack_hook(const at::Tensor& tensor) {
  static const auto pair = std::make_shared<WeightPair>();
  if (!hooks_ || find_held(tensor)) hooks_ = std::make_unique<SavedInPython>(pair);
  hooks_->call_pack_hook(tensor);
}

void add_weights(py::module_& module) {
  py::class_<PythonWeights>(module, "Weights")
      .def(py::init<at::Device, std::optional<std::int64_t>, bool, const Disk&>())
      .def("add", &PythonWeights::add)
      .def("enter", &PythonWeights::enter)
      .def("leave", &PythonWeights::leave)
      .def("remove", &PythonWeights::remove)
      .def("statistics", &PythonWeights::statistics);
}

}  // namespace ferry::real::python
