#include "tests/oldest/guest.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <memory_resource>
#include <mutex>
#include <random>
#include <semaphore>
#include <sstream>
#include <stdexcept>
#include <syncstream>
#include <system_error>
#include <thread>

void guest_catches(ferry::oldest::Thrower thrower, std::string& said) {
  for (int kind = 0; kind < ferry::oldest::thrown_kinds; ++kind) {
    try {
      thrower(kind);
    } catch (const std::filesystem::filesystem_error& error) {
      said += error.path1().string() + ", ";
    } catch (const std::system_error& error) {
      said += error.code().message() + ", ";
    } catch (const std::runtime_error& error) {
      said += std::string(error.what()) + ", ";
    } catch (const std::logic_error& error) {
      said += std::string(error.what()) + ", ";
    } catch (const std::exception& error) {
      said += error.what();
    }
  }
}

void guest_uses(std::string& said) {
  // Numbers and text: GCC 11's, as text without an end; exp, log and pow are glibc 2.29's.
  char text[64];
  char* const end = std::to_chars(text, text + sizeof text, 0.1).ptr;
  double read = 0;
  std::from_chars(text, end, read);
  std::ostringstream out;
  out << read << ' ' << std::exp(std::log(read)) + std::pow(read, 2.5) + std::exp2(read) << ' ';
  said += std::move(out).str();

  // Files: GCC 9's, and newer.
  for (const auto& entry : std::filesystem::recursive_directory_iterator("/etc/apt")) {
    if (entry.path().filename() == "sources.list.d") said += entry.path().string() + ' ';
  }

  // Memory, threads and chance.
  std::pmr::monotonic_buffer_resource memory;
  const std::pmr::string in_memory("a text for which there is no room in the object", &memory);
  std::counting_semaphore<4> ready(0);
  std::ostringstream shared;
  std::thread other([&] {
    std::osyncstream(shared) << in_memory.size();
    ready.release();
  });
  ready.acquire();
  other.join();
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable changed;
  changed.wait_for(lock, std::chrono::milliseconds(1));
  std::random_device device;
  said += shared.str() + (device() == device() && device() == device() ? " no chance" : "");
}

void guest_throws() { throw std::runtime_error("the module's"); }
