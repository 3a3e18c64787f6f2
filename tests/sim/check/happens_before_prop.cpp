// The checker against its definition: a graph of ops, "happens before" as reachability in it, and
// the rules of conflict byte by byte. No clocks, no ranges.
#include "sim/check/happens_before.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace ferry::check {
namespace {

constexpr std::size_t kOps = 128, kBytes = 16;
constexpr std::uint32_t kStreams = 3, kEvents = 3;
constexpr int kHostActor = -1;
using Draw = std::array<std::uint32_t, 6>;
using OpSet = std::bitset<kOps>;
using Verdicts = std::set<std::tuple<HazardKind, std::uint64_t, std::uint64_t>>;

// Half of the bytes are the device's, half the host's; a range has at most 4.
Range range_of(std::uint32_t draw) {
  const std::uint64_t base = draw % 2 == 0 ? 0 : kHostBase;
  const std::uint64_t at = draw / 2 % (kBytes / 2);
  return {base + at, std::min<std::uint64_t>(kBytes / 2 - at, draw / 16 % 5)};
}
std::size_t byte_index(std::uint64_t address) {
  return is_host(address) ? kBytes / 2 + (address - kHostBase) : address;
}

struct Call {
  StreamOp op;  // without its spans
  std::vector<Range> reads, writes;
};

// A legal pool: hands out what is free, takes back and marks what is in use.
Call decode(const Draw& d, std::vector<Range>& live) {
  Call call;
  StreamOp& op = call.op;
  op.stream = StreamId{d[1] % kStreams};
  op.event = EventId{d[2] % kEvents};
  op.range = range_of(d[3]);
  const auto pick = live.empty() ? live.end() : live.begin() + d[4] % live.size();
  switch (d[0] % 16) {
    case 0:
    case 1:
      op.kind = StreamOpKind::kRecord;
      break;
    case 2:
    case 3:
      op.kind = StreamOpKind::kWait;
      break;
    case 4:
      op.kind = d[5] % 2 == 0 ? StreamOpKind::kEventSync : StreamOpKind::kStreamSync;
      break;
    case 5:
      op.kind = d[5] % 2 == 0 ? StreamOpKind::kHostRead : StreamOpKind::kHostWrite;
      break;
    case 6:
    case 7:
    case 8: {
      const std::uint64_t base = d[3] % 2 == 0 ? 0 : kHostBase;
      op.kind = StreamOpKind::kAlloc;
      op.range = {base + d[4] % 4 * 2, d[5] % 2 == 0 || d[4] % 4 == 3 ? 2u : 4u};
      for (const Range& other : live) {
        const bool meet = other.address < op.range.end() && op.range.address < other.end();
        if (meet) op.range.bytes = 0;
      }
      if (op.range.bytes != 0) live.push_back(op.range);
      break;
    }
    case 9:
    case 10:
      op.kind = StreamOpKind::kFree;
      op.range = pick == live.end() ? Range{} : *pick;
      if (pick != live.end()) live.erase(pick);
      break;
    case 11:
      op.kind = StreamOpKind::kRecordUse;
      op.range = pick == live.end() ? Range{} : Range{pick->address + d[5] % 2, 1};
      break;
    default:
      op.kind = d[0] % 2 == 0 ? StreamOpKind::kKernel : StreamOpKind::kCopy;
      call.reads = {range_of(d[2]), range_of(d[3])};
      call.writes = {range_of(d[4]), range_of(d[5])};
      call.reads.resize(d[2] / 128 % 3);
      call.writes.resize(d[4] / 128 % 3);
  }
  return call;
}

class Oracle {
 public:
  Verdicts verdicts;

  void operator()(const Call& call) {
    const StreamOp& op = call.op;
    const std::size_t stream = static_cast<std::size_t>(op.stream);
    const std::size_t event = static_cast<std::size_t>(op.event);
    before_[now_] = closure(last_host_);
    switch (op.kind) {
      case StreamOpKind::kKernel:
      case StreamOpKind::kCopy:
        follow(last_on_[stream]);
        access(static_cast<int>(stream), call.reads, call.writes);
        break;
      case StreamOpKind::kHostRead:
        access(kHostActor, {op.range}, {});
        last_host_ = now_;
        break;
      case StreamOpKind::kHostWrite:
        access(kHostActor, {}, {op.range});
        last_host_ = now_;
        break;
      case StreamOpKind::kRecord:
        follow(last_on_[stream]);
        last_on_[stream] = record_of_[event] = now_;
        break;
      case StreamOpKind::kWait:
        follow(last_on_[stream]);
        follow(record_of_[event]);
        last_on_[stream] = now_;
        break;
      case StreamOpKind::kEventSync:
        follow(record_of_[event]);
        last_host_ = now_;
        break;
      case StreamOpKind::kStreamSync:
        follow(last_on_[stream]);
        last_host_ = now_;
        break;
      default:
        memory(op);
    }
    if (op.kind == StreamOpKind::kKernel || op.kind == StreamOpKind::kCopy) {
      last_on_[stream] = now_;
    }
    now_++;
  }

