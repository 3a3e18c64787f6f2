// The tests of the graph engine make a graph's nodes by hand; this runs it, and notes which nodes
// ran and whether they did so with grad mode.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "sim/program/graph_engine.h"
#include "tests/sim/support/tiny.h"

namespace ferry::test {

using Names = std::vector<std::string>;
using NodeRef = std::shared_ptr<sim::Node>;

// Nodes whose bodies make a fresh gradient for every input, unless a test says what they do.
class GraphEngineRig : public ::testing::Test, public sim::NodeRunner {
 protected:
  GraphEngineRig() : machine(sim::MachineOptions{}), engine(machine, *this) {
    machine.add_consumer(&log);
  }

  std::vector<sim::Value> run_node(const NodeRef& node, std::vector<sim::Value> gradients,
                                   bool grad_mode) override {
    const std::string name(node->name);
    ran.push_back(name);
    grad_modes.push_back(grad_mode);
    const auto body = bodies.find(name);
    if (body != bodies.end()) return body->second(std::move(gradients));
    std::vector<sim::Value> results;
    for (std::size_t i = 0; i < node->next.size(); ++i) results.push_back({tensor(), {}});
    return results;
  }
  sim::Value& gradient_of(Slot global) override { return totals[global]; }
  void accumulated(Slot global) override { arrived.push_back(global); }
  std::shared_ptr<sim::Node> new_node(std::string_view name) override {
    const NodeRef made = node("", {});
    made->name = name;
    return made;
  }
  sim::KernelTime memory_time(std::int64_t) override { return 1; }

  sim::Tensor tensor() {
    static const auto window = std::make_shared<const sim::Window>(
        sim::Window{contiguous_layout(DType::kF32, {256}), {0, 1024}});
    return sim::make_tensor(machine.allocate(1024, machine.current_stream()), {window, 0},
                            machine.new_version());
  }
  NodeRef node(const char* name, std::initializer_list<sim::Edge> next, std::uint32_t stream = 0) {
    const auto made = std::make_shared<sim::Node>();
    made->name = name;
    made->id = made->sequence = ++made_;
    made->stream = machine.compute_stream(stream);
    made->next = next;
    return made;
  }
  NodeRef leaf(Slot global, std::uint32_t stream = 0) {
    const NodeRef made = node("leaf", {}, stream);
    made->sequence = sim::kLeafSequence;
    made->leaf = global;
    return made;
  }
  void backward(const NodeRef& root, bool retain = false, bool create = false) {
    const std::vector<sim::GraphEngine::Root> roots = {{{root, 0}, tensor()}};
    engine.run(roots, retain, create);
  }
  std::vector<sim::Value> gradients(const NodeRef& root, const std::vector<sim::Edge>& wanted) {
    const std::vector<sim::GraphEngine::Root> roots = {{{root, 0}, tensor()}};
    return engine.run(roots, false, false, wanted);
  }
  // A node that keeps a tensor for its backward.
  static void keep(const NodeRef& node, sim::Tensor tensor) {
    node->saved.emplace_back();
    node->saved.back().plain = std::move(tensor);
  }

  OpLog log;
  sim::Machine machine;
  sim::GraphEngine engine;
  Names ran;
  std::vector<bool> grad_modes;
  std::map<std::string, std::function<std::vector<sim::Value>(std::vector<sim::Value>)>> bodies;
  std::map<Slot, sim::Value> totals;
  std::vector<Slot> arrived;  // of each accumulation

 private:
  std::uint64_t made_ = 0;
};

}  // namespace ferry::test
