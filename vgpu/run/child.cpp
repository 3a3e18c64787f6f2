#include "vgpu/run/child.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

namespace ferry::vgpu {
namespace {

constexpr const char* kPreloaded[] = {"libferry_vgpu_runtime.so", "libcuda.so.1"};

std::string preload(const std::filesystem::path& libraries) {
  std::string list;
  for (const char* library : kPreloaded) list += (libraries / library).string() + ":";
  const char* const others = std::getenv("LD_PRELOAD");
  return others != nullptr ? list + others : list;
}

std::string settings(const Options& options, const Files& files) {
  return nlohmann::json{
      {"card", options.card_file},  {"cards", options.cards},
      {"timed", options.timed},     {"tempo", static_cast<int>(options.schedule)},
      {"seed", options.seed},       {"values", static_cast<int>(options.values)},
      {"log", files.log.string()},  {"summary", files.summary.string()},
      {"torch", FERRY_TORCH_MINOR},
  }
      .dump();
}

// After fork. Returns only if there is no such program.
void become(const Options& options, const std::filesystem::path& launcher) {
  std::vector<std::string> words = {options.python, launcher.string()};
  words.insert(words.end(), options.script.begin(), options.script.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
}

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::string why_not(const Options& options, const std::filesystem::path& libraries) {
  std::error_code unread;
  if (!options.hide_gpu && std::filesystem::exists("/dev/nvidiactl", unread)) {
    return "there is a real GPU on this machine: run the script on it, or hide it by --hide-gpu";
  }
  for (const char* file : {kPreloaded[0], kPreloaded[1], "libferry_vgpu_python.so", "launch.py"}) {
    if (!std::filesystem::exists(libraries / file, unread)) {
      return "there is no " + (libraries / file).string() + ": build Ferry with LibTorch";
    }
  }
  return "";
}

int run_script(const Options& options, const std::filesystem::path& libraries, const Files& files) {
  ::setenv("FERRY_VIRTUAL_GPU", settings(options, files).c_str(), 1);
  const std::string preloaded = preload(libraries);
  // The terminal sends Ctrl-C to both; the script says what becomes of it.
  std::signal(SIGINT, SIG_IGN);
  const pid_t child = ::fork();
  if (child < 0) fail("cannot start a process");
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    ::setenv("LD_PRELOAD", preloaded.c_str(), 1);
    become(options, libraries / "launch.py");
    std::perror(("ferry run: cannot run " + options.python).c_str());
    ::_exit(kResourceMissing);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("cannot wait for the script");
  }
  return WIFSIGNALED(status) ? kStoppedBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace ferry::vgpu
