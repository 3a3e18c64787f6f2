// Small logs with their verdict test the rules of formats/STREAM_LOG.md on memory: when its bytes
// may be used, given back, and given out again.
#include "sim/check/log_check.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/sim/check/log_lines.h"

namespace ferry::check {
namespace {

using test::declare;
using test::found;
using test::judge;
using test::transfer;

TEST(LogCheck, BytesAreReused) {
  judge({
      {{"alloc a X", "R b X", "free a X", "alloc a X", "W a X"}, "reuse 2→5"},
      {{"alloc a X", "W a X", "free a X", "alloc a X", "W a X"}, ""},
      {{"alloc a X", "R b X", "+e b", "-e a", "free a X", "alloc a X", "W a X"}, ""},
      {{"alloc a X", "R b X", "use b X", "free a X", "alloc a X", "W a X"}, ""},
      {{"alloc a X", "R b X", "use c X", "free a X", "alloc a X", "W a X"}, "reuse 2→6"},
      {{"alloc a X", "W b X", "free a X", "alloc a X", "R a X"}, "reuse 2→5"},
      {{"alloc a X", "HR X", "free a X", "@u alloc a X", "@u W a X"}, "reuse 2→5"},
      // Two streams' blocks.
      {{"alloc a X", "W a X", "free a X", "alloc b X", "W b X"}, "reuse 2→5"},
      // cudaFree waits.
      {{"alloc a X malloc", "R b X", "free a X malloc", "alloc a X malloc", "W a X"}, ""},
      {{"alloc a X malloc", "R b X", "free a X malloc", "alloc a X", "W a X"}, ""},
      {{"alloc a X malloc", "R b X", "free a X", "alloc a X", "W a X"}, "reuse 2→5"},
  });
}

// cudaMallocAsync and cudaFreeAsync are work of their stream.
TEST(LogCheck, AStreamOrderedAllocationComesBeforeItsUses) {
  judge({
      {{"alloc a X async", "W a X"}, ""},
      {{"alloc a X async", "W b X"}, "use before the allocation 1→2"},
      {{"alloc a X async", "R b X"}, "use before the allocation 1→2"},
      {{"alloc a X async", "+e a", "-e b", "W b X"}, ""},
      {{"alloc a X async", "W a X", "+e a", "-e b", "R b X"}, ""},
      {{"alloc a X async", "R a X", "W b X"},
       "use before the allocation 1→3; write after read 2→3"},
      {{"alloc a X", "W b X"}, ""},  // the caching pool's promise is none of the stream's
  });
}

TEST(LogCheck, AStreamOrderedFreeComesAfterTheUses) {
  const std::vector<std::string> used = {"alloc a X async", "+e a", "-e b", "R b X"};
  const auto then = [&](const std::vector<std::string>& more) {
    std::vector<std::string> log = used;
    log.insert(log.end(), more.begin(), more.end());
    return log;
  };
  judge({
      {then({"free a X async"}), "free under a use 4→5"},
      {then({"free b X async"}), ""},
      {then({"+f b", "-f a", "free a X async"}), ""},
      {then({"use b X", "free a X async"}), ""},
      {then({"use c X", "free a X async"}), "free under a use 4→6"},
      {{"alloc a X async", "free b X async"}, "free under a use 1→2"},
      // What was reported with the free is not reported again.
      {then({"free a X async", "alloc a X async", "W a X"}), "free under a use 4→5"},
  });
}

// The driver has the next owner wait; it was a false alarm that nobody could mend.
TEST(LogCheck, AStreamOrderedReuseIsTheDriversToOrder) {
  judge({
      {{"alloc a X async", "W a X", "free a X async", "alloc b X async", "W b X"}, ""},
      // But with other timing b would have been given other bytes, and waited for nothing.
      {{"W a y", "alloc a X async", "free a X async", "alloc b X async", "R b y"},
       "read after write 1→5"},
      {{"alloc a X", "R b X", "free a X", "alloc a X async", "W a X"}, "reuse 2→5"},
  });
}

TEST(LogCheck, HostMemoryUnderACopy) {
  judge({
      {{"alloc s X host", transfer("pinned X", "device y"), "HW X"}, "rewrite under a copy 2→3"},
      {{"alloc s X host", transfer("pinned X", "device y"), "sync s", "HW X"}, ""},
      {{"alloc s X host", transfer("pinned X", "device y"), "free s X host"},
       "free under a copy 2→3"},
      {{"alloc s X host", transfer("pinned X", "device y"), "sync s", "free s X host"}, ""},
      {{"alloc s X host", transfer("pinned X", "device y"), "use s X", "free s X host"}, ""},
      // The free was reported: the next owner is not to blame.
      {{"alloc s X host", transfer("pinned X", "device y"), "free s X host", "alloc s X host",
        "HW X"},
       "free under a copy 2→3"},
      {{"alloc s X", transfer("device X", "pinned h"), "free s X"}, ""},
  });
}

TEST(LogCheck, Lifetimes) {
  const auto bytes = [](int address, int count) {
    return R"({"op":"host_read","buffer":{"address":)" + std::to_string(address) +
           ",\"bytes\":" + std::to_string(count) + "}}";
  };
  judge({
      {{"alloc a A", "free a A", "R a A"}, "use after free 2→3"},
      {{"alloc a A", "free a A", "use b A"}, "use after free 2→3"},
      {{"alloc a A", "free a A", "alloc a A", "R a A"}, ""},
      {{"alloc a A", "free a A", "free a A"}, "double free 2→3"},
      {{"free a A", "R a A"}, ""},  // not the log's
      {{"alloc a A", bytes(1008, 8)}, ""},
      {{"alloc a A", bytes(1008, 9)}, "use outside an allocation 1→2"},
      {{"alloc a A", bytes(999, 9)}, "use outside an allocation 1→2"},
      {{"alloc a A", bytes(1016, 9)}, ""},
      {{"alloc a A", "free a A", bytes(1016, 0), bytes(1000, 0)}, ""},
      {{"alloc a A malloc", "free a A malloc", "R a A"}, "use after free 2→3"},
  });
}

TEST(LogCheck, APoolGivesOutWhatAnotherOneAllocated) {
  const auto memory = [](const std::string& op, int address, int bytes, const std::string& pool) {
    return "{\"op\":\"" + op + "\",\"stream\":\"a\",\"address\":" + std::to_string(address) +
           ",\"bytes\":" + std::to_string(bytes) + ",\"pool\":\"" + pool + "\"}";
  };
  const std::string segment = memory("alloc", 1000, 4000, "malloc");
  judge({
      {{segment, "alloc a A", "alloc a B", "W a A", "free a A", "free a B",
        memory("free", 1000, 4000, "malloc")},
       ""},
      {{segment, "alloc a A", "free a A", "W a A"}, "use after free 3→4"},
      {{segment, "alloc a A", "free a A", memory("free", 1000, 4000, "malloc"), "W a A"},
       "use after free 4→5"},
      {{segment, "alloc a A", "free a A", memory("free", 1000, 4000, "malloc"),
        memory("alloc", 1000, 4000, "malloc"), "W a A"},
       ""},
  });
}

TEST(LogCheck, ADestroyedStream) {
  judge({
      {{"W a x", "destroy a", "W a x"}, "use of a destroyed stream 2→3"},
      {{"W a x", "destroy a", "destroy a"}, "use of a destroyed stream 2→3"},
      {{"W a x", "destroy a", "+e a"}, "use of a destroyed stream 2→3"},
      {{"W a x", "destroy a", declare("a", "nonblocking"), "W a y"}, ""},
      // The new one is another stream: destroying waited for nothing.
      {{"W a x", "destroy a", declare("a", "nonblocking"), "R a x"}, "read after write 1→4"},
      {{"W a x", "destroy a", "device_sync", "HR x"}, ""},
      {{"alloc a A", "destroy a", "free a A"}, ""},
  });
}

TEST(LogCheck, LeaksAreReportedWhereAsked) {
  EXPECT_EQ(found({"alloc a A", "alloc a B", "free a B"}), "");
  EXPECT_EQ(found({"alloc a A", "alloc a B", "free a B"}, true), "leak 0→1");
  EXPECT_EQ(found({"alloc a A malloc"}, true), "leak 0→1");
  EXPECT_EQ(found({"alloc a A", "free a A"}, true), "");
}

}  // namespace
}  // namespace ferry::check
