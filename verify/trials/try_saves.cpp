#include "verify/trials/try_saves.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/offload/offloader.h"
#include "sim/choices/draws.h"
#include "verify/oracles/accounts.h"
#include "verify/programs/trial.h"
#include "verify/trials/odd_device.h"
#include "verify/trials/saves_world.h"
#include "verify/trials/script.h"

namespace ferry::verify {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

// A tensor that the program holds.
struct Own {
  sim::Tensor tensor;
  bool aliased = false;  // another version counter counts writes to its bytes
  bool exempt = false;
  bool elsewhere = false;  // its storage has changed since it was made exempt
  bool moved = false;  // its storage has other memory: once, as it might get the first one again
};

// A saved tensor, with its contents and state at the time of the save.
struct Save {
  std::unique_ptr<Saved<sim::Tensor>> saved;
  std::uint64_t contents = 0;
  sim::Version counter;
  std::uint64_t version = 0;
  std::weak_ptr<sim::StorageImpl> storage;
  std::uint64_t address = 0;
  bool kept = false;
  bool remembered = true;  // the offloader may have an entry for it

  bool is_written() const { return counter->value != version; }
  bool is_elsewhere() const {
    const sim::Storage now = storage.lock();
    return now && now->address != address;
  }
};

CoreOptions draw_life_options(Draws& draws) {
  CoreOptions options = draw_options(draws);
  draw_backward_window(draws, options);
  if (draws.one_in(2) && !options.offload.empty()) options.offload.resize(8);
  if (draws.one_in(4)) options.window_bytes = kAutomatic;
  if (draws.one_in(4)) options.prefetch_bytes = options.hold_bytes = kAutomatic;
  options.keep_when_full = draws.one_in(2);
  return options;
}

// Which kind of step is more frequent than the others.
enum class Leaning : std::uint8_t { kAll, kMemory, kParts, kRuns };

class Lifetime {
 public:
  Lifetime(std::uint64_t number, const Rules& rules);
  std::optional<Verdict> live();

 private:
  void take_step();
  void make();
  void pack();
  void pack(const sim::Tensor& tensor);
  void pack_alias();
  void change();
  void exempt(Own& own);
  void backward(int depth = 0);
  void unpack(std::size_t at);
  std::optional<sim::Tensor> unpacked(Save& save);
  void expect_source();
  bool has_parcels() const;
  bool remembers() const;
  void end();
  sim::Tensor part_of(const sim::Tensor& whole);
  std::int64_t draw_bytes();

  std::size_t any(std::size_t count) {
    return static_cast<std::size_t>(draws_.in(0, static_cast<int>(count)));
  }
  void complain(Oracle oracle, const std::string& what) {
    if (!verdict_) verdict_ = Verdict{oracle, what};
  }

