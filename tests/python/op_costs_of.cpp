// What formats/op_costs.h says of calls, for a comparison with Python's twin of it (test_costs.py).
//
//   {"op":"aten.mm","in":[…],"out":[…],"writes":[0],"flags":{"transposed":true,"reduce":"mean"}}
//
// A call on each line that is read; a line of its costs for each. Tensors are said as a program
// says them, a product as [batch, m, n, k, aligned].
#include <cstdint>
#include <deque>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/json_fields.h"
#include "formats/op_costs.h"

namespace ferry {
namespace {

// The layouts stay where they are.
std::vector<const Layout*> read_layouts(const Json& tensors, std::deque<Layout>& layouts) {
  std::vector<const Layout*> read;
  for (const Json& tensor : tensors) {
    read.push_back(&layouts.emplace_back(Fields(tensor, "a tensor", 1).layout()));
  }
  return read;
}

Json costs_of(const std::string& text) {
  const Json line = parse_json(text, "a call", 1);
  std::deque<Layout> layouts;
  const auto name = line.at("op").get<std::string>();
  OpCall call{.name = name,
              .in = read_layouts(line.at("in"), layouts),
              .out = read_layouts(line.at("out"), layouts),
              .writes = line.at("writes").get<std::vector<std::uint32_t>>()};
  for (const auto& [argument, value] : line.at("flags").items()) {
    if (value.is_boolean()) call.flags.set(argument, value.get<bool>());
    if (value.is_string()) call.flags.set(argument, value.get<std::string>());
  }
  const OpCosts costs = op_costs(call);
  Json products = Json::array();
  for (const MatrixProduct& each : costs.products) {
    products.push_back({each.batch, each.m, each.n, each.k, each.aligned_bytes});
  }
  return {{"flops", costs.flops},
          {"read", costs.read_bytes},
          {"written", costs.written_bytes},
          {"kernels", costs.kernels},
          {"products", products}};
}

}  // namespace
}  // namespace ferry

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << ferry::costs_of(line) << '\n';
}
