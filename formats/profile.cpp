#include "formats/profile.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "formats/error.h"
#include "formats/json_scan.h"
#include "formats/limits.h"
#include "formats/printable.h"

namespace ferry {
namespace {

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

// Parses an "Input type": the name of a scalar type in c10, or in C++ if C++ has the type.
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

std::string name_of(std::string_view text) {
  std::string name(text);
  if (const std::size_t colons = name.find("::"); colons != std::string::npos) {
    name.replace(colons, 2, ".");
  }
  return name;
}

// Reads the members of one event that are used, and skips all others.
class EventReader {
 public:
  explicit EventReader(Events& events) : events_(events) {}

  // Throws JsonError that says which key was wrong and what was expected.
  void read(std::string_view event) {
    scan_.reset(event);
    JsonValue phase, category, name, begins, lasts, arguments, process, thread;
    const std::map<std::string_view, JsonValue*> used = {
        {"ph", &phase},  {"cat", &category},   {"name", &name},   {"ts", &begins},
        {"dur", &lasts}, {"args", &arguments}, {"pid", &process}, {"tid", &thread}};
    members(event, used);
    if (!phase || text("ph", phase) != "X" || !category) return;
    const std::string_view what = text("cat", category);
    const bool kernel = what == "kernel" || what == "gpu_memcpy" || what == "gpu_memset";
    if ((!kernel && what != "cpu_op") || !arguments) return;
    if (arguments.kind != JsonValue::Kind::kObject) expected("args", "an object", arguments);
    JsonValue id, dims, types;
    members(arguments.text, {{"External id", &id}, {"Input Dims", &dims}, {"Input type", &types}});
    if (!id) return;  // it belongs to no call
    if (id.kind != JsonValue::Kind::kInteger || id.magnitude > INT64_MAX) {
      expected("External id", "an integer", id);
    }
    const auto number = static_cast<std::int64_t>(id.negative ? ~id.magnitude + 1 : id.magnitude);
    const double us = microseconds("dur", lasts);
    if (us < 0) expected("dur", "microseconds from 0", lasts);
    if (kernel) {
      ++events_.kernels;
      events_.kernels_us[number] += us;
      return;
    }
    OpEvent op;
    op.call = {name_of(text("name", name)), inputs(dims, types), 0};
    op.thread = word("pid", process) + "/" + word("tid", thread);
    op.begins_us = microseconds("ts", begins);
    op.ends_us = op.begins_us + us;
    op.id = number;
    events_.shapes = events_.shapes || dims;
    events_.ops.push_back(std::move(op));
  }

 private:
  [[noreturn]] static void expected(std::string_view key, std::string_view what,
                                    const JsonValue& value) {
    constexpr std::size_t kShown = 40;
    std::string text = "expected \"" + std::string(key) + "\": " + std::string(what);
    if (value) text += ", not " + printable(value.text.substr(0, kShown));
    throw JsonError(text);
  }

  void members(std::string_view object, const std::map<std::string_view, JsonValue*>& used) {
    scan_.enter(object);
    scan_.open('{');
    std::string_view key;
    while (scan_.next_key(key)) {
      const auto found = used.find(key);
      const JsonValue value = scan_.value();
      if (found != used.end()) *found->second = value;
    }
  }

  static std::string_view text(std::string_view key, const JsonValue& value) {
    if (value.kind != JsonValue::Kind::kText) expected(key, "a string", value);
    return value.text;
  }
  // A number or a name.
  static std::string word(std::string_view key, const JsonValue& value) {
    if (value.kind == JsonValue::Kind::kArray || value.kind == JsonValue::Kind::kObject) {
      expected(key, "a string or an integer", value);
    }
    return std::string(value.text);
  }

  static double microseconds(std::string_view key, const JsonValue& value) {
    double us = 0;
    const char* end = value.text.data() + value.text.size();
    const bool number =
        value.kind == JsonValue::Kind::kInteger || value.kind == JsonValue::Kind::kNumber;
    if (!number || std::from_chars(value.text.data(), end, us).ec != std::errc() ||
        !std::isfinite(us)) {
      expected(key, "a number of microseconds", value);
    }
    return us;
  }

