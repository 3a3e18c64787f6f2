// The program's own memory, which gives out where a test says so: `operator new` of this test
// program then throws std::bad_alloc, on the calling thread alone.
#pragma once

#include <cstdint>

namespace ferry::test {

// From here on so many more allocations succeed, and then none, until its end.
class HeapGivesOut {
 public:
  explicit HeapGivesOut(std::int64_t after = 0) noexcept;
  HeapGivesOut(const HeapGivesOut&) = delete;
  HeapGivesOut& operator=(const HeapGivesOut&) = delete;
  ~HeapGivesOut();
};

// Of what is not under test: there is memory in here.
class HeapSpares {
 public:
  HeapSpares() noexcept;
  HeapSpares(const HeapSpares&) = delete;
  HeapSpares& operator=(const HeapSpares&) = delete;
  ~HeapSpares();

 private:
  const std::int64_t before_;
};

}  // namespace ferry::test
