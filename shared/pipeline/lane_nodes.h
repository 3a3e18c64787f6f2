// The nodes between two stages, for one micro-batch. Each does something in forward, and the
// opposite in backward (shared/transfer/transfer.h).
//
//                forward, on the values               backward, on their gradients
//     out_node   they may be received                 the stage waits for them
//     copy_node  they move to the next device         they move back
//     in_node    the next stage waits for them        they may be received
//
// Values that need no gradient do not go through nodes. Source: torchgpipe/copy.py.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "shared/transfer/transfer.h"

namespace ferry {

namespace lane_detail {

// Returns the tensors of the values that have one.
template <PipelineAutograd A>
std::vector<typename A::Tensor> tensors(A autograd, std::span<const typename A::Value> values) {
  std::vector<typename A::Tensor> found;
  for (const auto& value : values) {
    if (autograd.exists(value)) found.push_back(autograd.tensor(value));
  }
  return found;
}

// Replaces `values` by `outputs`. Those that require grad become outputs of one node on the current
// stream.
template <PipelineAutograd A, class Backward>
void through_node(A autograd, std::vector<typename A::Value>& values,
                  std::vector<typename A::Value> outputs, Backward backward) {
  using Values = std::vector<typename A::Value>;
  std::vector<std::size_t> which;
  Values from;
  Values to;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!autograd.grad_mode() || !autograd.requires_grad(values[i])) continue;
    which.push_back(i);
    from.push_back(values[i]);
    to.push_back(outputs[i]);
  }
  values = std::move(outputs);
  if (which.empty()) return;
  to = autograd.node(from, std::move(to), std::move(backward));
  for (std::size_t k = 0; k < which.size(); ++k) values[which[k]] = std::move(to[k]);
}

template <PipelineAutograd A>
std::vector<typename A::Value> without_graph(A autograd,
                                             const std::vector<typename A::Value>& values) {
  std::vector<typename A::Value> plain;
  for (const auto& value : values) {
    plain.push_back(autograd.exists(value) ? autograd.leaf(autograd.tensor(value), false) : value);
  }
  return plain;
}

template <PipelineDevice D, PipelineAutograd A>
std::vector<typename A::Value> received(A autograd, Transfer<D> transfer,
                                        const std::vector<typename A::Value>& values) {
  std::vector<typename A::Value> arrived;
  for (const auto& value : values) {
    arrived.push_back(autograd.exists(value)
                          ? autograd.leaf(transfer.receive(autograd.tensor(value)), false)
                          : value);
  }
  return arrived;
}

}  // namespace lane_detail

template <PipelineDevice D, PipelineAutograd A>
void out_node(A autograd, Transfer<D> transfer, std::vector<typename A::Value>& values) {
  using Values = std::vector<typename A::Value>;
  const typename D::StreamScope on(transfer.from().device, transfer.from().arrivals);
  transfer.send();
  lane_detail::through_node(autograd, values, lane_detail::without_graph(autograd, values),
                            [autograd, back = transfer.back()](Values gradients) mutable {
                              back.take(lane_detail::tensors<A>(autograd, gradients));
                              return gradients;
                            });
}

template <PipelineDevice D, PipelineAutograd A>
void copy_node(A autograd, Transfer<D> transfer, std::vector<typename A::Value>& values) {
  using Values = std::vector<typename A::Value>;
  const typename D::StreamScope on(transfer.to().device, transfer.to().arrivals);
  lane_detail::through_node(autograd, values, lane_detail::received(autograd, transfer, values),
                            [autograd, back = transfer.back()](const Values& gradients) mutable {
                              return lane_detail::received(autograd, back, gradients);
                            });
}

template <PipelineDevice D, PipelineAutograd A>
void in_node(A autograd, Transfer<D> transfer, std::vector<typename A::Value>& values) {
  using Values = std::vector<typename A::Value>;
  const typename D::StreamScope on(transfer.to().device, transfer.to().compute);
  transfer.take(lane_detail::tensors<A>(autograd, values));
  lane_detail::through_node(autograd, values, lane_detail::without_graph(autograd, values),
                            [back = transfer.back()](Values gradients) mutable {
                              back.send();
                              return gradients;
                            });
}

}  // namespace ferry
