// The disk store on a good day, on every kind of file system that it adapts to.
#include "real/disk/disk_store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/real/disk/bent_io.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

struct Kind {
  const char* name;
  void (*bend)(BentIo&);
  bool keep_freed = false;
};

const Kind kKinds[] = {
    {"as_it_is", [](BentIo&) {}},
    {"no_direct", [](BentIo& io) { io.directs = false; }},
    {"direct_refused_late", [](BentIo& io) { io.direct_writes = false; }},
    {"named", [](BentIo& io) { io.unnamed = false; }},
    {"no_preallocation", [](BentIo& io) { io.preallocates = false; }},
    {"no_holes", [](BentIo& io) { io.holes = false; }},
    {"poorest", [](BentIo& io) { io.unnamed = io.directs = io.preallocates = io.holes = false; }},
    {"keeping", [](BentIo&) {}, true},
};

class DiskStoreOn : public testing::TestWithParam<Kind> {
 protected:
  DiskStoreOn() { GetParam().bend(*io_); }

  DiskOptions options(std::int64_t bytes_max = kUnlimited) const {
    return {
        .directory = scratch_.path(), .bytes_max = bytes_max, .keep_freed = GetParam().keep_freed};
  }
  std::int64_t blocks_bytes() const {
    struct stat status = {};
    EXPECT_EQ(::fstat(io_->file, &status), 0);
    return status.st_blocks * 512;
  }

  ScratchDirectory scratch_;
  std::shared_ptr<BentIo> io_ = std::make_shared<BentIo>();
};

INSTANTIATE_TEST_SUITE_P(Kinds, DiskStoreOn, testing::ValuesIn(kKinds),
                         [](const auto& info) { return info.param.name; });

