// The results of a sweep: JSON lines, one whole line an item.
//
// While the sweep runs, lines come in the order in which items end, each by one write: whatever
// kills the sweep, they are there. At its end, and where it is stopped, the file is replaced by one
// in the order of the sweep, so its bytes tell nothing of how the items were run. A sweep that
// finds the file goes on from it. Each line ends with a digest of itself: one that is damaged is
// noticed, wherever it stands, and its item runs again. A file with anything else in it is refused.
// One process at a time has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sweep/item.h"

namespace ferry::cli {

struct ResultsOptions {
  bool again = false;  // items without an answer (cli/sweep/outcome.h) are to be done
  bool drop = false;   // drops lines of other sweeps, which are refused else
};

class ResultsFile {
 public:
  ResultsFile(std::filesystem::path path, const Items& items, const ResultsOptions& options);
  ~ResultsFile();
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  // Takes what another file has of this sweep's items and this one lacks.
  void take_from(const std::filesystem::path& other);
  void add(std::size_t item, std::string_view outcome);
  // In the order of the sweep, written whole or not at all. Once, at the end.
  void finish();

  bool is_done(std::size_t item) const { return places_[item].bytes > 0; }
  std::size_t done() const { return done_; }
  // Of an item that is done.
  std::string line(std::size_t item) const;

 private:
  struct Written {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;  // 0: not done
  };
  using Taker = std::function<void(std::size_t item, std::string_view line, std::uint64_t offset)>;

  void open();
  void read(const std::filesystem::path& path, const Taker& take);
  void append(std::size_t item, std::string_view line);
  void write(std::string_view bytes);
  std::string bytes_at(const Written& place) const;
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  const Items& items_;
  ResultsOptions options_;
  int file_ = -1;
  std::uint64_t end_ = 0;
  std::vector<Written> places_;
  std::size_t done_ = 0;
};

// A part of a line: what the item is of ("program":…), and what became of it ("outcome":…).
struct LineParts {
  std::string_view head;
  std::string_view outcome;
};
std::string to_line(std::string_view head, std::string_view outcome);

}  // namespace ferry::cli
