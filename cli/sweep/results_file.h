// The results file of a sweep: JSON lines, one line for each item.
//
// While the sweep runs, a line is appended by one write when its item ends, so the lines survive if
// the sweep is killed. At the end, and after a stop signal, the file is replaced by one in the
// order of the sweep, so its bytes do not depend on how the items were run. A sweep that finds the
// file continues from it. Each line ends with a digest of itself: a damaged line is detected
// anywhere in the file, and its item runs again. A file with other lines is rejected with an error.
// Only one process at a time can open the file.
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
  bool again = false;  // runs items without an answer again (cli/sweep/outcome.h)
  bool drop = false;   // drops lines of other sweeps; otherwise they are an error
};

class ResultsFile {
 public:
  ResultsFile(std::filesystem::path path, const Items& items, const ResultsOptions& options);
  ~ResultsFile();
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  // Copies the lines of this sweep's items that the other file has and this one lacks.
  void take_from(const std::filesystem::path& other);
  void add(std::size_t item, std::string_view outcome);
  // Replaces the file by one in the order of the sweep, completely or not at all. Call it once, at
  // the end.
  void finish();

  bool is_done(std::size_t item) const { return places_[item].bytes > 0; }
  std::size_t done() const { return done_; }
  // Returns the line of an item that is done.
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

// The two halves of a line: the item's head ("program":…) and its outcome ("outcome":…).
struct LineParts {
  std::string_view head;
  std::string_view outcome;
};
std::string to_line(std::string_view head, std::string_view outcome);

}  // namespace ferry::cli
