#include "sim/run/training/host_state.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "formats/layout.h"

namespace ferry::sim {
namespace {

// The defaults of torch_ferry.optimizer.
constexpr std::int64_t kPieceBytes = std::int64_t{64} << 20;
constexpr std::int64_t kLeastBytes = std::int64_t{64} << 10;
constexpr std::int64_t kAlignedBytes = 512;

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignedBytes - 1) / kAlignedBytes * kAlignedBytes;
}

}  // namespace

Tensor part_of(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  const std::int64_t first = tensor->layout.extent().begin;
  const Layout layout = contiguous_layout(DType::kU8, {end - begin});
  const auto window = std::make_shared<const Window>(Window{layout, {first + begin, first + end}});
  return make_tensor(tensor->storage, {window, 0}, tensor->version);
}

HostState::HostState(Machine& machine, Foreach& foreach, std::size_t globals)
    : machine_(machine),
      foreach_(foreach),
      pieces_(globals),
      wards_(StateDevice(machine, 0), WardOptions()) {}

std::vector<HostState::Piece>& HostState::pieces(std::size_t global, std::int64_t bytes) {
  std::vector<Piece>& pieces = pieces_[global];
  if (!pieces.empty()) return pieces;
  for (std::int64_t begin = 0; begin < bytes; begin += kPieceBytes) {
    pieces.push_back({.begin = begin, .end = std::min(begin + kPieceBytes, bytes), .ward = {}});
  }
  return pieces;
}

TensorList HostState::take(Piece& piece, std::size_t tensors) {
  if (!piece.ward) return piece.kept;
  const Storage storage = wards_.take(*piece.ward);
  const std::int64_t bytes = piece.end - piece.begin;
  const Layout all = contiguous_layout(DType::kU8, {storage->bytes});
  const auto window = std::make_shared<const Window>(Window{all, {0, storage->bytes}});
  const Tensor whole = make_tensor(storage, {window, 0}, machine_.new_version());
  TensorList state;
  for (std::size_t i = 0; i < tensors; ++i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * aligned(bytes);
    state.push_back(part_of(whole, begin, begin + bytes));
  }
  return state;
}

void HostState::put_back(Piece& piece) {
  if (piece.ward) wards_.written(*piece.ward);
}

void HostState::store(Piece& piece, TensorList&& state) {
  const std::int64_t bytes = piece.end - piece.begin;
  const auto tensors = static_cast<std::int64_t>(state.size());
  if (tensors * bytes < kLeastBytes) {
    piece.kept = std::move(state);
    return;
  }
  const Tensor raw = foreach_.empty(tensors * aligned(bytes), MemoryKind::kOptimizer);
  std::int64_t begin = 0;
  for (const Tensor& each : state) {
    const TensorList from = {each}, to = {part_of(raw, begin, begin + bytes)};
    foreach_.launch("copy_", {&from}, {&to});
    begin += aligned(bytes);
  }
  piece.ward = wards_.add(raw->storage);
  wards_.written(*piece.ward);
  drop(state);
}

std::size_t HostState::kept_storages() const {
  std::size_t kept = 0;
  for (const std::vector<Piece>& pieces : pieces_) {
    for (const Piece& piece : pieces) kept += piece.kept.size() + (piece.count != nullptr);
  }
  return kept;
}

}  // namespace ferry::sim
