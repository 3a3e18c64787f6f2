// The engine against an evaluator that is too slow to be wrong: it goes from nanosecond to
// nanosecond. And against itself: however far the host had advanced between two submissions, and
// whether or not the engine could run ahead, the digest is the same.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "sim/gpu/engine.h"

namespace ferry::sim {
namespace {

enum { kKernel, kDown, kUp, kPeer, kRecord, kWait, kAdvance, kHostWait };  // the first as OpKind

struct Step {
  int kind = 0;  // as kKernel and what follows
  std::uint32_t stream = 0;
  std::uint32_t from = 0;   // the device that a peer copy reads
  std::int64_t value = 0;   // ns, bytes, or which of the earlier signals
  std::int64_t memory = 0;  // ns that a kernel's bytes take
  std::int64_t pause = 0;   // of the host, before it
};

struct Place {
  LinkRates link;
  PortId port = kNoPort;
  PeerRates peer;
  std::int64_t memory = 0;  // its rate
};

struct Case {
  std::vector<PortRates> ports;
  std::vector<Place> devices;
  std::vector<std::uint32_t> streams;  // their devices
  std::vector<Step> steps;
};

std::ostream& operator<<(std::ostream& out, const Step& s) {
  return out << '{' << s.kind << " s" << s.stream << " f" << s.from << " v" << s.value << " m"
             << s.memory << " +" << s.pause << '}';
}
std::ostream& operator<<(std::ostream& out, const Case& c) {
  for (const PortRates& port : c.ports) {
    out << "port " << port.up_bytes_per_us << ' ' << port.down_bytes_per_us << "; ";
  }
  for (const Place& d : c.devices) {
    const LinkRates& r = d.link;
    out << "rates " << r.h2d_alone << ' ' << r.d2h_alone << ' ' << r.h2d_both << ' ' << r.d2h_both
        << " latency " << r.latency_ns << " peer " << d.peer.bytes_per_us << " latency "
        << d.peer.latency_ns << " memory " << d.memory;
    if (d.port != kNoPort) out << " port " << static_cast<std::uint32_t>(d.port);
    out << "; ";
  }
  for (const std::uint32_t device : c.streams) out << "on " << device << ", ";
  for (const Step& step : c.steps) out << step << ' ';
  return out;
}

template <class T>
rc::Gen<T> within(T low, T high) {  // both ends included, whatever the size
  return rc::gen::resize(100, rc::gen::inRange<T>(low, high + 1));
}

rc::Gen<Case> cases() {
  const auto rate = within<std::int64_t>(200, 2000);
  const auto link = rc::gen::apply(
      [](auto a, auto b, auto c, auto d, Time latency, bool steady) {
        return steady ? LinkRates{a, b, a, b, latency} : LinkRates{a, b, c, d, latency};
      },
      rate, rate, rate, rate, within<Time>(0, 5), rc::gen::arbitrary<bool>());
  // Of ports and peer links, now and then none; of a memory, at times less than copies may take.
  const auto memory =
      rc::gen::oneOf(rc::gen::just<std::int64_t>(0), rate, within<std::int64_t>(2000, 100'000));
  const auto place = rc::gen::apply(
      [](LinkRates rates, std::uint32_t port, bool linked, std::int64_t peer, Time latency,
         std::int64_t bytes_per_us) {
        return Place{rates, PortId{port}, {linked ? peer : 0, latency}, bytes_per_us};
      },
      link, within<std::uint32_t>(0, 3), rc::gen::arbitrary<bool>(), rate, within<Time>(0, 5),
      memory);
  const auto port = rc::gen::apply(
      [](auto up, auto down) {
        return PortRates{up, down};
      },
      rate, rate);
  const auto step = rc::gen::build<Step>(
      rc::gen::set(&Step::kind, within<int>(kKernel, kHostWait)),
      rc::gen::set(&Step::stream, within<std::uint32_t>(0, 99)),
      rc::gen::set(&Step::from, within<std::uint32_t>(0, 99)),
      rc::gen::set(&Step::value, within<std::int64_t>(0, 30)),
      rc::gen::set(&Step::memory, within<std::int64_t>(0, 40)),
      rc::gen::set(&Step::pause, rc::gen::oneOf(rc::gen::just<Time>(0), within<Time>(0, 20))));
  return rc::gen::apply(
      [](std::vector<PortRates> ports, std::vector<Place> devices,
         std::vector<std::uint32_t> streams, std::vector<Step> steps) {
        Case c{std::move(ports), std::move(devices), std::move(streams), std::move(steps)};
        c.streams.push_back(0);
        const auto count = static_cast<std::uint32_t>(c.devices.size());
        for (std::uint32_t& device : c.streams) device %= count;
        for (Place& d : c.devices) {
          if (static_cast<std::size_t>(d.port) >= c.ports.size()) d.port = kNoPort;
        }
        for (Step& s : c.steps) {
          s.stream %= static_cast<std::uint32_t>(c.streams.size());
          s.from %= count;
          if (s.kind == kPeer && s.from == c.streams[s.stream]) s.kind = kKernel;
        }
        return c;
      },
      rc::gen::mapcat(within<std::size_t>(0, 2),
                      [=](std::size_t ports) {
                        return rc::gen::container<std::vector<PortRates>>(ports, port);
                      }),
      rc::gen::mapcat(within<std::size_t>(1, 3),
                      [=](std::size_t devices) {
                        return rc::gen::container<std::vector<Place>>(devices, place);
                      }),
      rc::gen::resize(5,
                      rc::gen::container<std::vector<std::uint32_t>>(within<std::uint32_t>(0, 2))),
      rc::gen::resize(60, rc::gen::container<std::vector<Step>>(step)));
}

// An operation as it was submitted.
struct Given {
  int kind;
  std::uint32_t stream;
  std::uint32_t from;
  std::int64_t value;
  std::int64_t memory;
  Time not_before;
};

// ------------------------------------------------------------------------------------------------
// From nanosecond to nanosecond.

struct Naive {
  struct Copy {
    std::int64_t latency, thousandths;
  };
  // One direction of the link, the peer link or the port of that number.
  enum Way { kLinkUp, kLinkDown, kPeerOut, kPeerIn, kPortUp, kPortDown };
  using Crossed = std::pair<Way, std::uint32_t>;
  struct Unit {
    int running = -1;          // the operation on it
    Time start = 0, left = 0;  // of a kernel: thousandths of its ns
    std::int64_t rate = 0;
    Copy copy{};
    std::vector<Crossed> crossed{};
  };
  const Case& c;
  const std::vector<Given>& given;
  std::vector<std::deque<std::size_t>> queues;
  std::vector<Time> ready;    // of each stream's head; -1: not reached
  std::vector<Time> signals;  // of each operation that is a record
  std::vector<Unit> units;
  std::uint64_t digest = 0;
  Time makespan = 0;

  Naive(const Case& the_case, const std::vector<Given>& ops)
      : c(the_case),
        given(ops),
        queues(c.streams.size()),
        ready(c.streams.size(), -1),
        signals(ops.size(), -1),
        units(c.devices.size() * 4) {
    for (std::size_t i = 0; i < ops.size(); ++i) queues[ops[i].stream].push_back(i);
    for (Time now = 0; !finished(); ++now) tick(now);
  }

  bool finished() const {
    return std::all_of(queues.begin(), queues.end(), [](const auto& q) { return q.empty(); });
  }
  void over(std::size_t op, Time start, Time now) {
    digest += op_digest(op, start, now);
    makespan = now;
    queues[given[op].stream].pop_front();
    ready[given[op].stream] = -1;
  }
  void tick(Time now) {
    for (Unit& unit : units) {
      if (unit.running < 0) continue;
      const bool copy = given[static_cast<std::size_t>(unit.running)].kind != kKernel;
      if (copy ? unit.copy.latency > 0 || unit.copy.thousandths > 0 : unit.left > 0) continue;
      over(static_cast<std::size_t>(unit.running), unit.start, now);
      unit.running = -1;
    }
    while (pass_all(now)) {
    }
    for (std::size_t u = 0; u < units.size(); ++u) start(u, now);
    for (std::size_t u = 0; u < units.size(); ++u) set_rate(u);
    for (std::size_t u = 0; u < units.size(); ++u) progress(u);
  }
  bool pass_all(Time now) {
    bool any = false;
    for (std::size_t s = 0; s < queues.size(); ++s) {
      if (queues[s].empty() || given[queues[s].front()].not_before > now) continue;
      const std::size_t op = queues[s].front();
      if (ready[s] < 0) ready[s] = now;
      const bool signalled =
          given[op].kind == kWait && signals[static_cast<std::size_t>(given[op].value)] >= 0;
      if (given[op].kind != kRecord && !signalled) continue;
      if (given[op].kind == kRecord) signals[op] = now;
      over(op, ready[s], now);
      any = true;
    }
    return any;
  }
  void start(std::size_t u, Time now) {
    Unit& unit = units[u];
    if (unit.running >= 0) return;
    std::size_t best = given.size();
    for (std::size_t s = 0; s < queues.size(); ++s) {
      if (queues[s].empty() || ready[s] < 0 || c.streams[s] != u / 4) continue;
      const std::size_t op = queues[s].front();
      if (given[op].kind != static_cast<int>(u % 4)) continue;
      if (best == given.size() ||
          std::pair(ready[s], op) < std::pair(ready[given[best].stream], best)) {
        best = op;
      }
    }
    if (best == given.size()) return;
    unit.running = static_cast<int>(best);
    unit.start = now;
    unit.left = 1000 * std::max<Time>(given[best].value, 1);
    unit.crossed = u % 4 == kKernel ? std::vector<Crossed>{} : crosses(given[best]);
    const Place& here = c.devices[u / 4];
    const bool by_peer_link = !unit.crossed.empty() && unit.crossed[0].first == kPeerOut;
    unit.copy = {by_peer_link ? here.peer.latency_ns : here.link.latency_ns,
                 std::max<Time>(given[best].value * 1000, 1)};
  }
  std::vector<Crossed> crosses(const Given& g) const {
    const std::uint32_t here = c.streams[g.stream];
    const std::uint32_t from = g.kind == kPeer ? g.from : here;
    if (g.kind == kPeer && c.devices[from].peer.bytes_per_us > 0 &&
        c.devices[here].peer.bytes_per_us > 0) {
      return {{kPeerOut, from}, {kPeerIn, here}};
    }
    std::vector<Crossed> all;
    const auto add = [&](Way link, Way port, std::uint32_t device) {
      all.emplace_back(link, device);
      const PortId on = c.devices[device].port;
      if (on != kNoPort) all.emplace_back(port, static_cast<std::uint32_t>(on));
    };
    if (g.kind != kUp) add(kLinkUp, kPortUp, from);
    if (g.kind != kDown) add(kLinkDown, kPortDown, here);
    return all;
  }
  std::int64_t crossing(Crossed what) const {
    std::int64_t copies = 0;
    for (const Unit& unit : units) {
      if (unit.running < 0) continue;
      copies += std::count(unit.crossed.begin(), unit.crossed.end(), what);
    }
    return copies;
  }
  std::int64_t capacity(Crossed what) const {
    const auto [way, id] = what;
    if (way == kPortUp) return c.ports[id].up_bytes_per_us;
    if (way == kPortDown) return c.ports[id].down_bytes_per_us;
    const Place& d = c.devices[id];
    if (way == kPeerOut || way == kPeerIn) return d.peer.bytes_per_us;
    if (way == kLinkUp) return crossing({kLinkDown, id}) > 0 ? d.link.d2h_both : d.link.d2h_alone;
    return crossing({kLinkUp, id}) > 0 ? d.link.h2d_both : d.link.h2d_alone;
  }
  // Of copies first, whatever the order of the units: kernels get what these leave.
  void set_rate(std::size_t u) {
    Unit& unit = units[u];
    if (unit.running < 0 || u % 4 == kKernel) return;
    unit.rate = capacity(unit.crossed[0]);
    for (const Crossed& way : unit.crossed) {
      unit.rate = std::min(unit.rate, capacity(way) / crossing(way));
    }
  }
  bool touches(const Unit& unit, std::uint32_t device) const {
    const Given& g = given[static_cast<std::size_t>(unit.running)];
    return c.streams[g.stream] == device || (g.kind == kPeer && g.from == device);
  }
  std::int64_t kernel_rate(std::size_t u) const {
    const auto device = static_cast<std::uint32_t>(u / 4);
    const std::int64_t all = c.devices[device].memory;
    std::int64_t copies = 0;
    for (std::size_t other = 0; other < units.size(); ++other) {
      if (other % 4 == kKernel || units[other].running < 0) continue;
      if (touches(units[other], device)) copies += units[other].rate;
    }
    const Given& g = given[static_cast<std::size_t>(units[u].running)];
    const std::int64_t ns = std::max<Time>(g.value, 1);
    const std::int64_t share = (std::min(g.memory, ns) * 1000 + ns - 1) / ns;
    if (all == 0 || copies == 0 || share == 0) return 1000;
    const std::int64_t left = std::max(all - copies, all / 2);
    return std::clamp<std::int64_t>(left * 1'000'000 / (share * all), 1, 1000);
  }
  void progress(std::size_t u) {
    Unit& unit = units[u];
    if (unit.running < 0) return;
    if (u % 4 == kKernel) {
      unit.left -= kernel_rate(u);
    } else if (unit.copy.latency-- <= 0) {
      unit.copy.latency = 0;
      unit.copy.thousandths -= unit.rate;
    }
  }
};

// ------------------------------------------------------------------------------------------------

struct Answer {
  std::uint64_t digest;
  Time makespan;
};

void prepare(Engine& engine, const Case& c) {
  engine.keep_digest();
  for (const PortRates& port : c.ports) engine.add_port(port);
  for (const Place& d : c.devices) engine.add_device(d.link, d.port, d.peer, d.memory);
  for (const std::uint32_t device : c.streams) engine.add_stream(DeviceId{device});
}

// Submits; a wait's value is the index of the record's operation.
struct Submitter {
  Engine& engine;
  std::vector<Signal> signals;  // of each operation; others' are unused
  void operator()(const Given& g) {
    const StreamId stream{g.stream};
    signals.push_back({});
    if (g.kind == kKernel) engine.kernel(stream, {g.value, g.memory}, g.not_before);
    if (g.kind == kDown) engine.copy(stream, CopyKind::kDeviceToHost, g.value, g.not_before);
    if (g.kind == kUp) engine.copy(stream, CopyKind::kHostToDevice, g.value, g.not_before);
    if (g.kind == kPeer) engine.peer_copy(stream, DeviceId{g.from}, g.value, g.not_before);
    if (g.kind == kRecord) signals.back() = engine.record(stream, g.not_before);
    if (g.kind == kWait) {
      engine.wait(stream, signals[static_cast<std::size_t>(g.value)], g.not_before);
    }
  }
};

// A host that advances, queries and waits as the steps say. Leaves what it submitted in `given`.
Answer run_live(const Case& c, std::vector<Given>& given) {
  Engine engine;
  prepare(engine, c);
  Submitter submit{engine, {}};
  std::vector<std::int64_t> records;
  Time host = 0;
  for (const Step& step : c.steps) {
    host += step.pause;
    const bool on_signal = step.kind == kWait || step.kind == kHostWait;
    if (on_signal && records.empty()) continue;
    const std::int64_t record =
        on_signal ? records[static_cast<std::size_t>(step.value) % records.size()] : 0;
    if (step.kind == kAdvance) {
      if (step.value % 3 == 0) host = std::max(host, engine.run_until_idle(StreamId{step.stream}));
      engine.advance(host);
    } else if (step.kind == kHostWait) {
      const Signal signal = submit.signals[static_cast<std::size_t>(record)];
      const bool done = engine.done(signal, host);
      const Time when = engine.run_until(signal);
      RC_ASSERT(done == (when <= host));
      host = std::max(host, when);
    } else {
      if (step.kind == kRecord) records.push_back(static_cast<std::int64_t>(given.size()));
      given.push_back(
          {step.kind, step.stream, step.from, on_signal ? record : step.value, step.memory, host});
      submit(given.back());
    }
  }
  const Time makespan = engine.drain();
  return {engine.digest(), makespan};
}

RC_GTEST_PROP(EngineProp, AgreesWithNanosecondByNanosecond, ()) {
  const Case c = *cases();
  std::vector<Given> given;
  const Answer live = run_live(c, given);
  const Naive naive(c, given);
  RC_ASSERT(live.makespan == naive.makespan);
  RC_ASSERT(live.digest == naive.digest);
}

RC_GTEST_PROP(EngineProp, HowFarTheHostAdvancedChangesNothing, ()) {
  const Case c = *cases();
  std::vector<Given> given;
  const Answer live = run_live(c, given);

  Engine drained;  // all submitted first
  prepare(drained, c);
  Submitter submit{drained, {}};
  for (const Given& g : given) submit(g);
  RC_ASSERT(drained.drain() == live.makespan);
  RC_ASSERT(drained.digest() == live.digest);

  Engine stepped;  // no running ahead: each step is one event time
  prepare(stepped, c);
  Submitter again{stepped, {}};
  for (const Given& g : given) again(g);
  for (std::uint32_t s = 0; s < c.streams.size(); ++s) stepped.run_until_idle(StreamId{s});
  RC_ASSERT(stepped.makespan() == live.makespan);
  RC_ASSERT(stepped.digest() == live.digest);
  RC_ASSERT(stepped.held_bytes() == drained.held_bytes());
}

}  // namespace
}  // namespace ferry::sim
