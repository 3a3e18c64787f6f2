#include "real/log/log_streams.h"

#include "real/cpu/counting_allocator.h"
#include "real/cpu/stream.h"

namespace ferry::real {
namespace {

class BlockLog final : public MemoryObserver {
 public:
  void allocated(const void* block, std::int64_t bytes) noexcept override {
    if (const auto log = StreamLog::active()) {
      log->allocated(address(block), bytes, log->stream(stream_key(CpuStream())));
    }
  }
  void freed(const void* block) noexcept override {
    if (const auto log = StreamLog::active()) log->freed(address(block));
  }

 private:
  static std::uint64_t address(const void* block) { return reinterpret_cast<std::uint64_t>(block); }
};

}  // namespace

LogStreams::LogStreams(const std::filesystem::path& file, c10::Device device)
    : log_(std::make_shared<StreamLog>(file)), scope_(log_), ops_(log_, device) {
  static BlockLog blocks;
  if (!device.is_cpu()) return;
  allocator_ = CountingAllocator::instance().install();
  CountingAllocator::instance().observe(&blocks);
}

LogStreams::~LogStreams() {
  if (allocator_ == nullptr) return;
  CountingAllocator::instance().observe(nullptr);
  CountingAllocator::restore(allocator_);
}

}  // namespace ferry::real
