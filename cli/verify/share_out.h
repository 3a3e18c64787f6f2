// Shares work among the threads of all ranks, including rank 0's. Rank 0 gives out pieces of work
// and collects their results. Pieces and results are texts, because they may go to another machine.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/ranks/ranks.h"

namespace ferry::cli {

// The pieces of work, on rank 0. Any number of threads may call it.
class Pieces {
 public:
  Pieces() = default;
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  virtual ~Pieces() = default;

  virtual std::optional<std::string> take() = 0;  // does not wait; empty: there are no more
  virtual void give(const std::string& done) = 0;
  virtual bool is_waiting() const = 0;  // true while a result is missing that still counts
};

struct Crew {
  int jobs = 1;   // threads of each rank
  int ahead = 0;  // pieces that a rank holds besides those that its threads work on
  std::function<std::string(const std::string& piece)> work;  // runs on any thread of any rank
};

// The side of rank 0. `begin` is sent to the others first. `stop` and `tick` are called about every
// millisecond, on the calling thread. Throws what a thread of this rank threw.
void lead(Ranks& ranks, Pieces& pieces, const Crew& crew, const std::string& begin,
          const std::function<bool()>& stop, const std::function<void()>& tick);

// The side of any other rank; returns when rank 0 releases it. `crew_of` gets the text `begin` of
// rank 0, and a `stop` that the work calls to learn if it should end. `is_stopped` is true after a
// stop signal to this rank.
void serve(
    Ranks& ranks, const std::function<bool()>& is_stopped,
    const std::function<Crew(const std::string& begin, std::function<bool()> stop)>& crew_of);

}  // namespace ferry::cli
