// A model of what a span of operators gives back: which calls it can run again, which saved tensors
// come back by that, how many calls each time takes, what is refused, and what is alive meanwhile.
//
// The rules: a span's storage is one that a call made which can run again. A call can where it runs
// in the span's place, writes only what is the span's, reads nothing that is undefined, and has
// plain tensors of these. Else what it makes is from outside, and what it writes, or may have read
// of what is undefined, is not the span's any more. The first tensor of the span's that is needed
// in a graph task, on a thread, brings back all that autograd still has, each later one itself
// alone.
//
// Storages are known by numbers that are not used twice, and what is none by 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ferry::test {

// A version as its owner counts it, and as it was.
struct VersionThen {
  std::shared_ptr<const std::uint64_t> now;
  std::uint64_t then = 0;
  bool is_written() const { return now && *now != then; }
};

struct SpanCall {
  struct Argument {
    std::uint64_t storage = 0;
    VersionThen version;
    bool written = false;
    bool whole = false;  // all of the storage
    bool plain = true;
    bool passes = true;
  };
  struct Output {
    std::uint64_t storage = 0;
    bool plain = true;
  };
  std::vector<Argument> arguments;
  std::vector<Output> outputs;
  bool in_place_of_span = true;  // it is told how to run again, and runs where the span does
  bool blank = false;            // what it makes is undefined
  bool overwrites = false;
  std::int64_t other_bytes = 0;  // of what it makes when it runs again; 0: the same
};

struct SpanResultCounts {
  std::int64_t calls = 0, calls_left = 0, saved = 0, passed_on = 0, held = 0, replays = 0,
               calls_replayed = 0;
  std::int64_t passed = 0;  // arguments that the hooks around are given
};

class SpanResults {
 public:
  static constexpr std::int64_t kBytes = 512;  // of each storage

  // `passes`: there are hooks around; `moves`: they let go of what they are given.
  SpanResults(bool passes, bool moves) : passes_(passes), moves_(moves) {}

  void ran(const SpanCall& call);
  // Packs are numbered, in their order.
  void pack(std::uint64_t storage, const VersionThen& version, bool plain);
  void end();

  // What unpacking it throws; empty: nothing. Task: negative: none.
  std::string unpack(std::size_t pack, std::int64_t task, int thread);
  void drop(std::size_t pack);
  void task_ended(std::int64_t task);

  bool is_made(std::size_t pack) const { return packs_[pack].made; }
  // How many more storages there are when each call of the latest replay begins than before it.
  const std::vector<std::int64_t>& steps() const { return steps_; }
  // Those that the span and autograd hold, and how many beside them were made again.
  std::set<std::uint64_t> held() const;
  std::int64_t made_again() const;
  const SpanResultCounts& counts() const { return counts_; }

 private:
  struct Call {
    SpanCall seen;
    std::vector<std::uint64_t> uses;     // what is the span's of its arguments
    std::vector<std::uint64_t> changes;  // what it makes or writes
    std::vector<std::uint64_t> makes;
    std::vector<std::size_t> outside;  // arguments
    std::set<std::size_t> passed;      // of these: the hooks around have them
  };
  struct Pack {
    std::uint64_t storage = 0;
    std::size_t calls = 0;
    VersionThen version;
    bool made = false;
    bool moved = false;  // the hooks around have it elsewhere
    bool alive = true;
  };
  struct Run {
    std::size_t size = 0;
    std::set<std::size_t> ready;
  };

  bool is_spans(std::uint64_t storage) const {
    const auto known = known_.find(storage);
    return known != known_.end() && !known->second.lost;
  }
  bool can_run_again(const SpanCall& call) const;
  void record(const SpanCall& call);
  std::set<std::size_t> needed(const std::vector<std::size_t>& packs) const;
  std::string replay(const std::vector<std::size_t>& packs);
  std::int64_t alive_before(std::size_t step, const std::vector<std::size_t>& calls,
                            const std::set<std::uint64_t>& targets) const;

  struct Known {
    bool blank = false;
    bool lost = false;
  };
  const bool passes_;
  const bool moves_;
  std::map<std::uint64_t, Known> known_;
  std::vector<Call> calls_;
  std::set<std::size_t> left_;  // calls, when the span has ended
  std::vector<Pack> packs_;
  std::map<std::pair<std::int64_t, int>, Run> runs_;  // by task and thread
  std::vector<std::int64_t> steps_;
  SpanResultCounts counts_;
  bool ended_ = false;
};

}  // namespace ferry::test
