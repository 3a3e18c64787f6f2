#include "verify/oracles/accounts.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "formats/decision_log.h"

namespace ferry::verify {
namespace {

constexpr std::int64_t kAlignment = 512;
constexpr std::int64_t kLargeStorage = std::int64_t{1} << 20;

// Returns the bytes of the storage that are copied. If a small view lies in a large storage, only
// the part under the view is copied, from an aligned byte on.
Extent copied_of(const sim::Tensor& tensor) {
  const std::int64_t whole = tensor->storage->bytes;
  Extent part = tensor->layout.extent();
  part.begin = part.begin / kAlignment * kAlignment;
  const bool is_part = whole >= kLargeStorage && 2 * (part.end - part.begin) <= whole;
  return is_part ? part : Extent{0, whole};
}

// Returns true for parameters, buffers, and storages of any device but the first.
bool stays_anyway(const sim::StorageImpl& storage) {
  return storage.device != 0 || storage.kind == sim::MemoryKind::kParameter ||
         storage.kind == sim::MemoryKind::kBuffer;
}

}  // namespace

// `pack` is the tensor's number in this forward. `shares` gets the copy that it can share, if any.
Accounts::Fate Accounts::fate_of(const sim::Tensor& tensor, std::uint64_t pack,
                                 ParcelRef& shares) const {
  const sim::StorageImpl& storage = *tensor->storage;
  const Extent extent = copied_of(tensor);
  const std::int64_t bytes = extent.end - extent.begin;
  const std::vector<bool>& chosen = options_.offload;
  if (bytes == 0 || bytes < options_.min_bytes || stays_anyway(storage) ||
      kept_.contains(storage.identity) ||
      (!chosen.empty() && (pack >= chosen.size() || !chosen[pack]))) {
    return Fate::kKept;
  }
  shares = copy_of(tensor, extent);
  return shares ? Fate::kShared : Fate::kSent;
}

// Returns the copy that has these bytes: the last one that begins before them, else the first one
// that begins with them or at byte 0 of the storage. Null if there is none; the bytes are then
// copied again.
Accounts::ParcelRef Accounts::copy_of(const sim::Tensor& tensor, const Extent& extent) const {
  using Place = std::pair<std::int64_t, std::uint64_t>;
  std::map<Place, ParcelRef> copies;
  for (const auto& [host, parcel] : alive_) {
    if (parcel->storage == tensor->storage->identity &&
        parcel->address == tensor->storage->address &&
        parcel->counter_identity == tensor->version->identity &&
        parcel->version == tensor->version->value) {
      copies[{parcel->extent.begin, parcel->sequence}] = parcel;
    }
  }
  const auto here = copies.lower_bound({extent.begin, 0});
  if (here != copies.begin() && std::prev(here)->second->extent.covers(extent)) {
    return std::prev(here)->second;
  }
  for (const std::int64_t begin : {extent.begin, std::int64_t{0}}) {
    for (const auto& [place, parcel] : copies) {
      if (place.first == begin && parcel->extent.covers(extent)) return parcel;
    }
  }
  return nullptr;
}

// Called after the tensor was copied.
Accounts::ParcelRef Accounts::send(const sim::Tensor& tensor, const WatchedSave& save,
                                   std::uint64_t pack) {
  const sim::StorageImpl& storage = *tensor->storage;
  const Extent extent = copied_of(tensor);
  const auto bytes = static_cast<std::uint64_t>(extent.end - extent.begin);
  if (copied_->from != Range{storage.address + static_cast<std::uint64_t>(extent.begin), bytes}) {
    complain("the bytes that moved are not the saved ones");
  }
  const std::int64_t room = room_for(storage);
  while (!window_.empty() && window_bytes_ > room) leave_first();
  auto parcel = std::make_shared<Parcel>(Parcel{.source = tensor->storage,
                                                .storage = storage.identity,
                                                .counter = tensor->version,
                                                .counter_identity = tensor->version->identity,
                                                .version = tensor->version->value,
                                                .extent = extent,
                                                .run = run_,
                                                .pack = pack,
                                                .sequence = save.sequence,
                                                .address = storage.address,
                                                .host = copied_->to.address});
  const StreamId now = storage.machine->current_stream();
  if (options_.copy_streams != CopyStreams::kNone || storage.block->stream() != now) {
    window_[save.sequence] = {storage.bytes, parcel};
    window_bytes_ += storage.bytes;
    expected_.forward_stash_peak_bytes =
        std::max(expected_.forward_stash_peak_bytes, window_bytes_);
  }
  alive_[parcel->host] = parcel;
  on_host_.add(parcel->bytes());
  way_back_.sent(parcel);
  return parcel;
}

// Returns the bytes that the window may hold in addition to this storage.
std::int64_t Accounts::room_for(const sim::StorageImpl& storage) const {
  return std::max<std::int64_t>(on_host_.limit(options_.window_bytes) - storage.bytes, 0);
}

// Before the tensor is sent, checks the memory of those sources that will leave the window for it.
void Accounts::look_at_leaving(const sim::Tensor& tensor) const {
  std::int64_t bytes = window_bytes_;
  const std::int64_t room = room_for(*tensor->storage);
  for (const auto& [sequence, in] : window_) {
    if (bytes <= room) break;
    in.parcel->look_at_place();
    bytes -= in.bytes;
  }
}

void Accounts::leave_first() {
  const InWindow& first = window_.begin()->second;
  Parcel& parcel = *first.parcel;
  parcel.look_at_place();
  window_bytes_ -= first.bytes;
  must_decide_.push_back({DecisionKind::kEvict, parcel.run, parcel.pack, parcel.bytes()});
  window_.erase(window_.begin());
}

// Backward unpacks the save with this number: sources that were packed much earlier leave the
// window.
void Accounts::leave_far(std::uint64_t sequence) {
  const auto packs = static_cast<std::uint64_t>(options_.prefetch_tensors);
  while (!window_.empty() && window_.begin()->first + packs < sequence) {
    leave_first();
  }
}

void Accounts::leave_window(const Parcel& parcel) {
  const auto found = window_.find(parcel.sequence);
  if (found == window_.end()) return;
  window_bytes_ -= found->second.bytes;
  window_.erase(found);
}

// Called before a save is unpacked.
void Accounts::unpacking(WatchedSave& save, const sim::Machine& machine) {
  if (save.parcel) handed_ = way_back_.unpacks(save, sequence_, machine.current_stream());
  if (!way_back_.looks_ahead(sequence_)) return;
  leave_far(save.sequence);
  way_back_.look_ahead(save);
}

// Called after an unpack. `address` is the address of the unpacked tensor. A parcel may be reloaded
// as a prefetch for an earlier save while another of its saves is unpacked.
void Accounts::unpacked(Parcel& parcel, bool source_there, std::uint64_t address) {
  unpacks_ = nullptr;
  if (source_there) {
    ++expected_.stash_hits;
    if (!reloaded_now_.empty())
      complain("a tensor was reloaded while its source was on the device");
    return;
  }
  const bool own = std::erase(reloaded_now_, address) > 0;
  if (own && parcel.ahead) came_in_vain(parcel);
  if (own) {
    ++own_reloads_;
  } else {
    ++expected_.target_hits;
  }
  parcel.ahead = !reloaded_now_.empty();
}

// Expects a warning if the host is nearly full. This is checked at the first unpack of a sent
// tensor.
void Accounts::may_warn(const sim::Machine& machine) {
  if (options_.host_memory != HostMemory::kPinned || std::exchange(has_looked_, true)) return;
  const std::int64_t total = machine.options().host_total_bytes;
  const std::int64_t used = machine.host_pool().stats().pinned_bytes.current;
  if (used * 100 <= total * options_.host_warn_percent) return;
  const std::int64_t permille = used * 1000 / total;
  warnings_.push_back(std::to_string(permille / 10) + "." + std::to_string(permille % 10) +
                      "% of the host's memory is in use, more than " +
                      std::to_string(options_.host_warn_percent) +
                      "%: page-locked memory for offloaded tensors may run out");
}

void Accounts::came_in_vain(const Parcel& parcel) {
  ++expected_.vain_count;
  expected_.vain_bytes += parcel.bytes();
}

// Called when no saved tensor needs the parcel any more.
void Accounts::forget(Parcel& parcel) {
  leave_window(parcel);
  on_host_.now -= parcel.bytes();
  if (!parcel.reloaded || parcel.ahead) came_in_vain(parcel);
  const auto found = alive_.find(parcel.host);
  if (found != alive_.end() && found->second.get() == &parcel) alive_.erase(found);
}

void Accounts::operator()(const StreamOp& op) {
  const bool waits = op.kind == StreamOpKind::kWait;
  if (waits &&
      (op.step == Step::kEvict || op.step == Step::kConsume || op.step == Step::kDiscard)) {
    ++expected_.compute_waits;
  }
  if (op.kind == StreamOpKind::kFree) {
    const auto target = targets_.find(op.range.address);
    if (target == targets_.end()) return;
    target_bytes_ -= target->second;
    targets_.erase(target);
  }
  const bool of_target =
      op.step == Step::kNodeDone || op.step == Step::kReleaseAfterNode || op.step == Step::kEscaped;
  if (of_target && Releases::needed(options_)) {
    may_let_go();
    told_.push_back({op.step, op.stream});
  }
  if (op.kind != StreamOpKind::kCopy) return;
  if (op.step == Step::kOffload) {
    if (copied_) complain("one pack moved twice");
    copied_ = Copied{op.reads[0], op.writes[0]};
    ++expected_.offloaded_count;
    expected_.offloaded_bytes += static_cast<std::int64_t>(op.reads[0].bytes);
  } else if (op.step == Step::kReload) {
    reloads(op);
  }
}

void Accounts::reloads(const StreamOp& op) {
  const std::uint64_t host = op.reads[0].address;
  const auto bytes = static_cast<std::int64_t>(op.writes[0].bytes);
  ++expected_.reloaded_count;
  expected_.reloaded_bytes += bytes;
  const auto found = alive_.find(host);
  if (found == alive_.end()) {
    return complain("bytes were reloaded that no saved tensor needs");
  }
  if (Parcel& parcel = *found->second; &parcel == unpacks_) {
    parcel.reloaded = true;
    reloaded_now_.push_back(op.writes[0].address);
  } else {
    if (unpacks_at_ - parcel.sequence > static_cast<std::uint64_t>(options_.prefetch_tensors)) {
      complain("a tensor was reloaded too early");
    }
    if (parcel.ahead) came_in_vain(parcel);
    parcel.reloaded = parcel.ahead = true;
  }
  for (const TargetRef& target : {handed_, found->second->target}) {
    if (target && !target->owner) target->owner = op.stream;
  }
  targets_[op.writes[0].address] = bytes;
  target_bytes_ += bytes;
  target_peak_ = std::max(target_peak_, target_bytes_);
  largest_target_ = std::max(largest_target_, bytes);
}

void Accounts::decided(const Decision& decision) {
  if (decision.kind == DecisionKind::kRecompute) {  // it belongs to a checkpoint
    ++recomputes_;
    return;
  }
  may_let_go();
  decided_.push_back(decision);
}

// At the end of a task, outside of any call, the offloader releases what the task left.
void Accounts::may_let_go() {
  if (calls_ == 0 && at_end_of_task_) way_back_.let_go_of_task();
}

void Accounts::task_ended() noexcept {
  at_end_of_task_ = false;
  way_back_.let_go_of_task();
  compare_decisions();
  compare_told();
  way_back_.task_ended();
}

void Accounts::node_begins() {
  compare_told();
  way_back_.node_begins();
}

// Compares without regard to order, because other callbacks may run in between.
void Accounts::compare_told() {
  std::vector<Releases::Told> must = std::exchange(way_back_.told(), {});
  std::sort(must.begin(), must.end());
  std::sort(told_.begin(), told_.end());
  const auto text = [](const std::vector<Releases::Told>& all) {
    std::string words;
    for (const Releases::Told& each : all) {
      words += " `" + std::string(ferry::name(each.step)) + "` on stream " +
               std::to_string(static_cast<std::uint32_t>(each.stream));
    }
    return words.empty() ? " nothing" : words;
  };
  if (told_ != must)
    complain("for reloaded tensors it called" + text(told_) + ", not" + text(must));
  told_.clear();
}

void Accounts::compare_decisions() {
  const auto [must, is] =
      std::mismatch(must_decide_.begin(), must_decide_.end(), decided_.begin(), decided_.end());
  const auto text = [](const auto& at, const auto& end) {
    if (at == end) return std::string("nothing more");
    return std::string(name(at->kind)) + " of pack " + std::to_string(at->pack) + " of forward " +
           std::to_string(at->run);
  };
  if (must != must_decide_.end() || is != decided_.end()) {
    complain("it decided " + text(is, decided_.end()) + ", not " + text(must, must_decide_.end()));
  }
  must_decide_.clear();
  decided_.clear();
}

// Keeps the first complaint.
void Accounts::complain(std::string_view what) {
  if (complaint_.empty()) complaint_ = what;
}

std::string Accounts::complaint(const OffloadStatistics& counts) const {
  if (!complaint_.empty()) return complaint_;
  OffloadStatistics expected = expected_;
  expected.prefetched_count = expected.reloaded_count - own_reloads_;
  using S = OffloadStatistics;
  static constexpr std::array<std::pair<std::int64_t S::*, const char*>, 17> kCounts = {{
      {&S::packs, "packs"},
      {&S::kept, "kept"},
      {&S::full, "full"},
      {&S::shared, "shared"},
      {&S::offloaded_count, "offloaded_count"},
      {&S::offloaded_bytes, "offloaded_bytes"},
      {&S::reloaded_count, "reloaded_count"},
      {&S::reloaded_bytes, "reloaded_bytes"},
      {&S::prefetched_count, "prefetched_count"},
      {&S::stash_hits, "stash_hits"},
      {&S::target_hits, "target_hits"},
      {&S::vain_count, "vain_count"},
      {&S::vain_bytes, "vain_bytes"},
      {&S::compute_waits, "compute_waits"},
      {&S::forward_stash_bytes, "forward_stash_bytes"},
      {&S::forward_stash_peak_bytes, "forward_stash_peak_bytes"},
      {&S::backward_stash_bytes, "backward_stash_bytes"},
  }};
  for (const auto& [count, name] : kCounts) {
    if (counts.*count == expected.*count) continue;
    return std::string(name) + " is " + std::to_string(counts.*count) + ", not " +
           std::to_string(expected.*count);
  }
  if (counts.backward_stash_peak_bytes < largest_target_ ||
      counts.backward_stash_peak_bytes > target_peak_) {
    return "backward_stash_peak_bytes is " + std::to_string(counts.backward_stash_peak_bytes) +
           ", not from " + std::to_string(largest_target_) + " to " + std::to_string(target_peak_);
  }
  return "";
}

}  // namespace ferry::verify