TEST_P(DiskStoreOn, WhatIsReadIsWhatWasWritten) {
  DiskStore store(options(), io_);
  for (const std::int64_t bytes :
       {std::int64_t{1}, std::int64_t{4095}, std::int64_t{4096}, std::int64_t{4097},
        std::int64_t{100'000}, 2 * kMebibyte, 2 * kMebibyte + 1, 5 * kMebibyte - 777}) {
    for (const std::int64_t shift : {0, 64, 512, 1}) {
      Memory from(bytes, shift, static_cast<std::uint64_t>(bytes + shift));
      Memory to(bytes, 512 - shift);
      DiskSlot slot = store.allocate(bytes);
      store.write(slot, from.data());
      store.read(slot, to.data());
      EXPECT_TRUE(from == to) << bytes << " bytes, shifted by " << shift;
      store.free(slot);
    }
  }
  EXPECT_EQ(store.usage().slots, 0);
}

TEST_P(DiskStoreOn, SlotsDoNotTouchEachOther) {
  DiskStore store(options(), io_);
  std::vector<DiskSlot> slots;
  std::vector<Memory> contents;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto bytes = static_cast<std::int64_t>(3000 * i + 1);
    contents.emplace_back(bytes, 64, i);
    slots.push_back(store.allocate(bytes));
    store.write(slots.back(), contents.back().data());
  }
  for (std::size_t i = 0; i < slots.size(); i += 2) store.free(slots[i]);
  for (std::size_t i = 0; i < slots.size(); i += 2) {  // in the gaps of those freed
    contents[i] = Memory(slots[i].bytes, 0, 100 + i);
    slots[i] = store.allocate(slots[i].bytes);
    store.write(slots[i], contents[i].data());
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Memory to(slots[i].bytes);
    store.read(slots[i], to.data());
    EXPECT_TRUE(contents[i] == to) << i;
  }
}

TEST_P(DiskStoreOn, ASlotIsWrittenAgain) {
  DiskStore store(options(), io_);
  DiskSlot slot = store.allocate(10'000);
  Memory first(10'000, 0, 1);
  Memory second(10'000, 0, 2);
  Memory to(10'000);
  store.write(slot, first.data());
  store.write(slot, second.data());
  store.read(slot, to.data());
  EXPECT_TRUE(second == to);
}

TEST_P(DiskStoreOn, NothingIsToBeSeenInTheDirectory) {
  DiskStore store(options(), io_);
  DiskSlot slot = store.allocate(10'000);
  Memory from(10'000, 0, 1);
  store.write(slot, from.data());
  EXPECT_TRUE(scratch_.empty());
}

TEST_P(DiskStoreOn, GoesOnWithoutItsDirectory) {
  DiskStore store(options(), io_);
  Memory from(10'000, 0, 1);
  DiskSlot before = store.allocate(10'000);
  store.write(before, from.data());
  std::filesystem::remove(scratch_.path());
  DiskSlot after = store.allocate(10'000);
  store.write(after, from.data());
  for (const DiskSlot& slot : {before, after}) {
    Memory to(10'000);
    store.read(slot, to.data());
    EXPECT_TRUE(from == to);
    store.free(slot);
  }
}

TEST_P(DiskStoreOn, ACrashLeavesNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    DiskStore store(options(), io_);
    Memory from(kMebibyte, 0, 1);
    DiskSlot slot = store.allocate(kMebibyte);
    store.write(slot, from.data());
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(scratch_.empty());
}

TEST_P(DiskStoreOn, FreedSpaceIsTheFileSystemsUnlessKept) {
  DiskStore store(options(), io_);
  const auto fill = [&] {
    Memory from(kMebibyte, 0, 1);
    std::vector<DiskSlot> slots;
    for (int i = 0; i < 4; ++i) {
      slots.push_back(store.allocate(kMebibyte));
      store.write(slots.back(), from.data());
    }
    return slots;
  };
  std::vector<DiskSlot> slots = fill();
  EXPECT_GE(blocks_bytes(), 4 * kMebibyte);
  EXPECT_EQ(store.usage().claimed_bytes, 4 * kMebibyte);

  store.free(slots[1]);
  const bool any = store.usage().punches_holes && !GetParam().keep_freed;
  EXPECT_EQ(store.usage().claimed_bytes, (any ? 3 : 4) * kMebibyte);
  if (any) {
    EXPECT_LT(blocks_bytes(), 3 * kMebibyte + kMebibyte / 2);
  }

  for (const int i : {0, 2, 3}) store.free(slots[static_cast<std::size_t>(i)]);
  const std::int64_t left = GetParam().keep_freed ? 4 * kMebibyte : 0;
  EXPECT_EQ(store.usage().claimed_bytes, left);
  EXPECT_GE(blocks_bytes(), left);
  EXPECT_LT(blocks_bytes(), left + kMebibyte / 2);

  fill();  // no more than the first time
  EXPECT_EQ(store.usage().claimed_bytes, 4 * kMebibyte);
  EXPECT_EQ(store.usage().failed_returns, 0);
}

// What was offloaded to the disk should not be in the page cache.
TEST_P(DiskStoreOn, ThePageCacheHoldsNothing) {
  DiskStore store(options(), io_);
  const std::int64_t bytes = 4 * kMebibyte;
  Memory memory(bytes, 64, 1);
  DiskSlot slot = store.allocate(bytes);
  const auto resident = [&] {
    void* const map =
        ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ, MAP_SHARED, io_->file, 0);
    EXPECT_NE(map, MAP_FAILED);
    std::vector<unsigned char> pages(static_cast<std::size_t>(bytes / 4096));
    EXPECT_EQ(::mincore(map, static_cast<std::size_t>(bytes), pages.data()), 0);
    ::munmap(map, static_cast<std::size_t>(bytes));
    return std::count_if(pages.begin(), pages.end(), [](int page) { return (page & 1) != 0; });
  };
  store.write(slot, memory.data());
  EXPECT_EQ(resident(), 0) << "after a write";
  store.read(slot, memory.data());
  EXPECT_EQ(resident(), 0) << "after a read";
}

TEST_P(DiskStoreOn, TheLimitHolds) {
  DiskStore store(options(3 * 4096), io_);
  DiskSlot small = store.allocate(1);
  DiskSlot large = store.allocate(8192);
  try {
    store.allocate(1);
    FAIL() << "beyond the limit";
  } catch (const DiskFull& full) {
    EXPECT_EQ(full.asked_bytes(), 1);
    EXPECT_EQ(full.in_use_bytes(), 3 * 4096);
    EXPECT_EQ(full.free_bytes(), 0);
    for (const char* part : {"limit of 12288", "1 bytes asked", "12288 in use", "0 left"}) {
      EXPECT_NE(std::strstr(full.what(), part), nullptr) << full.what();
    }
    EXPECT_NE(std::strstr(full.what(), scratch_.path().c_str()), nullptr) << full.what();
  }
  EXPECT_THROW(store.allocate(kUnlimited), DiskFull);
  EXPECT_EQ(store.usage().in_use_bytes, 3 * 4096);
  store.free(large);
  EXPECT_THROW(store.allocate(8193), DiskFull);
  large = store.allocate(8192);
  Memory from(8192, 0, 1);
  store.write(large, from.data());
  EXPECT_EQ(store.usage().slots, 2);
  EXPECT_EQ(store.usage().in_use_peak_bytes, 3 * 4096);
  store.free(small);
}

TEST_P(DiskStoreOn, ThreadsShareIt) {
  DiskStore store(options(), io_);
  constexpr int kThreads = 4;
  constexpr int kRounds = 15;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&store, t] {
      for (int round = 0; round < kRounds; ++round) {
        std::vector<DiskSlot> slots;
        std::vector<Memory> contents;
        for (int i = 0; i < 4; ++i) {
          const std::int64_t bytes = 1 + 7919 * ((t + 3 * round + 5 * i) % 11);
          contents.emplace_back(bytes, 64 * i, static_cast<std::uint64_t>(t * 100 + round));
          slots.push_back(store.allocate(bytes));
          store.write(slots.back(), contents.back().data());
        }
        for (std::size_t i = 0; i < slots.size(); ++i) {
          Memory to(slots[i].bytes);
          store.read(slots[i], to.data());
          EXPECT_TRUE(contents[i] == to);
          store.free(slots[i]);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const DiskUsage usage = store.usage();
  EXPECT_EQ(usage.slots, 0);
  EXPECT_EQ(usage.in_use_bytes, 0);
  EXPECT_EQ(usage.writes, kThreads * kRounds * 4);
  EXPECT_EQ(usage.reads, kThreads * kRounds * 4);
  EXPECT_EQ(usage.written_bytes, usage.read_bytes);
}

class DiskStoreTest : public testing::Test {
 protected:
  ScratchDirectory scratch_;
  std::shared_ptr<BentIo> io_ = std::make_shared<BentIo>();
  DiskStore store_{{.directory = scratch_.path()}, io_};
};

TEST_F(DiskStoreTest, SaysWhatItsFileSystemCan) {
  const DiskUsage usage = store_.usage();
  EXPECT_EQ(store_.buffer_alignment() > 1, usage.direct);
  EXPECT_EQ(store_.directory(), scratch_.path());
  BentIo* const poor = new BentIo;
  poor->directs = poor->preallocates = poor->holes = false;
  DiskStore store({.directory = scratch_.path()}, std::shared_ptr<DiskIo>(poor));
  EXPECT_FALSE(store.usage().direct);
  EXPECT_FALSE(store.usage().preallocates);
  EXPECT_FALSE(store.usage().punches_holes);
  EXPECT_EQ(store.buffer_alignment(), 1);
}

TEST_F(DiskStoreTest, AnAlignedPointerIsUsedInPlace) {
  Memory memory(4 * 4096 + 1, 0, 1);
  DiskSlot slot = store_.allocate(4 * 4096 + 1);
  io_->pointers();
  store_.write(slot, memory.data());
  store_.read(slot, memory.data());
  const std::vector<const void*> used = io_->pointers();
  EXPECT_EQ(std::count(used.begin(), used.end(), memory.data()), 2);
}

TEST_F(DiskStoreTest, CountsWhatItDid) {
  Memory memory(5000, 0, 1);
  DiskSlot slot = store_.allocate(5000);
  EXPECT_EQ(store_.usage().in_use_bytes, 8192);
  store_.write(slot, memory.data());
  store_.read(slot, memory.data());
  store_.read(slot, memory.data());
  store_.free(slot);
  const DiskUsage usage = store_.usage();
  EXPECT_EQ(usage.writes, 1);
  EXPECT_EQ(usage.written_bytes, 5000);
  EXPECT_EQ(usage.reads, 2);
  EXPECT_EQ(usage.read_bytes, 10'000);
  EXPECT_EQ(usage.in_use_bytes, 0);
  EXPECT_EQ(usage.in_use_peak_bytes, 8192);
}

TEST_F(DiskStoreTest, NoBytesNeedNoPlace) {
  DiskSlot slot = store_.allocate(0);
  store_.write(slot, nullptr);
  store_.read(slot, nullptr);
  store_.free(slot);
  EXPECT_EQ(store_.usage().in_use_peak_bytes, 0);
}

TEST_F(DiskStoreTest, MisuseIsNoDiskError) {
  EXPECT_THROW(store_.allocate(-1), std::invalid_argument);
  EXPECT_THROW(DiskStore({.directory = scratch_.path(), .bytes_max = -1}), std::invalid_argument);
  Memory memory(100, 0, 1);
  DiskSlot slot = store_.allocate(100);
  EXPECT_THROW(store_.read(slot, memory.data()), std::logic_error) << "never written";
  store_.write(slot, memory.data());
  store_.free(slot);
  EXPECT_THROW(store_.read(slot, memory.data()), std::logic_error) << "freed";
  EXPECT_THROW(store_.write(slot, memory.data()), std::logic_error) << "freed";
}

TEST(DiskStoreDeathTest, FreeingTwiceEndsTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  // No scratch directory: nobody would remove the dead one's.
  EXPECT_DEATH(
      {
        DiskStore store({.directory = std::filesystem::temp_directory_path()});
        const DiskSlot slot = store.allocate(100);
        store.free(slot);
        store.free(slot);
      },
      "no slot of 100 bytes at offset 0");
}

}  // namespace
}  // namespace ferry::real
