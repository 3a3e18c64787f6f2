// The backward bodies of nodes, as codes: nodes that run the same ops share one.
//
// A body starts from the gradients of the node's outputs and from what the node unpacked. If it
// uses a tensor of forward that came neither way, autograd kept that tensor by itself: no hook saw
// it (an exclusion, a custom function's own data), so the program has a save that no hook sees.
// Measured times of a shared code are the mean of its runs.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "real/capture/frame.h"
#include "real/capture/graph.h"

namespace ferry::real::capture {

class Bodies {
 public:
  Bodies(const Trace& trace, const Graph& graph, Types& types, const Globals& globals)
      : trace_(trace), graph_(graph), types_(types), globals_(globals) {}

  struct Lowered {
    std::size_t body = 0;       // an index into codes()
    std::vector<Ref> unhooked;  // saved after the node's packs, invisible to hooks
  };
  Lowered lower(NodeNumber node);

  // Each code has the mean times of its runs.
  std::vector<Code> codes();

 private:
  // A code, and the times of its ops in each run.
  struct Shared {
    Code code;
    std::vector<std::int64_t> total_ns;
    std::int64_t runs = 0;
  };

  void run(const Body& body, NodeNumber node, Frame& frame, Code& code,
           std::vector<Ref>& unhooked) const;
  void need(const Ref& ref, NodeNumber node, Frame& frame, Code& code,
            std::vector<Ref>& unhooked) const;
  std::size_t share(Code code);

  const Trace& trace_;
  const Graph& graph_;
  Types& types_;
  const Globals& globals_;
  std::vector<Shared> shared_;
  std::map<std::pair<std::string, std::size_t>, std::vector<std::size_t>> alike_;
};

}  // namespace ferry::real::capture
