// Prints values, as tl.device_print does (operations.h): a line for each element of each program.
//
// The lines of a program stand together, in the order of the programs. On a GPU they come in any
// order.
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "vgpu/triton/by_type.h"
#include "vgpu/triton/operations.h"

namespace ferry::vgpu::triton {
namespace {

std::string text_of(const Value& value, std::int64_t at, bool in_hex) {
  std::array<char, 64> text{};
  if (is_float(value.elem())) {
    const double number = value.elem() == Elem::kF64 ? value.as<double>()[at]
                                                     : static_cast<double>(value.as<float>()[at]);
    std::snprintf(text.data(), text.size(), "%f", number);
    return text.data();
  }
  std::int64_t number = 0;
  static_cast<void>(by_whole_number(value.elem(), [&](auto t) {
    number = value.as<decltype(t)>()[at];
    return Value();
  }));
  const bool is_address = value.elem() == Elem::kPointer;
  std::snprintf(text.data(), text.size(), in_hex || is_address ? "0x%llx" : "%lld",
                static_cast<long long>(number));
  return text.data();
}

// "idx (3, 0)" of the element with this number; "idx ()" of a scalar.
std::string index_of(const std::vector<std::int64_t>& shape, std::int64_t at) {
  std::string text;
  for (std::size_t i = shape.size(); i-- > 0; at /= shape[i]) {
    text = std::to_string(at % shape[i]) + (text.empty() ? "" : ", " + text);
  }
  return "idx (" + text + ")";
}

std::string program_of(const Machine& machine, std::int64_t program) {
  const auto& grid = machine.launch().grid;
  const std::int64_t number = machine.program() + program;
  return "pid (" + std::to_string(number % grid[0]) + ", " +
         std::to_string(number / grid[0] % grid[1]) + ", " +
         std::to_string(number / grid[0] / grid[1]) + ") ";
}

void print(Machine& machine, const Op& op) {
  const std::string prefix = op.words.empty() ? "" : op.words[0];
  const auto hex = op.attributes.find("hex");
  const bool in_hex = hex != op.attributes.end() && hex->second == "true";
  const Value& active = machine.active();
  std::vector<Value> values;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    values.push_back(
        whole(machine.pool(), machine.operand(op, i), machine.type(op.operands[i]).shape));
  }
  for (std::int64_t p = 0; p < machine.programs(); ++p) {
    if (active.exists() && active.as<std::uint8_t>()[active.elements() == 1 ? 0 : p] == 0) {
      continue;
    }
    const std::string program = program_of(machine, p);
    if (values.empty()) std::printf("%s%s\n", program.c_str(), prefix.c_str());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& shape = machine.type(op.operands[i]).shape;
      const std::int64_t count = machine.type(op.operands[i]).elements();
      const std::int64_t first = values[i].dims()[0] == 1 ? 0 : p * count;
      const std::string which = values.size() == 1 ? "" : "(operand " + std::to_string(i) + ") ";
      for (std::int64_t at = 0; at < count; ++at) {
        std::printf("%s%s%s%s%s\n", program.c_str(), index_of(shape, at).c_str(), prefix.c_str(),
                    which.c_str(), text_of(values[i], first + at, in_hex).c_str());
      }
    }
  }
  std::fflush(stdout);
}

constexpr std::array<Operation, 1> kOperations = {{{"tt.print", print}}};

}  // namespace

std::span<const Operation> printing() { return kOperations; }

}  // namespace ferry::vgpu::triton
