// The disk store against a model that remembers what every slot holds.
//
// Random allocations, writes, reads and frees, each of them failing now and then at a system call:
// whatever was written and not freed comes back, a failed call changes nothing but the checksum of
// the slot it wrote, and slots and bytes in use are those of the model throughout.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "real/disk/disk_store.h"
#include "real/disk/extents.h"
#include "tests/real/disk/bent_io.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kLimitBytes = 16 * kBlockBytes;

struct Action {
  int kind = 0;  // 0 to 2: allocate and write; 3: write again; 4: read; 5: free
  int which = 0;
  int bytes = 1;
  int shift = 0;
  int fault = 0;  // 1: no space in allocate; 2: EIO in a write; 3: EIO in a read; more: none
};

rc::Gen<Action> any_action() {
  const auto full = [](int least, int end) {
    return rc::gen::resize(100, rc::gen::inRange(least, end));
  };
  return rc::gen::build<Action>(
      rc::gen::set(&Action::kind, full(0, 6)), rc::gen::set(&Action::which, full(0, 100)),
      rc::gen::set(&Action::bytes, full(1, 20'000)),
      rc::gen::set(&Action::shift, rc::gen::map(full(0, 3), [](int i) { return i * 64; })),
      rc::gen::set(&Action::fault, full(0, 12)));
}

struct Live {
  DiskSlot slot;
  std::uint64_t seed = 0;
};

class Walk {
 public:
  Walk(bool direct, bool holes) {
    io_->directs = direct;
    io_->holes = holes;
    store_ = std::make_unique<DiskStore>(
        DiskOptions{.directory = scratch_.path(), .bytes_max = kLimitBytes}, io_);
  }

  void step(const Action& action) {
    io_->next_preallocations({action.fault == 1 ? failing(ENOSPC) : kAsIs});
    io_->next_writes({action.fault == 2 ? failing(EIO) : kAsIs});
    io_->next_reads({action.fault == 3 ? failing(EIO) : kAsIs});
    if (action.kind <= 2) {
      allocate(action);
    } else if (!live_.empty()) {
      const auto which = static_cast<std::size_t>(action.which) % live_.size();
      if (action.kind == 3) write(live_[which], action);
      if (action.kind == 4) read(live_[which], action);
      if (action.kind == 5) {
        store_->free(live_[which].slot);
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    std::int64_t in_use = 0;
    for (const Live& live : live_) in_use += whole_blocks(live.slot.bytes);
    RC_ASSERT(store_->usage().slots == static_cast<std::int64_t>(live_.size()));
    RC_ASSERT(store_->usage().in_use_bytes == in_use);
    RC_ASSERT(store_->usage().claimed_bytes <= kLimitBytes);
  }

  void finish() {
    step({.kind = 6, .fault = 12});
    for (Live& live : live_) {
      if (live.slot.checksum) read(live, {.fault = 12});
      store_->free(live.slot);
    }
    RC_ASSERT(store_->usage().claimed_bytes == 0);
    RC_ASSERT(store_->usage().file_bytes == 0);
    RC_ASSERT(store_->usage().failed_returns == 0);
  }

 private:
  void allocate(const Action& action) {
    const DiskUsage usage = store_->usage();
    try {
      live_.push_back({store_->allocate(action.bytes), 0});
    } catch (const DiskFull&) {
      // The file's length may be the limit's measure: no gap need be large enough.
      const std::int64_t used = usage.punches_holes ? usage.in_use_bytes : usage.file_bytes;
      RC_ASSERT(action.fault == 1 || used + whole_blocks(action.bytes) > kLimitBytes);
      return;
    }
    RC_ASSERT(action.fault != 1);
    write(live_.back(), action);
  }

  void write(Live& live, const Action& action) {
    const std::uint64_t seed = ++seed_;
    Memory from(live.slot.bytes, action.shift, seed);
    bool failed = false;
    try {
      store_->write(live.slot, from.data());
    } catch (const DiskError&) {
      failed = true;
    }
    RC_ASSERT(failed == (action.fault == 2));
    RC_ASSERT(live.slot.checksum.has_value() == !failed);
    live.seed = seed;
  }

  void read(Live& live, const Action& action) {
    if (!live.slot.checksum) return;
    Memory expected(live.slot.bytes, 0, live.seed);
    Memory to(live.slot.bytes, action.shift);
    bool failed = false;
    try {
      store_->read(live.slot, to.data());
    } catch (const DiskError&) {
      failed = true;
    }
    RC_ASSERT(failed == (action.fault == 3));
    const bool same = failed || expected == to;
    RC_ASSERT(same);
  }

  ScratchDirectory scratch_;
  std::shared_ptr<BentIo> io_ = std::make_shared<BentIo>();
  std::unique_ptr<DiskStore> store_;
  std::vector<Live> live_;
  std::uint64_t seed_ = 0;
};

RC_GTEST_PROP(DiskStoreProp, KeepsWhatItWasGiven, (bool direct, bool holes)) {
  Walk walk(direct, holes);
  const auto actions = *rc::gen::container<std::vector<Action>>(any_action());
  for (const Action& action : actions) walk.step(action);
  walk.finish();
}

}  // namespace
}  // namespace ferry::real
