// The names in torch_ferry._C that python/torch_ferry/offload.py uses: an Offload with options by
// name, its counts, decisions and plan, and the guard under which nothing is offloaded. guards.cpp
// opens and closes guards.
//
// Options have the same names as in OffloadOptions (real/include/ferry/offload.h). Sizes are in
// bytes: offload.py converts "64MiB".

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ferry/replay.h"
#include "formats/decision_log.h"
#include "formats/plan_file.h"
#include "real/python/gil.h"
#include "real/python/guards.h"

namespace ferry::real::python {
namespace {

void add_replay_statistics(py::module_& module) {
  using S = ReplayStatistics;
  py::class_<S>(module, "ReplayStatistics", "Counts of all operator spans in this process.")
      .def_readonly("spans", &S::spans)
      .def_readonly("calls", &S::calls)
      .def_readonly("saved", &S::saved)
      .def_readonly("passed_on", &S::passed_on)
      .def_readonly("replays", &S::replays)
      .def_readonly("calls_replayed", &S::calls_replayed)
      .def_readonly("alive", &S::alive)
      .def("__repr__", [](const S& self) {
        return std::to_string(self.spans) + " spans of " + std::to_string(self.calls) +
               " operators: " + std::to_string(self.replays) + " replays ran " +
               std::to_string(self.calls_replayed) + " of them, for " + std::to_string(self.saved) +
               " tensors; " + std::to_string(self.passed_on) + " passed on; " +
               std::to_string(self.alive) + " alive";
      });
  module.def("replay_statistics", &replay_statistics);
}

// The statistics for Python: the counts, the forwards that did not match the plan, and the memory.
struct Counts : OffloadStatistics {
  std::int64_t other_forwards = 0;
  OffloadMemory memory = {};
  bool saves_nothing = false;
};

std::string text_of(const Counts& self) {
  const std::int64_t others = self.other_forwards;
  std::string memory = to_string(self.memory);
  if (self.saves_nothing && self.offloaded_count > 0) {
    memory = "no memory saved (on the CPU, without a disk)";
  }
  return (memory.empty() ? "" : memory + "; ") +
         to_string(static_cast<const OffloadStatistics&>(self)) +
         (others == 0 ? "" : "; forwards that were not the plan's: " + std::to_string(others));
}

void add_offload_statistics(py::module_& module) {
  using S = OffloadStatistics;
  py::class_<Counts> counts(module, "OffloadStatistics",
                            "The counts of an Offload. Sizes are in bytes.");
  const auto add = [&](const char* name, std::int64_t S::*count) {
    counts.def_readonly(name, count);
  };
  counts.def_readonly("other_forwards", &Counts::other_forwards);
  counts.def_property_readonly("peak_bytes",
                               [](const Counts& self) { return self.memory.peak_bytes; });
  counts.def_property_readonly("peak_without_bytes",
                               [](const Counts& self) { return self.memory.peak_without_bytes; });
  add("packs", &S::packs);
  add("kept", &S::kept);
  add("full", &S::full);
  add("shared", &S::shared);
  add("offloaded_count", &S::offloaded_count);
  add("offloaded_bytes", &S::offloaded_bytes);
  add("reloaded_count", &S::reloaded_count);
  add("reloaded_bytes", &S::reloaded_bytes);
  add("prefetched_count", &S::prefetched_count);
  add("stash_hits", &S::stash_hits);
  add("target_hits", &S::target_hits);
  add("vain_count", &S::vain_count);
  add("vain_bytes", &S::vain_bytes);
  add("compute_waits", &S::compute_waits);
  add("stalled_ns", &S::stalled_ns);
  add("forward_stash_peak_bytes", &S::forward_stash_peak_bytes);
  add("backward_stash_peak_bytes", &S::backward_stash_peak_bytes);
  counts.def("__str__", &text_of);
  counts.def("__repr__", &text_of);
}

using Set = void (*)(OffloadOptions& options, const py::handle& value);
template <auto option>
void set_bytes(OffloadOptions& options, const py::handle& value) {
  (options.*option)(py::cast<std::int64_t>(value));
}
template <auto option>
void set_flag(OffloadOptions& options, const py::handle& value) {
  (options.*option)(py::cast<bool>(value));
}
template <class Value>
using Setter = OffloadOptions& (OffloadOptions::*)(const Value&);

void set_other_shapes(OffloadOptions& options, const py::handle& value) {
  const auto text = py::cast<std::string>(value);
  if (text == "offload") {
    options.other_shapes(OtherShapes::kOffload);
  } else if (text == "keep") {
    options.other_shapes(OtherShapes::kKeep);
  } else if (text != "raise") {
    throw std::invalid_argument(R"(other_shapes: expected "offload", "keep" or "raise", got ")" +
                                text + '"');
  }
}

const std::map<std::string_view, Set>& setters() {
  using O = OffloadOptions;
  using Bytes = Setter<std::int64_t>;
  using Flag = Setter<bool>;
  static const std::map<std::string_view, Set> all{
      {"min_bytes", &set_bytes<static_cast<Bytes>(&O::min_bytes)>},
      {"window", &set_bytes<static_cast<Bytes>(&O::window)>},
      {"window_tensors", &set_bytes<static_cast<Bytes>(&O::window_tensors)>},
      {"prefetch_tensors", &set_bytes<static_cast<Bytes>(&O::prefetch_tensors)>},
      {"prefetch", &set_bytes<static_cast<Bytes>(&O::prefetch)>},
      {"hold", &set_bytes<static_cast<Bytes>(&O::hold)>},
      {"disk_bytes_max", &set_bytes<static_cast<Bytes>(&O::disk_bytes_max)>},
      {"fix_malloc", &set_flag<static_cast<Flag>(&O::fix_malloc)>},
      {"keep_when_full", &set_flag<static_cast<Flag>(&O::keep_when_full)>},
      {"pinned", &set_flag<static_cast<Flag>(&O::pinned)>},
      {"decisions", &set_flag<static_cast<Flag>(&O::decisions)>},
      {"trace", &set_flag<static_cast<Flag>(&O::trace)>},
      {"other_shapes", &set_other_shapes},
      {"device",
       [](O& options, const py::handle& value) { options.device(py::cast<at::Device>(value)); }},
      {"disk",
       [](O& options, const py::handle& value) {
         options.disk(py::cast<std::filesystem::path>(value));
       }},
  };
  return all;
}

OffloadOptions options_of(const py::dict& given) {
  OffloadOptions options;
  for (const auto& [key, value] : given) {
    const auto name = py::cast<std::string>(key);
    const auto found = setters().find(name);
    if (found == setters().end()) throw py::type_error("torch_ferry.offload: no option " + name);
    found->second(options, value);
  }
  return options;
}

void add_plan(py::module_& module) {
  py::class_<Plan>(module, "Plan", "A plan that `ferry plan -o` wrote.")
      .def_static("read", &read_plan, "Reads a plan file.")
      .def_static(
          "parse",
          [](const std::string& text, const std::string& file) { return parse_plan(text, file); },
          "Parses the text of a plan file. Errors name the file.");
}

// Returns the text of the decision log (formats/decision_log.h), with its first line.
std::string decision_log(PythonOffload& self) {
  const GilReleased released;
  std::string lines = decision_header(self.session().core());
  for (const Decision& decision : self.session().take_decisions()) {
    lines += decision_line(decision);
  }
  return lines;
}

}  // namespace

