// A program that loads a module and shares strings and exceptions with it: host MODULE
#include <dlfcn.h>

#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "tests/oldest/guest.h"

namespace {

void throws(int kind) {
  switch (kind) {
    case 0:
      throw std::runtime_error("a runtime error");
    case 1:
      throw std::out_of_range("out of range");
    case 2:
      throw std::system_error(std::make_error_code(std::errc::invalid_argument));
    case 3:
      throw std::filesystem::filesystem_error("no file", "/a/path", std::error_code());
    default:
      throw std::bad_alloc();
  }
}

template <typename Function>
Function* symbol(void* module, const char* name) {
  return reinterpret_cast<Function*>(dlsym(module, name));
}

}  // namespace

int main(int, char** arguments) {
  // Before glibc 2.34 a process has threads from its start, or libstdc++ believes that it has none.
  std::thread([] {}).join();
  void* module = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    std::cerr << dlerror() << '\n';
    return 1;
  }
  std::string said;
  symbol<decltype(guest_catches)>(module, "guest_catches")(throws, said);
  symbol<decltype(guest_uses)>(module, "guest_uses")(said);
  try {
    symbol<decltype(guest_throws)>(module, "guest_throws")();
  } catch (const std::runtime_error& error) {
    said += std::string(", ") + error.what();
  }
  said.shrink_to_fit();
  std::cout << said << std::endl;
}
