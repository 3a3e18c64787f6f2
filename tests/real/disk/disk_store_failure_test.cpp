// The disk store on bad days: each failure names its cause, and afterwards the store works and its
// counts are right.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "real/disk/disk_store.h"
#include "tests/real/disk/bent_io.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kBytes = 100'000;  // 25 blocks, the last not full

// What `call` threw as an Error; empty where it threw none.
template <class Error, class Call>
std::string thrown(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

testing::AssertionResult says(const std::string& what, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (what.find(part) == std::string::npos) {
      return testing::AssertionFailure() << '"' << what << "\" does not say " << part;
    }
  }
  return testing::AssertionSuccess();
}

// Both ways of I/O: around the page cache and through it.
class DiskFailure : public testing::TestWithParam<bool> {
 protected:
  DiskFailure() {
    io_->directs = GetParam();
    store_ = std::make_unique<DiskStore>(DiskOptions{.directory = scratch_.path()}, io_);
    slot_ = store_->allocate(kBytes);
  }

  void write() { store_->write(slot_, from_.data()); }
  void read() { store_->read(slot_, to_.data()); }
  std::string here() const { return "in " + scratch_.path().string(); }

  // One slot is in use, after so many writes and reads; then both work, and another slot as well.
  void expect_works(std::int64_t writes, std::int64_t reads) {
    EXPECT_EQ(store_->usage().slots, 1);
    EXPECT_EQ(store_->usage().in_use_bytes, 25 * 4096);
    EXPECT_EQ(store_->usage().writes, writes);
    EXPECT_EQ(store_->usage().reads, reads);
    DiskSlot other = store_->allocate(kBytes);
    for (DiskSlot* const slot : {&slot_, &other}) {
      Memory to(kBytes);
      store_->write(*slot, from_.data());
      store_->read(*slot, to.data());
      EXPECT_TRUE(from_ == to);
    }
    store_->free(other);
    store_->free(slot_);
    EXPECT_EQ(store_->usage().in_use_bytes, 0);
    EXPECT_EQ(store_->usage().file_bytes, 0);
  }

  ScratchDirectory scratch_;
  std::shared_ptr<BentIo> io_ = std::make_shared<BentIo>();
  std::unique_ptr<DiskStore> store_;
  DiskSlot slot_;
  Memory from_{kBytes, 64, 7};
  Memory to_{kBytes, 64};
};

INSTANTIATE_TEST_SUITE_P(Ways, DiskFailure, testing::Bool(),
                         [](const auto& info) { return info.param ? "direct" : "cached"; });

TEST_P(DiskFailure, InterruptedAndShortTransfersAreContinued) {
  const std::deque<Bend> bends = {failing(EINTR), shortened(4096),       failing(EINTR),
                                  failing(EINTR), shortened(8192 + 100), shortened(4096 * 3)};
  io_->next_writes(bends);
  write();
  io_->next_reads(bends);
  read();
  EXPECT_TRUE(from_ == to_);
  io_->next_preallocations({failing(EINTR)});
  expect_works(1, 1);
}

TEST_P(DiskFailure, AWriteThatFailsLeavesNoChecksum) {
  write();
  io_->next_writes({shortened(8192), failing(EIO)});
  EXPECT_TRUE(says(thrown<DiskError>([&] { write(); }),
                   {here(), "write of", "at offset 0", "failed after 8192", "errno 5"}));
  EXPECT_FALSE(slot_.checksum);
  EXPECT_THROW(read(), std::logic_error);
  expect_works(1, 0);
}

TEST_P(DiskFailure, ADiskThatFillsInTheMiddleOfAWriteIsFull) {
  for (const int error : {ENOSPC, EDQUOT}) {
    io_->next_writes({shortened(8192), failing(error)});
    EXPECT_TRUE(says(
        thrown<DiskFull>([&] { write(); }),
        {here(), "failed after 8192", "100000 bytes asked", "102400 in use", "free on the file"}));
    EXPECT_FALSE(slot_.checksum);
  }
  expect_works(0, 0);
}

