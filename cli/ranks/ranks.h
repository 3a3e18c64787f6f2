// Several processes of one program, on one machine or many, that send each other texts: MPI's
// ranks.
//
// Rank 0 hands out work and the others ask for it, so rank 0 alone knows what is to be done. Where
// it is done, or goes wrong, it lets the others go, and all end together. A rank that is lost ends
// the job: MPI kills the others. Sending does not wait for the receiver, nor receiving for a
// sender: a rank has children or threads to look after meanwhile. One thread alone may use it.
// Not modelled: a rank that hangs, and is not lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ferry::cli {

enum class Tag : int {
  kBegin = 1,  // from rank 0: what all work has in common
  kWant,       // a rank has room for work
  kWork,       // here it is
  kResult,     // what became of it
  kLeave,      // a rank was asked to stop: all are
  kLetGo,      // from rank 0: no more work
};

struct Message {
  int from = 0;
  Tag tag = Tag::kWant;
  std::string bytes;
};

class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;  // on rank 0: lets the others go

  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool is_first() const { return rank() == 0; }
  virtual void send(int to, Tag tag, std::string_view bytes) = 0;
  // What has come, if anything has.
  virtual std::optional<Message> receive() = 0;
  // Ends the job: an error of a rank that has nobody to tell.
  [[noreturn]] virtual void abort(int code) = 0;
};

// Null: this process was not started as one of several (mpirun, srun). Call it once. Throws
// std::system_error where it was, and this Ferry was built without MPI.
std::unique_ptr<Ranks> join_ranks();

}  // namespace ferry::cli
