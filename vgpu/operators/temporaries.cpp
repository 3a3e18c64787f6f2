#include "vgpu/operators/temporaries.h"

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <bit>

#include "vgpu/operators/workspaces.h"

namespace ferry::vgpu {
namespace {

using Values = std::vector<c10::IValue>;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t rounded_up(std::int64_t a, std::int64_t to) { return divided_up(a, to) * to; }

std::int64_t power_of_two_within(std::int64_t number) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(number)));
}

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

// A reduction of rows, [rows, columns] to [columns], by several blocks of threads for each column.
// Reduce.cuh takes 32 * vector partial sums for each where one would do.
std::vector<std::int64_t> of_rows(std::int64_t rows, std::int64_t columns,
                                  std::int64_t element_bytes) {
  constexpr std::int64_t kThreads = 512;
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kValuesLeast = 16;
  constexpr std::int64_t kValuesMost = 256;
  std::int64_t vector = 4;  // columns that a thread sums
  while (columns % vector != 0) vector /= 2;
  const std::int64_t threads_most = kThreads / vector;
  const std::int64_t wide = std::min(power_of_two_within(columns / vector), threads_most);
  const std::int64_t high = std::min(power_of_two_within(rows), threads_most);
  std::int64_t width = std::min(wide, kWarp);
  const std::int64_t height = std::min(high, threads_most / width);
  width = std::min(wide, threads_most / height);

  // The rows go to the warps of a block, and what is then many for a thread to several blocks.
  if (rows < std::min(height * kValuesLeast, kValuesMost)) return {};
  const std::int64_t values = divided_up(rows, height);
  const auto* const card = at::cuda::getCurrentDeviceProperties();
  const std::int64_t blocks_at_once = static_cast<std::int64_t>(card->multiProcessorCount) *
                                      (card->maxThreadsPerMultiProcessor / (width * height));
  const std::int64_t blocks = divided_up(columns / vector, width);
  if (values < kValuesMost || blocks > blocks_at_once) return {};
  const std::int64_t each =
      std::max(std::min(divided_up(blocks_at_once, blocks), divided_up(values, kValuesLeast)),
               divided_up(values, kValuesMost));
  if (each == 1) return {};
  constexpr std::int64_t kSemaphore = 4;
  return {element_bytes * columns * each * width * vector, kSemaphore * blocks};
}

// Of a dense tensor, some of whose first dimensions are summed; of others it takes little.
std::vector<std::int64_t> of_sum(const at::Tensor& input, const at::Tensor& output) {
  const std::int64_t columns = output.numel();
  if (!input.is_contiguous() || columns < 2 || input.numel() <= columns) return {};
  std::int64_t kept = 1;
  for (std::int64_t dim = input.dim() - 1; dim >= 0 && kept < columns; --dim)
    kept *= input.size(dim);
  const bool keeps_the_last = output.size(-1) == input.size(-1) && input.size(-1) > 1;
  if (kept != columns || !keeps_the_last) return {};
  const std::int64_t bytes =
      is_half(input) ? 4 : static_cast<std::int64_t>(input.element_size());  // sums are single
  return of_rows(input.numel() / columns, columns, bytes);
}

// Indices are sorted; each run of equal ones is summed in parts of ten rows, of single precision.
std::vector<std::int64_t> of_embedding(const at::Tensor& gradient, const at::Tensor& indices,
                                       std::int64_t rows) {
  constexpr std::int64_t kUnsorted = 3072;  // at most so many are summed without sorting
  constexpr std::int64_t kRowsOfAPart = 10;
  constexpr std::int64_t kWarp = 32;
  constexpr int kLists = 6;  // of 64-bit numbers: sorted, their places, runs and parts
  const std::int64_t count = indices.numel();
  if (count <= kUnsorted) return {};
  const std::int64_t parts = count / kRowsOfAPart + std::min(count, rows);
  std::vector<std::int64_t> pieces(kLists, count * 8);
  pieces.push_back(parts * rounded_up(gradient.size(-1), kWarp) * 4);
  return pieces;
}

std::vector<std::int64_t> of_flash_backward(const at::Tensor& query, const at::Tensor& key) {
  const std::int64_t batch = query.size(0);
  const std::int64_t heads = query.size(1);
  const std::int64_t length = rounded_up(query.size(2), 128);
  const std::int64_t head = rounded_up(query.size(3), query.size(3) <= 128 ? 32 : 64);
  std::vector<std::int64_t> pieces = {batch * heads * length * 4,          // the softmax's sums
                                      batch * length * heads * head * 4};  // the query's gradient
  if (key.size(1) != heads) {  // one of the keys and values for each head of the query
    pieces.insert(pieces.end(), 2, batch * key.size(2) * heads * query.size(3) * 2);
  }
  return pieces;
}

}  // namespace

std::vector<std::int64_t> temporaries(const std::string& name, const Values& arguments,
                                      const Values& results) {
  if (!keeps_workspaces()) return {};
  if (name == "aten.sum" || name == "aten.mean") {
    return of_sum(arguments[0].toTensor(), results[0].toTensor());
  }
  if (name == "aten.embedding_dense_backward") {
    return of_embedding(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toInt());
  }
  if (name == "aten._scaled_dot_product_flash_attention_backward") {
    return of_flash_backward(arguments[1].toTensor(), arguments[2].toTensor());
  }
  return {};
}

Temporaries::Temporaries(const std::vector<std::int64_t>& bytes,
                         const c10::cuda::CUDAStream& stream) {
  for (const std::int64_t piece : bytes) {
    taken_.push_back(c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(
        static_cast<std::size_t>(piece), stream.stream()));
  }
}

Temporaries::~Temporaries() {
  for (auto piece = taken_.rbegin(); piece != taken_.rend(); ++piece) {
    c10::cuda::CUDACachingAllocator::raw_delete(*piece);
  }
}

}  // namespace ferry::vgpu