void add_offload(py::module_& module) {
  add_offload_statistics(module);
  add_plan(module);
  py::class_<PythonOffload>(module, "Offload")
      .def(py::init([](const py::dict& options, const std::optional<Plan>& plan, bool parameters) {
        return std::make_unique<PythonOffload>(options_of(options), plan ? &*plan : nullptr,
                                               parameters);
      }))
      .def("open", &PythonOffload::open)
      .def("close", &PythonOffload::close)
      .def("exempt",
           [](PythonOffload& self, const at::Tensor& tensor) { self.session().exempt(tensor); })
      .def("statistics",
           [](PythonOffload& self) {
             const GilReleased released;
             return Counts{self.session().statistics(), self.session().other_forwards(),
                           self.session().memory(), self.session().saves_nothing()};
           })
      .def("step_statistics",
           [](PythonOffload& self) {
             const GilReleased released;
             return Counts{self.session().step_statistics()};
           })
      .def("saves_nothing",
           [](PythonOffload& self) {
             const GilReleased released;
             return self.session().saves_nothing();
           })
      .def("empty",
           [](PythonOffload& self) {
             const GilReleased released;
             return self.session().empty();
           })
      .def("take_decisions", &decision_log)
      .def("write_trace", [](PythonOffload& self, const std::filesystem::path& path) {
        const GilReleased released;
        self.session().write_trace(path);
      });
  py::class_<PythonNoOffload>(module, "NoOffload")
      .def(py::init<>())
      .def("open", &PythonNoOffload::open)
      .def("close", &PythonNoOffload::close);
  module.def("finish_offloads", &finish_offloads);
  add_replay_statistics(module);
}

}  // namespace ferry::real::python
