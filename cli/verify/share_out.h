// Work that the threads of all ranks do, rank 0's among them: rank 0 says which piece is next, and
// takes what came of it. Pieces and what came of them are texts, which may go to another machine.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/ranks/ranks.h"

namespace ferry::cli {

// Rank 0's. Any number of threads may call it.
class Pieces {
 public:
  Pieces() = default;
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  virtual ~Pieces() = default;

  virtual std::optional<std::string> take() = 0;  // does not wait; none: there is no more
  virtual void give(const std::string& done) = 0;
  virtual bool is_waiting() const = 0;  // for a piece that is out, and still of use
};

struct Crew {
  int jobs = 1;   // threads of each rank
  int ahead = 0;  // pieces that a rank has waiting, besides those that its threads do
  std::function<std::string(const std::string& piece)> work;  // on any thread of any rank
};

// Rank 0's side. `begin` is sent to the others first. `stop` and `tick` are asked and called now
// and then, on the calling thread. Throws what a thread of this rank threw.
void lead(Ranks& ranks, Pieces& pieces, const Crew& crew, const std::string& begin,
          const std::function<bool()>& stop, const std::function<void()>& tick);

// Any other rank's, until it is let go. `crew_of` is given what rank 0 began with, and what the
// work is to ask whether to end; a stop of this rank's own is `is_stopped`.
void serve(
    Ranks& ranks, const std::function<bool()>& is_stopped,
    const std::function<Crew(const std::string& begin, std::function<bool()> stop)>& crew_of);

}  // namespace ferry::cli
