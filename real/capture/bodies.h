// The backward bodies of nodes, as codes. Nodes that run the same ops share one code.
//
// A body starts from the gradients of the node's outputs and the tensors that the node unpacked. It
// may also use a tensor of forward that came in neither way. Autograd then kept that tensor itself,
// and no hook saw it (an exclusion, or the own data of a custom function). The program gets a save
// that hooks do not see. The times of a shared code are the means over its runs.
//
// A body that uses what another node made in backward cannot be captured: lower() throws
// CaptureError. Call codes() once, at the end: it moves the codes out.
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
    std::vector<Ref> unhooked;  // saved after the node's packs, not seen by hooks
  };
  Lowered lower(NodeNumber node);

  // Returns the codes, each with the mean times of its runs.
  std::vector<Code> codes();

 private:
  // A code, and the sum of the times of its ops over all runs.
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
