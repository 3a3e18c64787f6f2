#include "cli/sweep/results_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/console/messages.h"
#include "cli/sweep/outcome.h"
#include "formats/atomic_file.h"
#include "formats/digest.h"
#include "formats/error.h"
#include "formats/text_file.h"

namespace ferry::cli {
namespace {

constexpr std::string_view kBegin = "{\"ferry\":";
constexpr std::string_view kMiddle = ",\"outcome\":";
constexpr std::string_view kBeforeDigest = ",\"line_digest\":\"";
constexpr std::string_view kEnd = "\"}";
constexpr std::size_t kDigits = 16;

// Splits a line into its halves; empty if the line is damaged.
std::optional<LineParts> take_apart(std::string_view line) {
  constexpr std::size_t kTail = kBeforeDigest.size() + kDigits + kEnd.size();
  if (line.size() < kTail || !line.starts_with(kBegin)) return std::nullopt;
  const std::string_view body = line.substr(0, line.size() - kTail);
  const std::string_view tail = line.substr(body.size());
  const std::size_t middle = body.find(kMiddle);
  if (!tail.starts_with(kBeforeDigest) || !tail.ends_with(kEnd) ||
      tail.substr(kBeforeDigest.size(), kDigits) != digest_of(body) ||
      middle == std::string_view::npos) {
    return std::nullopt;
  }
  return LineParts{body.substr(1, middle - 1), body.substr(middle + 1)};
}

bool is_of_a_sweep(std::string_view line) {
  return line.starts_with(kBegin) || kBegin.starts_with(line);
}

bool is_no_answer_in(std::string_view outcome) {
  const std::string_view word = outcome.substr(std::string_view("\"outcome\":\"").size());
  return is_no_answer(word.substr(0, word.find('"')));
}

}  // namespace

std::string to_line(std::string_view head, std::string_view outcome) {
  std::string line = "{";
  line.append(head).append(",").append(outcome);
  const std::string digest = digest_of(line);
  return line.append(kBeforeDigest).append(digest).append(kEnd).append("\n");
}

ResultsFile::ResultsFile(std::filesystem::path path, const Items& items,
                         const ResultsOptions& options)
    : path_(std::move(path)), items_(items), options_(options), places_(items.size()) {
  require_folder_of(path_);
  open();
  try {
    read(path_, [this](std::size_t item, std::string_view line, std::uint64_t offset) {
      places_[item] = {offset, static_cast<std::uint32_t>(line.size() + 1)};
      ++done_;
    });
    const off_t end = ::lseek(file_, 0, SEEK_END);
    if (end < 0) fail("cannot read");
    end_ = static_cast<std::uint64_t>(end);
    if (end_ > 0 && bytes_at({.offset = end_ - 1, .bytes = 1}) != "\n") write("\n");
  } catch (...) {
    ::close(file_);
    throw;
  }
}

ResultsFile::~ResultsFile() { ::close(file_); }

void ResultsFile::fail(const char* what) const {
  throw std::system_error(errno, std::generic_category(), what + (" " + path_.string()));
}

// Opens and locks the file. If another sweep replaced the file meanwhile, opens the new one.
void ResultsFile::open() {
  for (;;) {
    file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) fail("cannot write");
    struct stat opened {
    }, named{};
    if (::fstat(file_, &opened) == 0 && !S_ISREG(opened.st_mode)) {
      ::close(file_);
      throw InputError(path_.string(), 0, "expected a regular file that the sweep can continue");
    }
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw InputError(path_.string(), 0, "expected a file that no other sweep is writing");
    }
    if (::stat(path_.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
        named.st_dev == opened.st_dev) {
      return;
    }
    ::close(file_);
  }
}

void ResultsFile::read(const std::filesystem::path& path, const Taker& take) {
  std::ifstream in = open_file(path);
  std::string line;
  std::uint64_t number = 0, offset = 0;
  for (bool good_before = false; std::getline(in, line); offset += line.size() + 1) {
    ++number;
    const std::optional<LineParts> parts = in.eof() ? std::nullopt : take_apart(line);
    if (!parts) {
      // After a crash of the machine the last line can be anything: it counts as damaged.
      if (!is_of_a_sweep(line) && !(good_before && in.peek() == EOF)) {
        throw InputError(path.string(), number, "expected a line of a sweep's results");
      }
      tell("{}:{}: skipped a damaged line", path.string(), number);
      continue;
    }
    good_before = true;
    const std::optional<std::size_t> item = items_.find(parts->head);
    if (!item && !options_.drop) {
      throw InputError(path.string(), number,
                       "expected an item of " + items_.sweep().file +
                           ": its inputs changed, or it is of another sweep (--drop drops it)");
    }
    if (!item || is_done(*item) || (options_.again && is_no_answer_in(parts->outcome))) continue;
    take(*item, line, offset);
  }
}

void ResultsFile::take_from(const std::filesystem::path& other) {
  read(other, [this](std::size_t item, std::string_view line, std::uint64_t) {
    append(item, std::string(line) + "\n");
  });
}

void ResultsFile::add(std::size_t item, std::string_view outcome) {
  append(item, to_line(items_.head(item), outcome));
}

void ResultsFile::append(std::size_t item, std::string_view line) {
  const Written place{.offset = end_, .bytes = static_cast<std::uint32_t>(line.size())};
  write(line);
  places_[item] = place;
  ++done_;
}

void ResultsFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot write");
    end_ += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string ResultsFile::bytes_at(const Written& place) const {
  std::string bytes(place.bytes, '\0');
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count =
        ::pread(file_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(place.offset + at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot read");
    if (count == 0) throw InputError(path_.string(), 0, "expected no other process to shorten it");
    at += static_cast<std::size_t>(count);
  }
  return bytes;
}

std::string ResultsFile::line(std::size_t item) const { return bytes_at(places_[item]); }

void ResultsFile::finish() {
  AtomicFile file(path_);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (is_done(i)) file.write(line(i));
  }
  file.commit();
}

}  // namespace ferry::cli