 private:
  using Node = std::optional<std::size_t>;
  struct Byte {
    Node write;
    std::map<int, std::size_t> reads;  // since then: the last of each stream, and the host's
    std::size_t since = 0;             // the last alloc or free
    std::optional<OpSet> done;         // what the pool promised to wait for
  };
  struct Block {
    Range range;
    std::size_t owner;
    std::set<std::size_t> uses;
  };

  OpSet closure(Node node) const {
    if (!node) return {};
    OpSet all = before_[*node];
    return all.set(*node);
  }
  void follow(Node node) { before_[now_] |= closure(node); }
  bool unordered(std::size_t op) const { return op != now_ && !before_[now_][op]; }

  void access(int actor, const std::vector<Range>& reads, const std::vector<Range>& writes) {
    std::set<std::tuple<HazardKind, std::size_t>> found;
    for (const Range& range : reads) {
      for (std::uint64_t at = range.address; at < range.end(); ++at) {
        Byte& b = bytes_[byte_index(at)];
        const auto own = b.reads.find(actor);
        const bool known = own != b.reads.end() && own->second >= b.since;
        if (b.write && unordered(*b.write) && !known) {
          const bool reuse = *b.write < b.since;
          found.emplace(reuse ? HazardKind::kReuse : HazardKind::kReadAfterWrite, *b.write);
        }
        b.reads[actor] = now_;
      }
    }
    for (const Range& range : writes) {
      for (std::uint64_t at = range.address; at < range.end(); ++at) {
        Byte& b = bytes_[byte_index(at)];
        const auto note = [&](HazardKind kind, std::size_t earlier) {
          if (!unordered(earlier)) return;
          if (is_host(at)) kind = HazardKind::kHostRewrite;
          if (earlier < b.since) kind = HazardKind::kReuse;
          found.emplace(kind, earlier);
        };
        for (const auto& [who, read] : b.reads) note(HazardKind::kWriteAfterRead, read);
        if (b.reads.empty() && b.write) note(HazardKind::kWriteAfterWrite, *b.write);
        b.write = now_;
        b.reads.clear();
      }
    }
    for (const auto& [kind, earlier] : found) {
      const bool same_mistake = kind == HazardKind::kWriteAfterWrite &&
                                found.contains({HazardKind::kReadAfterWrite, earlier});
      if (!same_mistake) verdicts.emplace(kind, earlier, now_);
    }
  }

  void memory(const StreamOp& op) {
    const std::size_t stream = static_cast<std::size_t>(op.stream);
    if (op.range.bytes == 0) return;
    std::size_t i = 0;  // the block that the range lies in
    while (i < blocks_.size() && !(blocks_[i].range.address <= op.range.address &&
                                   op.range.end() <= blocks_[i].range.end())) {
      ++i;
    }
    if (op.kind == StreamOpKind::kAlloc) {
      blocks_.push_back({op.range, is_host(op.range.address) ? kStreams : stream, {}});
    } else if (op.kind == StreamOpKind::kRecordUse) {
      if (blocks_[i].owner != stream) blocks_[i].uses.insert(stream);
      return;
    }
    for (std::uint64_t at = op.range.address; at < op.range.end(); ++at) {
      Byte& b = bytes_[byte_index(at)];
      b.since = now_;
      if (op.kind == StreamOpKind::kFree) {
        if (blocks_[i].uses.empty()) continue;
        b.done = closure(last_host_);
        for (const std::size_t use : blocks_[i].uses) *b.done |= closure(last_on_[use]);
      } else if (b.done) {
        if (b.write && (*b.done)[*b.write]) b.write.reset();
        std::erase_if(b.reads, [&](const auto& read) { return (*b.done)[read.second]; });
        b.done.reset();
      }
    }
    if (op.kind == StreamOpKind::kFree) {
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  std::size_t now_ = 0;
  std::array<OpSet, kOps> before_;
  std::array<Node, kStreams> last_on_;
  std::array<Node, kEvents> record_of_;
  Node last_host_;
  std::array<Byte, kBytes> bytes_;
  std::vector<Block> blocks_;
};

void check(std::vector<Draw> draws) {
  if (draws.size() > kOps) draws.resize(kOps);
  HappensBefore checker;
  Oracle oracle;
  std::vector<Range> live;
  std::size_t number = 0;
  for (const Draw& draw : draws) {
    Call call = decode(draw, live);
    const std::string name = std::to_string(number++);  // every pair of ops is a report of its own
    call.op.name = name;
    call.op.reads = call.reads;
    call.op.writes = call.writes;
    checker(call.op);
    oracle(call);
  }
  Verdicts found;
  for (const Hazard& h : checker.hazards()) {
    RC_ASSERT(h.count == 1u);
    RC_ASSERT(found.emplace(h.kind, h.earlier.op, h.later.op).second);
  }
  RC_ASSERT(found == oracle.verdicts);
}

TEST(HappensBeforeProp, IsReachability) {
  EXPECT_TRUE(rc::check("the checker and the graph give the same verdicts", [] {
    // Many programs in each case: 100 are too few for what needs a free between two waits.
    const auto program = rc::gen::container<std::vector<Draw>>(rc::gen::arbitrary<Draw>());
    const auto programs =
        *rc::gen::resize(100, rc::gen::container<std::vector<std::vector<Draw>>>(50, program));
    for (const std::vector<Draw>& draws : programs) check(draws);
  }));
}

}  // namespace
}  // namespace ferry::check
