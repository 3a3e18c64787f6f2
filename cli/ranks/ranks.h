// MPI's ranks: several processes of one program, on one machine or many, that send each other
// texts. `ferry sweep` and `ferry verify` share their work among them.
//
// Rank 0 hands out work and the others ask for it, so only rank 0 knows what is left to do. When
// all is done, or after an error, rank 0 releases the others, and all end together. A rank that
// dies ends the job: MPI kills the others. A rank that hangs is not detected. Sending does not wait
// for the receiver, and receiving does not wait for a sender, because a rank also looks after
// children or threads. Only one thread may use an object of this class.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ferry::cli {

enum class Tag : int {
  kBegin = 1,  // from rank 0: what all work shares
  kWant,       // to rank 0: so much work can be sent
  kWork,       // from rank 0: a piece of work
  kResult,     // to rank 0: the result of a piece
  kLeave,      // to rank 0: this rank got a stop signal, so all must stop
  kLetGo,      // from rank 0: there is no more work
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
  virtual ~Ranks() = default;  // on rank 0: releases the others

  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool is_first() const { return rank() == 0; }
  virtual void send(int to, Tag tag, std::string_view bytes) = 0;
  // Returns the next message, if one has arrived.
  virtual std::optional<Message> receive() = 0;
  // Ends the whole job, after an error that the rank cannot send to rank 0.
  [[noreturn]] virtual void abort(int code) = 0;
};

// Joins the job if a launcher (mpirun, srun) started this process as one of several; else returns
// null. Call it once. Throws std::system_error if a launcher did, but Ferry was built without MPI.
std::unique_ptr<Ranks> join_ranks();

}  // namespace ferry::cli
