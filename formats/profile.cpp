#include "formats/profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry {
namespace {

using Json = nlohmann::json;

struct OpEvent {
  ProfiledCall call;
  std::string thread;
  double begins_us = 0;
  double ends_us = 0;
  std::int64_t id = 0;
};

struct Events {
  std::vector<OpEvent> ops;
  std::map<std::int64_t, double> kernels_us;  // by the id of the innermost call
  std::size_t kernels = 0;
  bool shapes = false;
};

// The words of "Input type": c10's names of scalar types, and C++'s of those that it has.
std::optional<DType> dtype_of(std::string_view type) {
  static const std::map<std::string_view, DType> kTypes = {
      {"double", DType::kF64},
      {"float", DType::kF32},
      {"c10::BFloat16", DType::kBF16},
      {"c10::Half", DType::kF16},
      {"c10::Float8_e4m3fn", DType::kF8},
      {"c10::Float8_e5m2", DType::kF8},
      {"long int", DType::kI64},
      {"long", DType::kI64},
      {"int", DType::kI32},
      {"short int", DType::kI16},
      {"short", DType::kI16},
      {"signed char", DType::kI8},
      {"unsigned char", DType::kU8},
      {"bool", DType::kBool},
  };
  const auto found = kTypes.find(type);
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

// None where it is no shape of a tensor that could be.
std::optional<std::vector<std::int64_t>> shape_of(const Json& dims) {
  if (!dims.is_array()) return std::nullopt;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
  for (const Json& size : dims) {
    if (!size.is_number_integer()) return std::nullopt;
    shape.push_back(size.get<std::int64_t>());
    const bool overflows = __builtin_mul_overflow(elements, shape.back(), &elements);
    if (overflows || shape.back() < 0 || elements > limits::kBytes / 8) return std::nullopt;
  }
  return shape;
}

// An argument that is no tensor has the type "Scalar", "ScalarList", "GenericList" or none.
std::vector<ProfiledInput> inputs_of(const Json& arguments) {
  std::vector<ProfiledInput> inputs;
  const auto dims = arguments.find("Input Dims");
  const auto types = arguments.find("Input type");
  if (dims == arguments.end() || types == arguments.end()) return inputs;
  for (std::size_t i = 0; i < std::min(dims->size(), types->size()); ++i) {
    const Json& type = (*types)[i];
    if (!type.is_string()) continue;
    if (type == "TensorList" && (*dims)[i].is_array()) {
      for (const Json& member : (*dims)[i]) {
        if (auto shape = shape_of(member)) inputs.push_back({std::nullopt, *std::move(shape)});
      }
    } else if (const auto dtype = dtype_of(type.get_ref<const std::string&>())) {
      if (auto shape = shape_of((*dims)[i])) inputs.push_back({dtype, *std::move(shape)});
    }
  }
  return inputs;
}

std::string name_of(std::string name) {
  if (const std::size_t colons = name.find("::"); colons != std::string::npos) {
    name.replace(colons, 2, ".");
  }
  return name;
}

double number(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

void read_event(const Json& event, Events& events) {
  const auto category = event.find("cat");
  const auto arguments = event.find("args");
  if (category == event.end() || arguments == event.end() || !arguments->is_object()) return;
  const auto id = arguments->find("External id");
  if (id == arguments->end() || !id->is_number_integer()) return;
  const double duration_us = number(event, "dur");
  if (*category == "kernel" || *category == "gpu_memcpy" || *category == "gpu_memset") {
    ++events.kernels;
    events.kernels_us[id->get<std::int64_t>()] += duration_us;
    return;
  }
  const auto name = event.find("name");
  if (*category != "cpu_op" || name == event.end() || !name->is_string()) return;
  events.shapes = events.shapes || arguments->contains("Input Dims");
  OpEvent op;
  op.call = {name_of(name->get<std::string>()), inputs_of(*arguments), 0};
  op.thread = event.value("pid", Json()).dump() + "/" + event.value("tid", Json()).dump();
  op.begins_us = number(event, "ts");
  op.ends_us = op.begins_us + duration_us;
  op.id = id->get<std::int64_t>();
  events.ops.push_back(std::move(op));
}

std::uint64_t line_at(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  return 1 + static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
}

// Each event is dropped once it is read: a profile of some steps has hundreds of megabytes.
Events read_events(std::string_view text, const std::string& file) {
  static const std::string kExpected = "expected a profile of PyTorch's (Chrome's JSON): ";
  constexpr int kEvent = 2;  // the text, "traceEvents", its members
  Events events;
  const auto read = [&](int depth, Json::parse_event_t at, Json& parsed) {
    if (at != Json::parse_event_t::object_end || depth != kEvent) return true;
    if (!parsed.contains("ph")) return true;
    if (parsed["ph"] == "X") read_event(parsed, events);
    return false;
  };
  try {
    const Json rest = Json::parse(text.begin(), text.end(), read);
  } catch (const Json::parse_error& error) {
    throw InputError(file, line_at(text, error.byte), kExpected + std::string(error.what()));
  } catch (const Json::exception& error) {  // a number beyond a double's, of which no place is told
    throw InputError(file, 0, kExpected + std::string(error.what()));
  }
  return events;
}

// Adds what ran on the GPU for a call to the calls around it, thread by thread.
void add_to_outer(std::vector<OpEvent>& ops, const std::map<std::int64_t, double>& kernels_us) {
  const auto order = [](const OpEvent& op) {
    return std::tuple(std::string_view(op.thread), op.begins_us, -op.ends_us, op.id);
  };
  std::sort(ops.begin(), ops.end(),
            [&](const OpEvent& a, const OpEvent& b) { return order(a) < order(b); });
  std::vector<double> us(ops.size());
  std::vector<std::size_t> around;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto ended = [&](std::size_t outer) {
      return ops[outer].thread != ops[i].thread || ops[outer].ends_us < ops[i].ends_us;
    };
    while (!around.empty() && ended(around.back())) around.pop_back();
    around.push_back(i);
    const auto own = kernels_us.find(ops[i].id);
    if (own == kernels_us.end()) continue;
    for (const std::size_t each : around) us[each] += own->second;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const double ns = std::min(us[i] * 1000, static_cast<double>(limits::kTimeNs));
    ops[i].call.kernels_ns = std::llround(ns);
  }
}

}  // namespace

bool is_profile(std::string_view text, const std::string& file) {
  if (text.substr(0, 2) == "\x1f\x8b") {
    throw InputError(file, 0, "expected text, and it is compressed: unpack it first (gunzip)");
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) return false;
  return text.substr(begin, text.find('\n', begin) - begin).find("\"ferry\"") ==
         std::string_view::npos;
}

std::vector<ProfiledCall> parse_profile(std::string_view text, const std::string& file) {
  Events events = read_events(text, file);
  if (events.ops.empty() && events.kernels == 0) {
    throw InputError(file, 0, "expected \"traceEvents\" with operators (\"cpu_op\") and kernels");
  }
  if (events.kernels == 0) {
    throw InputError(file, 0,
                     "expected kernels, but there is none: profile with ProfilerActivity.CUDA, on "
                     "a GPU");
  }
  if (!events.shapes) {
    throw InputError(file, 0,
                     "expected the shapes of arguments (\"Input Dims\"): profile with "
                     "record_shapes=True");
  }
  add_to_outer(events.ops, events.kernels_us);
  std::sort(events.ops.begin(), events.ops.end(), [](const OpEvent& a, const OpEvent& b) {
    return std::tuple(a.begins_us, a.id) < std::tuple(b.begins_us, b.id);
  });
  std::vector<ProfiledCall> calls;
  for (OpEvent& op : events.ops) {
    if (op.call.kernels_ns > 0) calls.push_back(std::move(op.call));
  }
  return calls;
}

}  // namespace ferry
