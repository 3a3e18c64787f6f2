// The hooks through which Accounts sees what is packed, unpacked and dropped.
#include <memory>
#include <optional>
#include <utility>

#include "verify/oracles/accounts.h"

namespace ferry::verify {

// Marks a call of the offloader. At its end the decisions are compared with the expected ones.
class Accounts::Call {
 public:
  explicit Call(Accounts& accounts) : accounts_(accounts) {
    if (accounts_.calls_++ == 0) accounts_.compare_decisions();  // decisions at the end of a task
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (--accounts_.calls_ == 0) accounts_.compare_decisions();
  }

 private:
  Accounts& accounts_;
};

// Watches one saved tensor.
class Accounts::Watched final : public Saved<sim::Tensor> {
 public:
  Watched(Accounts& accounts, std::unique_ptr<Saved<sim::Tensor>> inner, const WatchedSave& save,
          const sim::Tensor& tensor, std::optional<std::uint64_t> kept)
      : accounts_(accounts),
        inner_(std::move(inner)),
        save_(save),
        counter_(tensor->version),
        version_(tensor->version->value),
        machine_(*tensor->storage->machine),
        kept_(kept) {
    if (save_.parcel) save_.parcel->saves.push_back(&save_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() override {
    const Call call(accounts_);
    if (save_.parcel) accounts_.way_back_.drops(save_);
    inner_.reset();
    if (save_.parcel && save_.parcel->saves.empty()) accounts_.forget(*save_.parcel);
    if (kept_ && --accounts_.kept_[*kept_] == 0) accounts_.kept_.erase(*kept_);
  }
  sim::Tensor unpack() override {
    const Call call(accounts_);
    const ParcelRef& parcel = save_.parcel;
    const bool there = parcel && !parcel->source.expired();
    accounts_.reloaded_now_.clear();
    accounts_.unpacks_ = parcel.get();
    accounts_.unpacks_at_ = save_.sequence;
    accounts_.handed_ = nullptr;
    const bool replaced = parcel && (parcel->replaced || parcel->is_elsewhere());
    if (!is_written() && !replaced) {
      accounts_.unpacking(save_, machine_);
    } else if (parcel) {
      accounts_.way_back_.refuses(accounts_.sequence_);
    }
    sim::Tensor tensor = unpack_inner(replaced);
    if (accounts_.handed_) accounts_.handed_->storage = tensor->storage;
    if (parcel) accounts_.unpacked(*parcel, there, tensor->storage->address);
    if (parcel) accounts_.may_warn(machine_);
    return tensor;
  }

 private:
  sim::Tensor unpack_inner(bool replaced) {
    try {
      sim::Tensor tensor = inner_->unpack();
      if (replaced) accounts_.complain("a tensor was unpacked although its memory was replaced");
      return tensor;
    } catch (const StorageReplaced&) {
      if (!replaced) accounts_.complain("a tensor was rejected although it has its memory");
      throw;
    }
  }
  bool is_written() const {
    const sim::Version counter = counter_.lock();
    return counter && counter->value != version_;
  }

  Accounts& accounts_;
  std::unique_ptr<Saved<sim::Tensor>> inner_;
  WatchedSave save_;
  const std::weak_ptr<sim::VersionCounter> counter_;
  const std::uint64_t version_;
  const sim::Machine& machine_;
  const std::optional<std::uint64_t> kept_;  // identity of its storage, if kept_ counts it
};

class Accounts::Pair final : public Hooks<sim::Tensor> {
 public:
  Pair(Accounts& accounts, std::shared_ptr<Hooks<sim::Tensor>> inner)
      : accounts_(accounts), inner_(std::move(inner)) {}
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override;

 private:
  Accounts& accounts_;
  std::shared_ptr<Hooks<sim::Tensor>> inner_;
};

std::unique_ptr<Saved<sim::Tensor>> Accounts::Pair::pack(const sim::Tensor& tensor) {
  Accounts& all = accounts_;
  const Call call(all);
  WatchedSave save{all.run_, all.sequence_++};
  const auto packs = static_cast<std::uint64_t>(all.options_.window_tensors);
  while (!all.window_.empty() && save.sequence - all.window_.begin()->first >= packs) {
    all.leave_first();
  }
  const Fate fate = all.fate_of(tensor, all.pack_, save.parcel);
  if (fate == Fate::kSent) all.look_at_leaving(tensor);
  all.copied_.reset();
  all.host_refused_ = false;
  ++all.expected_.packs;
  const std::uint64_t pack = all.pack_++;
  auto saved = inner_->pack(tensor);
  if (all.host_refused_) {
    ++all.expected_.full;
    if (fate != Fate::kSent) all.complain("host memory was requested that was not needed");
  } else if (all.copied_) {
    if (fate == Fate::kKept) all.complain("a tensor moved that had to stay");
    if (fate == Fate::kShared) all.complain("bytes moved that the host already has");
    save.parcel = all.send(tensor, save, pack);
  } else if (fate == Fate::kSent) {
    all.complain("a tensor stayed that had to move");
  } else if (save.parcel) {
    ++all.expected_.shared;
  }
  std::optional<std::uint64_t> kept;
  if (!save.parcel) {
    ++all.expected_.kept;
    if (tensor->storage->bytes >= all.options_.min_bytes) kept = tensor->storage->identity;
    if (kept) ++all.kept_[*kept];
  }
  return std::make_unique<Watched>(all, std::move(saved), save, tensor, kept);
}

std::shared_ptr<Hooks<sim::Tensor>> Accounts::watch(std::shared_ptr<Hooks<sim::Tensor>> hooks) {
  return std::make_shared<Pair>(*this, std::move(hooks));
}

void Accounts::begin_forward() {
  ++run_;
  pack_ = 0;
  on_host_.begin_forward();
}

}  // namespace ferry::verify
