#include "cli/verify/share_out.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "verify/campaign/threads.h"

namespace ferry::cli {
namespace {

constexpr std::chrono::milliseconds kPause(1);  // between checks for messages

// The pieces that a rank got and its threads have not taken yet, and the results to send back.
class Queue {
 public:
  std::optional<std::string> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !pieces_.empty(); });
    if (closed_) return std::nullopt;
    std::string piece = std::move(pieces_.front());
    pieces_.pop_front();
    return piece;
  }
  void give(std::string done) {
    const std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
  }

  void add(std::string piece) {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  std::vector<std::string> done() {
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  std::vector<std::string> done_;
  bool closed_ = false;
};

// Waits for the next message.
Message wait_for_message(Ranks& ranks) {
  for (;; std::this_thread::sleep_for(kPause)) {
    if (std::optional<Message> message = ranks.receive()) return *std::move(message);
  }
}

// The loop of a thread: takes pieces from `source` and gives it the results.
verify::Threads::Body body_of(const Crew& crew, auto& source) {
  return [&crew, &source](const std::atomic<bool>& failed) {
    while (!failed) {
      const std::optional<std::string> piece = source.take();
      if (!piece) break;
      source.give(crew.work(*piece));
    }
  };
}

}  // namespace

void lead(Ranks& ranks, Pieces& pieces, const Crew& crew, const std::string& begin,
          const std::function<bool()>& stop, const std::function<void()>& tick) {
  std::vector<std::uint64_t> room(static_cast<std::size_t>(ranks.size()));
  for (int rank = 1; rank < ranks.size(); ++rank) ranks.send(rank, Tag::kBegin, begin);
  const auto look = [&] {
    while (const std::optional<Message> message = ranks.receive()) {
      std::uint64_t& its_room = room[static_cast<std::size_t>(message->from)];
      if (message->tag == Tag::kWant) its_room = std::stoull(message->bytes);
      if (message->tag == Tag::kLeave) std::raise(SIGTERM);
      if (message->tag != Tag::kResult) continue;
      ++its_room;
      pieces.give(message->bytes);
    }
    for (int rank = 1; rank < ranks.size(); ++rank) {
      for (std::uint64_t& its_room = room[static_cast<std::size_t>(rank)]; its_room > 0;
           --its_room) {
        const std::optional<std::string> piece = pieces.take();
        if (!piece) break;
        ranks.send(rank, Tag::kWork, *piece);
      }
    }
    tick();
  };
  {
    verify::Threads threads(crew.jobs, body_of(crew, pieces));
    while (!threads.ended_within(kPause)) look();
  }
  do {
    look();
    std::this_thread::sleep_for(kPause);
  } while (pieces.is_waiting() && !stop());
}

void serve(
    Ranks& ranks, const std::function<bool()>& is_stopped,
    const std::function<Crew(const std::string& begin, std::function<bool()> stop)>& crew_of) {
  const Message begin = wait_for_message(ranks);
  if (begin.tag == Tag::kLetGo) return;
  std::atomic<bool> let_go = false;
  const auto stop = [&] { return let_go || is_stopped(); };
  const Crew crew = crew_of(begin.bytes, stop);

  Queue queue;
  const auto look = [&] {
    while (std::optional<Message> message = ranks.receive()) {
      if (message->tag == Tag::kWork) queue.add(std::move(message->bytes));
      if (message->tag == Tag::kLetGo) let_go = true;
    }
    for (const std::string& done : queue.done()) ranks.send(0, Tag::kResult, done);
    if (stop()) queue.close();
  };
  ranks.send(0, Tag::kWant, std::to_string(std::max(crew.jobs, 1) + crew.ahead));
  {
    verify::Threads threads(crew.jobs, body_of(crew, queue));
    while (!threads.ended_within(kPause)) look();
  }
  look();
  if (let_go) return;
  ranks.send(0, Tag::kLeave, "");
  while (wait_for_message(ranks).tag != Tag::kLetGo) {
  }
}

}  // namespace ferry::cli
