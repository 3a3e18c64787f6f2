// The class torch_ferry._C.Wards, which python/torch_ferry/host_state.py uses.
//
// A ward is known by its number. Its storage is a tensor of bytes. Calls release the interpreter's
// lock, because they may wait for a copy.

#include "real/python/wards.h"

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "real/api/device_wards.h"
#include "real/python/gil.h"

namespace ferry::real::python {
namespace {

class PythonWards {
 public:
  PythonWards(at::Device device, std::optional<std::int64_t> ahead,
              std::optional<std::int64_t> behind, bool pinned, const Disk& disk)
      : device_(device) {
    WardOptions options;
    options.ahead_bytes = ahead;
    options.behind_bytes = behind;
    options.host_memory = pinned ? HostMemory::kPinned : HostMemory::kPageable;
    const GilReleased released;
    wards_ = make_wards(device, std::move(options), disk);
  }
  PythonWards(const PythonWards&) = delete;
  PythonWards& operator=(const PythonWards&) = delete;
  ~PythonWards() {
    const GilReleased released;
    wards_.reset();
  }

  std::uint64_t add(const at::Tensor& tensor) {
    TORCH_CHECK_VALUE(tensor.device() == device_, "a ward of ", device_, " is on ",
                      tensor.device());
    const GilReleased released;
    return static_cast<std::uint64_t>(wards_->add(tensor.storage()));
  }
  at::Tensor take(std::uint64_t ward) {
    const GilReleased released;
    const c10::Storage storage = wards_->take(WardId{ward});
    const auto bytes = static_cast<std::int64_t>(storage.nbytes());
    at::Tensor tensor = at::empty({0}, at::TensorOptions(device_).dtype(at::kByte));
    return tensor.set_(storage, 0, {bytes}, {1});
  }
  void written(std::uint64_t ward) {
    const GilReleased released;
    wards_->written(WardId{ward});
  }
  void give_back(std::uint64_t ward, bool was_written) {
    const GilReleased released;
    wards_->give_back(WardId{ward}, was_written);
  }
  void remove(std::uint64_t ward) {
    const GilReleased released;
    wards_->remove(WardId{ward});
  }
  void bring_ahead() {
    const GilReleased released;
    wards_->bring_ahead();
  }
  void end_step(bool keep_order) {
    const GilReleased released;
    wards_->end_step(keep_order);
  }
  WardStatistics statistics() const { return wards_->statistics(); }

 private:
  const at::Device device_;
  std::unique_ptr<DeviceWards> wards_;
};

}  // namespace

void add_wards(py::module_& module) {
  using S = WardStatistics;
  py::class_<S>(module, "WardStatistics", "The counts of an optimizer's state on the host.")
      .def_readonly("wards", &S::wards)
      .def_readonly("host_bytes", &S::host_bytes)
      .def_readonly("brought_count", &S::brought_count)
      .def_readonly("brought_bytes", &S::brought_bytes)
      .def_readonly("ahead_count", &S::ahead_count)
      .def_readonly("unused_count", &S::unused_count)
      .def_readonly("returned_count", &S::returned_count)
      .def_readonly("returned_bytes", &S::returned_bytes)
      .def_readonly("device_bytes", &S::device_bytes)
      .def_readonly("device_peak_bytes", &S::device_peak_bytes);
  py::class_<PythonWards>(module, "Wards")
      .def(py::init<at::Device, std::optional<std::int64_t>, std::optional<std::int64_t>, bool,
                    const Disk&>())
      .def("add", &PythonWards::add)
      .def("take", &PythonWards::take)
      .def("written", &PythonWards::written)
      .def("give_back", &PythonWards::give_back)
      .def("remove", &PythonWards::remove)
      .def("bring_ahead", &PythonWards::bring_ahead)
      .def("end_step", &PythonWards::end_step)
      .def("statistics", &PythonWards::statistics);
}

}  // namespace ferry::real::python
