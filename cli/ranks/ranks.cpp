#include "cli/ranks/ranks.h"

#include <cstdlib>

#if FERRY_HAS_MPI
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <list>
#else
#include <system_error>
#endif

namespace ferry::cli {
namespace {

// True if a launcher started this process: OpenMPI's, PMIx's, or PMI's (MPICH, Slurm). MPI would
// also start without one, but slowly.
bool is_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

#if FERRY_HAS_MPI

// Every MPI error ends the job, which is MPI's default.
class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiRanks() override {
    for (int other = 1; rank_ == 0 && other < size_; ++other) send(other, Tag::kLetGo, "");
    // Messages that are on their way must be received, or no rank ends.
    while (!is_sent()) receive();
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int done = 0; done == 0;) {
      receive();
      MPI_Test(&all, &done, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, Tag tag, std::string_view bytes) override {
    Sent& sent = sent_.emplace_back();
    sent.bytes = bytes;
    MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE, to,
              static_cast<int>(tag), MPI_COMM_WORLD, &sent.request);
  }

  std::optional<Message> receive() override {
    is_sent();
    int there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
    if (there == 0) return std::nullopt;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Message message{status.MPI_SOURCE, static_cast<Tag>(status.MPI_TAG), {}};
    message.bytes.resize(static_cast<std::size_t>(bytes));
    MPI_Recv(message.bytes.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return message;
  }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  struct Sent {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  // Forgets messages that have left. True if all have.
  bool is_sent() {
    sent_.remove_if([](Sent& sent) {
      int done = 0;
      MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    return sent_.empty();
  }

  int rank_ = 0;
  int size_ = 1;
  std::list<Sent> sent_;  // a list, because MPI reads the bytes until they have left
};

#endif

}  // namespace

std::unique_ptr<Ranks> join_ranks() {
  if (!is_launched()) return nullptr;
#if FERRY_HAS_MPI
  return std::make_unique<MpiRanks>();
#else
  throw std::system_error(std::make_error_code(std::errc::not_supported),
                          "started as one of several ranks, but built without MPI "
                          "(libopenmpi-dev): each rank would do all of the work");
#endif
}

}  // namespace ferry::cli