  std::vector<JsonValue> elements(std::string_view key, const JsonValue& list) {
    std::vector<JsonValue> all;
    if (list.kind != JsonValue::Kind::kArray) expected(key, "a list", list);
    scan_.enter(list.text);
    scan_.open('[');
    while (scan_.next_element()) all.push_back(scan_.value());
    return all;
  }

  std::vector<std::int64_t> shape(const JsonValue& dims) {
    std::vector<std::int64_t> sizes;
    std::int64_t elements_of = 1;
    for (const JsonValue& size : elements("Input Dims", dims)) {
      const bool fits = size.kind == JsonValue::Kind::kInteger && !size.negative &&
                        size.magnitude <= static_cast<std::uint64_t>(limits::kBytes);
      if (!fits) expected("Input Dims", "sizes of a tensor", dims);
      sizes.push_back(static_cast<std::int64_t>(size.magnitude));
      const bool overflows = __builtin_mul_overflow(elements_of, sizes.back(), &elements_of);
      if (overflows || elements_of > limits::kBytes / 8) {
        expected("Input Dims", "sizes of a tensor", dims);
      }
    }
    return sizes;
  }

  // An argument that is not a tensor has type "Scalar", "ScalarList" or "GenericList", or no type.
  std::vector<ProfiledInput> inputs(const JsonValue& dims, const JsonValue& types) {
    std::vector<ProfiledInput> inputs;
    if (!dims || !types) return inputs;
    const std::vector<JsonValue> all = elements("Input Dims", dims);
    const std::vector<JsonValue> words = elements("Input type", types);
    for (std::size_t i = 0; i < std::min(all.size(), words.size()); ++i) {
      if (words[i].kind != JsonValue::Kind::kText) expected("Input type", "a list of texts", types);
      if (words[i].text == "TensorList") {
        for (const JsonValue& member : elements("Input Dims", all[i])) {
          inputs.push_back({std::nullopt, shape(member)});
        }
      } else if (const auto dtype = dtype_of(words[i].text)) {
        inputs.push_back({dtype, shape(all[i])});
      }
    }
    return inputs;
  }

  Events& events_;
  JsonScan scan_;
};

std::uint64_t line_at(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  return 1 + static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
}

// Reads the events in "traceEvents", or in a list that is the whole text. Chrome's format has both.
class ProfileReader {
 public:
  ProfileReader(std::string_view text, const std::string& file)
      : text_(text), file_(file), scan_(text) {}

  Events read() {
    try {
      if (scan_.opens() == '[') {
        read_list();
      } else {
        scan_.open('{');
        std::string_view key;
        while (scan_.next_key(key)) {
          if (key == "traceEvents" && scan_.opens() == '[') {
            read_list();
          } else {
            scan_.value();
          }
        }
      }
      scan_.finish();
    } catch (const JsonError& error) {
      throw InputError(
          file_, line_at(text_, error.offset),
          "expected a profile of PyTorch (Chrome's JSON): " + std::string(error.what()));
    }
    return std::move(events_);
  }

 private:
  void read_list() {
    scan_.open('[');
    for (std::size_t number = 0; scan_.next_element(); ++number) {
      const bool object = scan_.opens() == '{';
      const std::size_t at = scan_.offset();
      const JsonValue event = scan_.value();
      if (!object) continue;
      try {
        reader_.read(event.text);
      } catch (const JsonError& error) {
        throw InputError(file_, line_at(text_, at),
                         "event " + std::to_string(number) + ": " + error.what());
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  JsonScan scan_;
  Events events_;
  EventReader reader_{events_};
};

// Adds the GPU time of each call to the calls around it on the same thread.
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
    throw InputError(file, 0, "expected text, but the file is compressed: unpack it (gunzip)");
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) return false;
  return text.substr(begin, text.find('\n', begin) - begin).find("\"ferry\"") ==
         std::string_view::npos;
}

std::vector<ProfiledCall> parse_profile(std::string_view text, const std::string& file) {
  Events events = ProfileReader(text, file).read();
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