TEST_P(DiskFailure, ADiskThatIsFullGivesNoSlot) {
  io_->next_preallocations({{.error = ENOSPC, .most = 1 << 20}});
  try {
    store_->allocate(8 << 20);
    FAIL() << "allocated";
  } catch (const DiskFull& full) {
    EXPECT_EQ(full.asked_bytes(), 8 << 20);
    EXPECT_EQ(full.in_use_bytes(), 25 * 4096);
    EXPECT_GT(full.free_bytes(), 0);
  }
  struct stat status = {};
  ASSERT_EQ(::fstat(io_->file, &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 19) << "the part that was claimed";
  EXPECT_EQ(store_->usage().in_use_peak_bytes, 25 * 4096);
  expect_works(0, 0);
}

TEST_P(DiskFailure, AnAllocationThatFailsOtherwiseIsNoFullDisk) {
  io_->next_preallocations({failing(EIO)});
  try {
    store_->allocate(5000);
    FAIL() << "allocated";
  } catch (const DiskFull& full) {
    FAIL() << full.what();
  } catch (const DiskError& error) {
    EXPECT_TRUE(
        says(error.what(), {here(), "allocation of 8192 bytes at offset 102400", "errno 5"}));
  }
  expect_works(0, 0);
}

// Files of this process may grow so long and no longer, while this lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileLimit() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    ::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

// The kernel's own word, with nothing bent.
TEST_P(DiskFailure, ALimitOfTheSystemsIsAFullDisk) {
  {
    const FileLimit limit(1 << 20);
    EXPECT_TRUE(says(thrown<DiskFull>([&] { store_->allocate(2 << 20); }), {here(), "errno 27"}));
  }
  expect_works(0, 0);
}

TEST_P(DiskFailure, AReadThatFailsMayBeTriedAgain) {
  write();
  io_->next_reads({shortened(4096), failing(EIO)});
  EXPECT_TRUE(says(thrown<DiskError>([&] { read(); }),
                   {here(), "read of", "at offset 0", "failed after 4096", "errno 5"}));
  read();
  EXPECT_TRUE(from_ == to_);
  expect_works(1, 1);
}

TEST_P(DiskFailure, AFileThatEndsEarlyIsAnError) {
  write();
  ASSERT_EQ(::ftruncate(io_->file, 50'000), 0);
  EXPECT_TRUE(says(thrown<DiskError>([&] { read(); }), {here(), "ended early after 50000 bytes"}));
  expect_works(1, 0);
}

TEST_P(DiskFailure, ADeviceThatTakesNothingIsAnError) {
  io_->next_writes({shortened(8192), shortened(0), shortened(0)});
  EXPECT_TRUE(says(thrown<DiskError>([&] { write(); }), {here(), "made no progress after 8192"}));
  expect_works(0, 0);
}

TEST_P(DiskFailure, AFlippedBitIsFound) {
  write();
  const std::string sum = [&] {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(*slot_.checksum));
    return std::string(text);
  }();
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{50'000}, kBytes - 1}) {
    Memory block(4096);
    const std::int64_t start = slot_.offset + at / 4096 * 4096;
    ASSERT_EQ(::pread(io_->file, block.data(), 4096, start), 4096);
    const auto flip_and_put = [&] {
      block.data()[at % 4096] ^= 0x10;
      ASSERT_EQ(::pwrite(io_->file, block.data(), 4096, start), 4096);
    };
    flip_and_put();
    EXPECT_TRUE(
        says(thrown<DiskError>([&] { read(); }),
             {here(), "corrupt", "100000 bytes at offset 0", "checksum " + sum, "read with"}))
        << at;
    flip_and_put();
    read();  // as it was
  }
  EXPECT_EQ(store_->usage().corrupt_reads, 3);
  expect_works(1, 3);
}

TEST_P(DiskFailure, SpaceThatIsNotGivenBackIsCounted) {
  io_->next_punches({failing(EIO)});
  store_->free(slot_);
  EXPECT_EQ(store_->usage().failed_returns, 1);
  slot_ = store_->allocate(kBytes);
  expect_works(0, 0);
}

TEST(DiskFailureCached, AWriteBackThatFailsIsAFailedWrite) {
  ScratchDirectory scratch;
  const auto io = std::make_shared<BentIo>();
  io->directs = false;
  DiskStore store({.directory = scratch.path()}, io);
  Memory from(5000, 0, 1);
  DiskSlot slot = store.allocate(5000);
  io->next_write_backs({failing(EIO)});
  EXPECT_TRUE(says(thrown<DiskError>([&] { store.write(slot, from.data()); }), {"write-back"}));
  EXPECT_FALSE(slot.checksum);
  io->next_write_backs({failing(ENOSPC)});
  EXPECT_THROW(store.write(slot, from.data()), DiskFull);
  io->next_write_backs({failing(EINTR), failing(ENOSYS)});  // a file system without it is none
  store.write(slot, from.data());
  EXPECT_EQ(store.usage().writes, 1);
}

TEST(DiskFailureCutting, AnEndThatIsNotCutOffStaysClaimed) {
  ScratchDirectory scratch;
  const auto io = std::make_shared<BentIo>();
  io->holes = false;
  DiskStore store({.directory = scratch.path(), .bytes_max = 8192}, io);
  const DiskSlot slot = store.allocate(8192);
  io->next_truncations({failing(EIO)});
  store.free(slot);
  EXPECT_EQ(store.usage().failed_returns, 1);
  EXPECT_EQ(store.usage().claimed_bytes, 8192);
  store.free(store.allocate(8192));
  EXPECT_EQ(store.usage().claimed_bytes, 0);
}

TEST(DiskFailureOpening, SaysWhy) {
  ScratchDirectory scratch;
  const auto open = [&](const std::filesystem::path& directory,
                        const std::shared_ptr<BentIo>& io = nullptr) {
    return thrown<DiskError>([&] { DiskStore({.directory = directory}, io); });
  };
  const std::filesystem::path none = scratch.path() / "none";
  EXPECT_TRUE(says(open(none), {"disk store in " + none.string(), "create", "errno 2"}));
  EXPECT_TRUE(says(open(""), {"create", "errno 2"}));
  EXPECT_TRUE(says(open("/dev/null"), {"/dev/null", "errno 20"}));
  for (const int error : {EACCES, EROFS, EMFILE}) {
    const auto io = std::make_shared<BentIo>();
    io->next_opens({failing(error)});
    EXPECT_TRUE(says(open(scratch.path(), io), {"errno " + std::to_string(error)}));
  }
  const auto io = std::make_shared<BentIo>();
  io->unnamed = false;
  io->next_unlinks({failing(EIO)});
  EXPECT_TRUE(says(open(scratch.path(), io), {"unlink", "errno 5"}));
  EXPECT_EQ(io->file, -1) << "closed";
}

TEST(DiskFailureOpening, ADirectoryThatIsNotWritable) {
  ScratchDirectory scratch;
  std::filesystem::permissions(
      scratch.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const uid_t user = ::geteuid();
  // The superuser may write anywhere: be somebody else for a moment.
  if (user == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const std::string what = thrown<DiskError>([&] { DiskStore({.directory = scratch.path()}); });
  if (user == 0) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_TRUE(says(what, {scratch.path().string(), "errno 13"}));
}

TEST(DiskFailureOpening, AFailedProbeClosesTheFile) {
  ScratchDirectory scratch;
  const auto full = std::make_shared<BentIo>();
  full->next_preallocations({failing(ENOSPC)});
  EXPECT_THROW(DiskStore({.directory = scratch.path()}, full), DiskFull);
  EXPECT_EQ(full->file, -1);
  const auto broken = std::make_shared<BentIo>();
  broken->next_writes({failing(EIO)});
  EXPECT_THROW(DiskStore({.directory = scratch.path()}, broken), DiskError);
  EXPECT_EQ(broken->file, -1);
}

}  // namespace
}  // namespace ferry::real
