#include "cli/verify/campaign_ranks.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/verify/tried_text.h"

namespace ferry::cli {
namespace {

constexpr std::chrono::milliseconds kPause(1);  // between looks at what has come

// Some milliseconds' work at least, and enough blocks that no rank waits long for the last one.
std::uint64_t block_size_over(const Ranks& ranks, const verify::CampaignOptions& options) {
  constexpr std::uint64_t kMost = 256, kShares = 16;
  const std::uint64_t least = verify::block_size(options);
  if (options.deviations) return least;
  const auto threads = static_cast<std::uint64_t>(ranks.size()) *
                       static_cast<std::uint64_t>(std::max(options.jobs, 1));
  return std::clamp(verify::end_of(options) / (threads * kShares), least, kMost);
}

// What a rank has asked for and was sent. Its threads wait for it.
class Queue final : public verify::BlockSource {
 public:
  std::optional<verify::Block> take() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !blocks_.empty(); });
    if (closed_) return std::nullopt;
    const verify::Block block = blocks_.front();
    blocks_.pop_front();
    return block;
  }
  void give(verify::TriedBlock tried) override {
    const std::lock_guard lock(mutex_);
    tried_.push_back(std::move(tried));
  }

  void add(const verify::Block& block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  std::vector<verify::TriedBlock> tried() {
    const std::lock_guard lock(mutex_);
    return std::exchange(tried_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<verify::Block> blocks_;
  std::vector<verify::TriedBlock> tried_;
  bool closed_ = false;
};

// The next message; waits for it.
Message wait_for_message(Ranks& ranks) {
  for (;; std::this_thread::sleep_for(kPause)) {
    if (std::optional<Message> message = ranks.receive()) return *std::move(message);
  }
}

}  // namespace

verify::Campaign lead_campaign(Ranks& ranks, const verify::CampaignOptions& options) {
  const verify::Deadline deadline(options);
  verify::Ledger ledger(verify::end_of(options), block_size_over(ranks, options),
                        [&deadline] { return deadline.is_late(); });
  std::vector<std::uint64_t> room(static_cast<std::size_t>(ranks.size()));
  for (int rank = 1; rank < ranks.size(); ++rank) {
    ranks.send(rank, Tag::kBegin, std::to_string(options.seed));
  }
  const auto look = [&] {
    while (const std::optional<Message> message = ranks.receive()) {
      std::uint64_t& its_room = room[static_cast<std::size_t>(message->from)];
      if (message->tag == Tag::kWant) its_room = std::stoull(message->bytes);
      if (message->tag == Tag::kLeave) std::raise(SIGTERM);
      if (message->tag != Tag::kResult) continue;
      ++its_room;
      ledger.give(tried_from(message->bytes));
    }
    for (int rank = 1; rank < ranks.size(); ++rank) {
      for (std::uint64_t& its_room = room[static_cast<std::size_t>(rank)]; its_room > 0;
           --its_room) {
        const std::optional<verify::Block> block = ledger.take();
        if (!block) break;
        ranks.send(rank, Tag::kWork, to_text(*block));
      }
    }
    options.progress(ledger.tried(), deadline.seconds());
  };
  verify::try_blocks(options, deadline, ledger, kPause, look);
  for (; ledger.is_waiting() && !options.stop(); std::this_thread::sleep_for(kPause)) look();
  return {ledger.coverage(), deadline.seconds(), ledger.failure()};
}

void serve_campaign(Ranks& ranks, verify::CampaignOptions options) {
  const Message begin = wait_for_message(ranks);
  if (begin.tag == Tag::kLetGo) return;
  options.seed = std::stoull(begin.bytes);
  std::atomic<bool> let_go = false;
  const auto is_stopped = std::exchange(options.stop, nullptr);
  options.stop = [&] { return let_go || is_stopped(); };

  Queue queue;
  const auto look = [&] {
    while (const std::optional<Message> message = ranks.receive()) {
      if (message->tag == Tag::kWork) queue.add(block_from(message->bytes));
      if (message->tag == Tag::kLetGo) let_go = true;
    }
    for (const verify::TriedBlock& tried : queue.tried()) {
      ranks.send(0, Tag::kResult, to_text(tried));
    }
    if (options.stop()) queue.close();
  };
  // One more than its threads, so that none waits for the next one. (Every way through a program
  // takes its time: the last one would wait for a rank that has two, while others have none.)
  const int ahead = options.deviations ? 0 : 1;
  ranks.send(0, Tag::kWant, std::to_string(std::max(options.jobs, 1) + ahead));
  const verify::Deadline deadline(options);
  verify::try_blocks(options, deadline, queue, kPause, look);
  if (let_go) return;
  ranks.send(0, Tag::kLeave, "");
  while (wait_for_message(ranks).tag != Tag::kLetGo) {
  }
}

}  // namespace ferry::cli
