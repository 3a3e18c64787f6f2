#include "vgpu/run/ending.h"

#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "vgpu/run/options.h"

namespace ferry::vgpu {

std::string_view name(Judged judged) {
  switch (judged) {
    case Judged::kAll:
      return "all";
    case Judged::kInPart:
      return "in part";
    case Judged::kNothing:
      return "nothing";
  }
  return "";
}

Ending read_ending(int status, const std::filesystem::path& summary,
                   const std::filesystem::path& asking) {
  Ending ending{.status = status};
  std::ifstream in(summary);
  if (in && in.peek() != std::ifstream::traits_type::eof()) {
    const nlohmann::json json = nlohmann::json::parse(in);
    ending.reached = true;
    ending.parts = json.at("parts").get<std::int64_t>();
    ending.parts_used = json.at("parts_used").get<std::int64_t>();
    ending.parts_unjudged = json.at("parts_unjudged").get<std::int64_t>();
  }
  std::set<std::string> processes;
  std::ifstream lines(asking);
  for (std::string line; std::getline(lines, line);) processes.insert(line);
  ending.asking = static_cast<std::int64_t>(processes.size());
  return ending;
}

void cut_to_lines(const std::filesystem::path& log) {
  if (!std::filesystem::exists(log)) return;
  std::ifstream in(log, std::ios::binary);
  std::uintmax_t whole = std::filesystem::file_size(log);
  constexpr std::uintmax_t kPiece = 1 << 16;
  // Searches from the end. Each line ends in '\n', and what was not written yet is zeros.
  while (whole > 0) {
    const std::uintmax_t begin = whole > kPiece ? whole - kPiece : 0;
    std::string piece(whole - begin, '\0');
    in.seekg(static_cast<std::streamoff>(begin));
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const std::size_t end = piece.rfind('\n');
    whole = end == std::string::npos ? begin : begin + end + 1;
    if (end != std::string::npos) break;
  }
  if (whole != std::filesystem::file_size(log)) std::filesystem::resize_file(log, whole);
}

namespace {

// C libraries older than 2.32 cannot name a signal.
std::string signal_name(int signal) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGHUP, "SIGHUP"},
      {SIGILL, "SIGILL"},   {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL"}, {SIGPIPE, "SIGPIPE"},
      {SIGQUIT, "SIGQUIT"}, {SIGSEGV, "SIGSEGV"}, {SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"},
      {SIGXCPU, "SIGXCPU"}};
  for (const auto& [number, name] : kNames) {
    if (number == signal) return name;
  }
  return "signal " + std::to_string(signal);
}

}  // namespace

std::string until_text(const Ending& ending) {
  if (ending.status == kResourceMissing && !ending.reached) return "";  // it never began
  if (ending.status > kStoppedBase && !ending.reached) {
    return "until " + signal_name(ending.status - kStoppedBase) + " ended the script";
  }
  return ending.reached ? "" : "until the script ended without Python's own end";
}

std::string asking_text(std::int64_t asking) {
  if (asking == 0) return "";
  if (asking == 1) return "a child process asked for a device, which it does not have";
  return std::to_string(asking) + " child processes asked for a device, which they do not have";
}

std::string views_text(std::int64_t views) {
  if (views == 0) return "";
  return "what the host did through " + std::to_string(views) + (views == 1 ? " view" : " views") +
         " of page-locked memory (numpy, DLPack, an address) while work on it was pending";
}

}  // namespace ferry::vgpu
