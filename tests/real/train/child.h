// A program run as a child, as its users run it: with its output, its exit status, and signals.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "real/train/options.h"

namespace ferry::real::train::test {

struct Result {
  int code = 0;  // 128 + the signal's number where a signal ended it
  std::string out;
  std::string err;
};

class Child {
 public:
  // argv[0] is the program's path. stdout and stderr go to files of their own.
  explicit Child(std::vector<std::string> argv);
  ~Child();  // kills it, where it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Until stdout has so many lines, or the child has ended.
  void wait_for_lines(std::size_t lines);
  void signal(int signal) const;
  Result end();  // waits

 private:
  std::string out_file_;
  std::string err_file_;
  pid_t process_ = -1;
};

Result run(std::vector<std::string> argv);

// `ferry-train` with these arguments, one thread, small.
Result ferry_train(const std::string& arguments);
std::vector<std::string> ferry_train_argv(const std::string& arguments);
// What it reads of them.
Options parse(const std::string& arguments);

// A folder of the test's own, with a text to learn in text/; gone at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string text() const { return path("text"); }
  void write(const std::string& name, const std::string& content) const;

 private:
  std::string folder_;
};

}  // namespace ferry::real::train::test
