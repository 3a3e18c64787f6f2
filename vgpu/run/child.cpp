#include "vgpu/run/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

namespace ferry::vgpu {
namespace {

constexpr const char* kPreloaded[] = {"libferry_vgpu_runtime.so", "libcuda.so.1",
                                      "libnvidia-ml.so.1"};

std::string preload(const std::filesystem::path& libraries) {
  std::string list;
  for (const char* library : kPreloaded) list += (libraries / library).string() + ":";
  const char* const others = std::getenv("LD_PRELOAD");
  return others != nullptr ? list + others : list;
}

std::string settings(const Options& options, const Setting& setting,
                     const std::filesystem::path& libraries, const Files& files) {
  nlohmann::json json{{"card", setting.card->file}, {"cards", options.card_count}};
  const Hardware& card = setting.card->hardware;
  json["flops_per_us"] = {{"half", card.flops_per_us_of(DType::kF16)},
                          {"single", card.flops_per_us_of(DType::kF32)}};
  json["memory_bytes_per_us"] = card.memory_bytes_per_us;
  json["policy"] = setting.policy;
  json["packages"] = (libraries.parent_path() / "python").string();
  json["segments_go_up"] = options.segments_go_up;
  json["timed"] = options.timed;
  json["tempo"] = static_cast<int>(options.schedule);
  json["seed"] = setting.seed;
  json["values"] = static_cast<int>(options.values);
  json["log"] = files.log.string();
  json["trace"] = options.trace.empty() ? "" : std::filesystem::absolute(options.trace).string();
  json["snapshot"] =
      options.snapshot.empty() ? "" : std::filesystem::absolute(options.snapshot).string();
  json["summary"] = files.summary.string();
  return json.dump();
}

// Called after fork. Returns only if the interpreter cannot be started.
void become(const Options& options, const std::filesystem::path& launcher) {
  std::vector<std::string> words = {options.python, launcher.string()};
  words.insert(words.end(), options.script.begin(), options.script.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
}

// Called after fork. Sends the output of this process to the file.
void print_to(const std::filesystem::path& file) {
  const int output = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (output < 0 || ::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0) {
    ::_exit(kResourceMissing);
  }
  ::close(output);
}

volatile pid_t script = 0;

// Passes signals on to the script. A time limit ends only this process, and the script's log must
// still be judged.
void pass_on_to(pid_t child) {
  script = child;
  struct sigaction action {};
  action.sa_handler = [](int signal) { ::kill(script, signal); };
  for (const int signal : {SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
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
  std::vector<const char*> files(std::begin(kPreloaded), std::end(kPreloaded));
  files.insert(files.end(), {"launch.py", "ferry_policies.py"});
  for (const char* file : files) {
    if (!std::filesystem::exists(libraries / file, unread)) {
      return "there is no " + (libraries / file).string() + ": build Ferry with LibTorch";
    }
  }
  return "";
}

int run_script(const Options& options, const Setting& setting,
               const std::filesystem::path& libraries, const Files& files) {
  ::setenv("FERRY_VIRTUAL_GPU", settings(options, setting, libraries, files).c_str(), 1);
  const std::string preloaded = preload(libraries);
  ::setenv("FERRY_VIRTUAL_GPU_ASKING", files.asking.c_str(), 1);
  // The terminal sends Ctrl-C to both processes; the script decides what it does.
  std::signal(SIGINT, SIG_IGN);
  const pid_t child = ::fork();
  if (child < 0) fail("cannot start a process");
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    ::setenv("LD_PRELOAD", preloaded.c_str(), 1);
    if (!setting.allocator.empty()) {
      ::setenv("PYTORCH_CUDA_ALLOC_CONF", setting.allocator.c_str(), 1);
      ::unsetenv("PYTORCH_ALLOC_CONF");  // it would take precedence
    }
    if (!files.output.empty()) print_to(files.output);
    become(options, libraries / "launch.py");
    std::perror(("ferry run: cannot run " + options.python).c_str());
    ::_exit(kResourceMissing);
  }
  pass_on_to(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("cannot wait for the script");
  }
  return WIFSIGNALED(status) ? kStoppedBase + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace ferry::vgpu