  Draws draws_;
  CoreOptions options_;
  Odds odds_;
  const Leaning leaning_;
  const bool fails_;  // some wait of the host fails
  Accounts accounts_;
  SavesWorld world_;
  Script script_;
  Offloader<OddDevice, ScriptAutograd> offloader_;
  std::shared_ptr<Hooks<sim::Tensor>> hooks_;
  std::vector<Own> own_;
  std::vector<sim::Tensor> shrunk_;  // their storages were made smaller
  std::vector<Save> saves_;
  std::vector<std::pair<sim::Tensor, std::uint64_t>> escaped_;  // with their contents
  std::optional<Verdict> verdict_;
};

CoreOptions with_log(CoreOptions options, Accounts& accounts, Odds& odds) {
  options.log = [&](const Decision& decision) {
    odds.told_under_lock |= sim::locks().held > 0;
    accounts.decided(decision);
  };
  return options;
}

Lifetime::Lifetime(std::uint64_t number, const Rules& rules)
    : draws_(number),
      options_(draw_life_options(draws_)),
      leaning_(static_cast<Leaning>(draws_.in(0, 4))),
      fails_((odds_.host_computes = draws_.one_in(3)) && draws_.one_in(2)),
      accounts_(options_),
      world_(accounts_),
      script_(accounts_),
      offloader_(OddDevice(sim::SimDevice(world_.machine()), odds_), ScriptAutograd(script_),
                 with_log(options_, accounts_, odds_), rules),
      hooks_(accounts_.watch(offloader_.hooks())) {
  odds_.at_refusal = [this] { accounts_.host_refused(); };
  if (fails_) odds_.fails_in = draws_.in(0, 6);
}

std::optional<Verdict> Lifetime::live() {
  for (int steps = draws_.in(10, 28); steps > 0 && !verdict_; --steps) take_step();
  if (!verdict_) end();
  return verdict_;
}

void Lifetime::take_step() {
  const int step = draws_.in(0, 24);
  if (step < 4 || own_.empty()) {
    make();
  } else if (step < 11) {
    pack();
  } else if (step < 13 || (step < 15 && leaning_ == Leaning::kMemory)) {
    change();
  } else if (step < 19) {
    backward();
  } else if (step < 21) {
    own_.erase(own_.begin() + static_cast<std::ptrdiff_t>(any(own_.size())));
  } else if (step < 22) {
    if (!saves_.empty()) unpack(any(saves_.size()));
  } else if (step < 23 || leaning_ == Leaning::kRuns) {
    offloader_.begin_run();
    accounts_.begin_forward();
  } else if (!saves_.empty()) {
    saves_.erase(saves_.begin() + static_cast<std::ptrdiff_t>(any(saves_.size())));
  }
  if (!remembers() && !offloader_.empty()) {
    complain(Oracle::kLeak, "the offloader remembers tensors that it does not have");
  }
  if (draws_.one_in(4)) escaped_.clear();
  if (draws_.one_in(6)) shrunk_.clear();
  if (!odds_.host_computes && draws_.one_in(12)) world_.turn_to_other_stream();
}

// Returns a size around the limits from which tensors, or parts of them, move.
std::int64_t Lifetime::draw_bytes() {
  const std::int64_t least = options_.min_bytes;
  const std::array<std::int64_t, 10> sizes = {std::max<std::int64_t>(least - 1, 0),
                                              least,
                                              least + 1,
                                              5000,
                                              64 * 1024,
                                              65 * 1024,
                                              kMiB - 1,
                                              kMiB,
                                              2 * kMiB,
                                              5 * kMiB};
  if (leaning_ == Leaning::kParts) return sizes[7 + any(3)];
  return sizes[any(sizes.size())];
}

void Lifetime::make() {
  constexpr std::size_t kMost = 6;
  if (own_.size() == kMost) own_.erase(own_.begin());
  const bool elsewhere = draws_.one_in(12);
  own_.push_back({elsewhere ? world_.make_elsewhere(draw_bytes()) : world_.make(draw_bytes())});
  if (!elsewhere && draws_.one_in(8)) exempt(own_.back());
  if (draws_.one_in(2)) pack(own_.back().tensor);
}

sim::Tensor Lifetime::part_of(const sim::Tensor& whole) {
  const std::int64_t bytes = whole->storage->bytes;
  const std::array<std::int64_t, 7> begins = {0, 0, 100, 512, 1536, bytes / 4, bytes / 2};
  const std::int64_t begin = std::min(begins[any(begins.size())], bytes);
  const std::array<std::int64_t, 7> lengths = {
      bytes - begin, options_.min_bytes, 1024, 4000, bytes / 4, bytes / 2, bytes / 2 + 1};
  return world_.view(whole, begin, std::min(lengths[any(lengths.size())], bytes - begin));
}

void Lifetime::pack() {
  const sim::Tensor tensor = own_[any(own_.size())].tensor;
  const sim::Tensor part = draws_.one_in(2) ? part_of(tensor) : tensor;
  for (int times = draws_.one_in(4) ? 2 : 1; times > 0 && !verdict_; --times) pack(part);
}

void Lifetime::pack(const sim::Tensor& tensor) {
  const std::int64_t kept = offloader_.statistics().kept;
  Save save{.saved = nullptr,
            .contents = world_.contents(tensor),
            .counter = tensor->version,
            .version = tensor->version->value,
            .storage = tensor->storage,
            .address = tensor->storage->address};
  odds_.host_is_full = draws_.one_in(10);
  odds_.refused = false;
  odds_.failed = Step::kUser;
  std::string told;
  try {
    save.saved = hooks_->pack(tensor);
  } catch (const std::exception& error) {
    told = error.what();
  }
  std::string must;
  if (odds_.refused && !options_.keep_when_full) must = NoRoom().what();
  if (must.empty() && odds_.failed != Step::kUser) must = CopyFailed().what();
  odds_.host_is_full = false;
  if (told != must)
    return complain(Oracle::kError, "a pack raised \"" + told + "\", not \"" + must + "\"");
  if (odds_.failed == Step::kEvict) expect_source();
  if (!save.saved) return;
  save.kept = offloader_.statistics().kept > kept;
  const sim::StorageImpl& storage = *tensor->storage;
  save.remembered = storage.device == 0 && storage.bytes >= options_.min_bytes;
  saves_.push_back(std::move(save));
}

// The offloader knows the alias by its storage, if it has seen the storage.
void Lifetime::pack_alias() {
  Own& own = own_[any(own_.size())];
  if (own.exempt && own.elsewhere) return;
  own.aliased = true;
  pack(world_.alias(own.tensor));
}

void Lifetime::exempt(Own& own) {
  offloader_.exempt(own.tensor);
  world_.machine().set_kind(*own.tensor->storage, sim::MemoryKind::kParameter);
  own.exempt = true;
}

// Writes the tensor, gives it another storage, or gives its storage other memory.
void Lifetime::change() {
  const std::size_t at = any(own_.size());
  Own& own = own_[at];
  sim::StorageImpl& storage = *own.tensor->storage;
  if (storage.device != 0) return;
  const bool may_lose = !fails_ && storage.bytes > 0;
  switch (leaning_ == Leaning::kMemory ? draws_.in(2, 4) : draws_.in(0, 6)) {
    case 0:
      if (own.aliased) break;
      world_.write(own.tensor);
      break;
    case 1: {  // x.data = y
      own.tensor->storage = world_.make(storage.bytes)->storage;
      own.elsewhere = true;
      own.aliased = own.moved = false;
      if (own.exempt) {
        world_.machine().set_kind(*own.tensor->storage, sim::MemoryKind::kParameter);
        const bool asks = options_.offload.empty() && own.tensor->storage->bytes > 0 &&
                          own.tensor->storage->bytes >= options_.min_bytes;
        pack(own.tensor);
        own.elsewhere = !asks;
      }
      break;
    }
    case 2:
      if (!may_lose || std::exchange(own.moved, true)) break;
      world_.give_other_memory(storage);
      break;
    case 3:
      if (!may_lose) break;
      storage.bytes -= std::min(storage.bytes, options_.min_bytes + 1000);
      shrunk_.push_back(std::move(own.tensor));
      own_.erase(own_.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 4:
      exempt(own);
      break;
    default:
      pack_alias();
  }
}

void Lifetime::backward(int depth) {
  script_.task([&] {
    if (!own_.empty() && draws_.one_in(4)) pack();
    for (int nodes = draws_.in(1, 5); nodes > 0 && !verdict_ && !saves_.empty(); --nodes) {
      const std::size_t last = saves_.size() - 1;
      const std::size_t at = draws_.one_in(3) ? any(saves_.size()) : last;
      if (draws_.one_in(6)) {
        unpack(at);
      } else {
        script_.node([&] {
          unpack(at);
          if (draws_.one_in(3)) unpack(any(saves_.size()));
          if (depth == 0 && draws_.one_in(6)) backward(depth + 1);
        });
      }
      if (draws_.one_in(2) && at < saves_.size()) {
        saves_.erase(saves_.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  });
  while (depth == 0 && saves_.size() > 12) saves_.erase(saves_.begin());
}

void Lifetime::unpack(std::size_t at) {
  Save& save = saves_[at];
  // Another thread drops some tensor as soon as its storage has been found to exist.
  if (!own_.empty() && draws_.one_in(3)) {
    const auto mine = own_.begin() + static_cast<std::ptrdiff_t>(any(own_.size()));
    odds_.let_go = std::move(mine->tensor);
    own_.erase(mine);
  }
  std::optional<sim::Tensor> tensor = unpacked(save);
  if (!tensor && odds_.failed != Step::kUser && !verdict_) tensor = unpacked(save);  // second try
  odds_.let_go.reset();
  if (!tensor) return;
  const bool lost = save.kept && save.is_elsewhere();
  if (!lost && world_.contents(*tensor) != save.contents) {
    return complain(Oracle::kValue, "a saved tensor was unpacked with other contents");
  }
  if ((*tensor)->storage->device == 0) world_.read(*tensor);
  if (draws_.one_in(6)) escaped_.emplace_back(*tensor, world_.contents(*tensor));
}

// Returns nothing if the unpack failed.
std::optional<sim::Tensor> Lifetime::unpacked(Save& save) {
  odds_.failed = Step::kUser;
  const bool looks = options_.prefetch_bytes != 0 || options_.prefetch_tensors != kUnlimited;
  const bool asks = !save.kept || (looks && has_parcels());
  const std::int64_t asked = script_.asked();
  try {
    sim::Tensor tensor = save.saved->unpack();
    if (!asks && script_.asked() != asked) {
      complain(Oracle::kAccounts,
               "a kept tensor requests an unused callback at the end of the task");
    }
    if (save.is_written())
      complain(Oracle::kVersion, "a tensor was unpacked although it was written");
    if (odds_.failed != Step::kUser) complain(Oracle::kError, "a failed copy was not reported");
    return tensor;
  } catch (const StorageReplaced&) {  // the accounts check if it was replaced
    if (save.is_written())
      complain(Oracle::kVersion, "the error does not say that the tensor was written");
  } catch (const ModifiedInPlace& error) {
    const ModifiedInPlace must(save.counter->value, save.version);
    if (!save.is_written() || std::string(error.what()) != must.what()) {
      complain(Oracle::kVersion, std::string("wrong error: ") + error.what());
    }
  } catch (const std::exception& error) {
    if (odds_.failed == Step::kEvict) expect_source();
    if (odds_.failed == Step::kUser || std::string(error.what()) != CopyFailed().what()) {
      complain(Oracle::kError, std::string("an unpack raised: ") + error.what());
    }
  }
  return std::nullopt;
}

// Called after a failed wait for a copy whose source was about to be dropped: the source must stay.
void Lifetime::expect_source() {
  if (offloader_.statistics().forward_stash_bytes > 0) return;
  complain(Oracle::kAccounts, "the source of a copy that failed is gone");
}

bool Lifetime::has_parcels() const {
  return std::any_of(saves_.begin(), saves_.end(), [](const Save& each) { return !each.kept; });
}

// The offloader remembers nothing about small tensors and tensors on other devices.
bool Lifetime::remembers() const {
  return std::any_of(saves_.begin(), saves_.end(),
                     [](const Save& each) { return each.remembered; });
}

void Lifetime::end() {
  escaped_.clear();
  while (!saves_.empty())
    saves_.erase(saves_.begin() + static_cast<std::ptrdiff_t>(any(saves_.size())));
  own_.clear();
  shrunk_.clear();
  if (auto hazard = world_.hazard()) verdict_ = hazard;
  if (verdict_) return;
  if (odds_.told_under_lock) return complain(Oracle::kLiveness, "it logs while it holds its lock");
  if (odds_.waited_under_lock)
    return complain(Oracle::kLiveness, "a thread waited while it held the lock");
  odds_.waited.clear();
  verdict_ = world_.leak();
  if (verdict_) return;
  const OffloadStatistics counts = offloader_.statistics();
  if (!offloader_.empty()) return complain(Oracle::kLeak, "the offloader has something left");
  if (counts.forward_stash_bytes != 0 || counts.backward_stash_bytes != 0) {
    return complain(Oracle::kAccounts, "a stash is not empty at the end");
  }
  const std::string wrong = fails_ ? "" : accounts_.complaint(counts);
  if (!wrong.empty()) complain(Oracle::kAccounts, wrong);
}

}  // namespace

std::optional<Verdict> try_saves(std::uint64_t number, const Rules& rules) {
  std::optional<Verdict> verdict = Lifetime(number, rules).live();
  if (verdict) verdict->words += " (saves " + std::to_string(number) + ")";
  return verdict;
}

}  // namespace ferry::verify
