#include "tests/real/train/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "formats/text_file.h"

namespace ferry::real::train::test {

namespace fs = std::filesystem;

namespace {

std::string temporary() {
  std::string name = ::testing::TempDir() + "/ferry_train_XXXXXX";
  const int file = mkstemp(name.data());
  close(file);
  return name;
}

void redirect(int descriptor, const std::string& file) {
  const int target = open(file.c_str(), O_WRONLY | O_TRUNC);
  dup2(target, descriptor);
  close(target);
}

}  // namespace

Child::Child(std::vector<std::string> argv) : out_file_(temporary()), err_file_(temporary()) {
  std::vector<char*> pointers;
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  process_ = fork();
  if (process_ != 0) return;
  redirect(STDOUT_FILENO, out_file_);
  redirect(STDERR_FILENO, err_file_);
  execv(pointers[0], pointers.data());
  _exit(126);
}

Child::~Child() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  unlink(out_file_.c_str());
  unlink(err_file_.c_str());
}

void Child::wait_for_lines(std::size_t lines) {
  const auto has = [&] {
    const std::string text = read_file(out_file_);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) >= lines;
  };
  siginfo_t ended{};
  while (!has() && ended.si_pid == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
}

void Child::signal(int signal) const { kill(process_, signal); }

Result Child::end() {
  int status = 0;
  waitpid(std::exchange(process_, -1), &status, 0);
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_file(out_file_),
          .err = read_file(err_file_)};
}

Result run(std::vector<std::string> argv) { return Child(std::move(argv)).end(); }

std::vector<std::string> ferry_train_argv(const std::string& arguments) {
  std::vector<std::string> argv = {FERRY_TRAIN_PROGRAM};
  std::istringstream words(arguments);
  for (std::string word; words >> word;) argv.push_back(word);
  return argv;
}

Options parse(const std::string& arguments) {
  const std::vector<std::string> words = ferry_train_argv(arguments);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_options(static_cast<int>(argv.size()), argv.data()).value();
}

Result ferry_train(const std::string& arguments) { return run(ferry_train_argv(arguments)); }

Folder::Folder() : folder_(::testing::TempDir() + "/ferry_train_folder_XXXXXX") {
  if (mkdtemp(folder_.data()) == nullptr) std::abort();
  fs::create_directories(text());
  std::string words;
  for (int i = 0; i < 400; ++i) words += "the " + std::to_string(i * i % 17) + " ships sail. ";
  write("text/words.txt", words);
}

Folder::~Folder() { fs::remove_all(folder_); }

void Folder::write(const std::string& name, const std::string& content) const {
  fs::create_directories(fs::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << content;
}

}  // namespace ferry::real::train::test
