// The engine against an evaluator that is too slow to be wrong: it goes from nanosecond to
// nanosecond. And against itself: however far the host had advanced between two submissions, and
// whether or not the engine could run ahead, the digest is the same.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "sim/engine.h"

namespace ferry::sim {
namespace {

struct Step {
  int kind = 0;  // 0 kernel, 1 down, 2 up, 3 record, 4 wait, 5 advance, 6 host wait
  std::uint32_t stream = 0;
  std::int64_t value = 0;  // ns, bytes, or which of the earlier signals
  std::int64_t pause = 0;  // of the host, before it
};

struct Case {
  std::vector<LinkRates> devices;
  std::vector<std::uint32_t> streams;  // their devices
  std::vector<Step> steps;
};

std::ostream& operator<<(std::ostream& out, const Step& s) {
  return out << '{' << s.kind << " s" << s.stream << " v" << s.value << " +" << s.pause << '}';
}
std::ostream& operator<<(std::ostream& out, const Case& c) {
  for (const LinkRates& r : c.devices) {
    out << "rates " << r.h2d_alone << ' ' << r.d2h_alone << ' ' << r.h2d_both << ' ' << r.d2h_both
        << " latency " << r.latency_ns << "; ";
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
  const auto step = rc::gen::build<Step>(
      rc::gen::set(&Step::kind, within(0, 6)),
      rc::gen::set(&Step::stream, within<std::uint32_t>(0, 99)),
      rc::gen::set(&Step::value, within<std::int64_t>(0, 30)),
      rc::gen::set(&Step::pause, rc::gen::oneOf(rc::gen::just<Time>(0), within<Time>(0, 20))));
  return rc::gen::apply(
      [](LinkRates first, LinkRates second, bool two, std::vector<std::uint32_t> streams,
         std::vector<Step> steps) {
        Case c{{first}, std::move(streams), std::move(steps)};
        if (two) c.devices.push_back(second);
        c.streams.push_back(0);
        for (std::uint32_t& device : c.streams) device %= two ? 2 : 1;
        for (Step& s : c.steps) s.stream %= static_cast<std::uint32_t>(c.streams.size());
        return c;
      },
      link, link, rc::gen::arbitrary<bool>(),
      rc::gen::resize(5,
                      rc::gen::container<std::vector<std::uint32_t>>(within<std::uint32_t>(0, 1))),
      rc::gen::resize(60, rc::gen::container<std::vector<Step>>(step)));
}

// An operation as it was submitted.
struct Given {
  int kind;
  std::uint32_t stream;
  std::int64_t value;
  Time not_before;
};

// ------------------------------------------------------------------------------------------------
// From nanosecond to nanosecond.

struct Naive {
  struct Copy {
    std::int64_t latency, thousandths;
  };
  struct Unit {
    int running = -1;  // the operation on it
    Time start = 0, left = 0;
    Copy copy{};
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
        units(c.devices.size() * 3) {
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
      const bool copy = given[static_cast<std::size_t>(unit.running)].kind != 0;
      if (copy ? unit.copy.latency > 0 || unit.copy.thousandths > 0 : unit.left > 0) continue;
      over(static_cast<std::size_t>(unit.running), unit.start, now);
      unit.running = -1;
    }
    while (pass_all(now)) {
    }
    for (std::size_t u = 0; u < units.size(); ++u) start(u, now);
    for (std::size_t u = 0; u < units.size(); ++u) progress(u);
  }
  bool pass_all(Time now) {
    bool any = false;
    for (std::size_t s = 0; s < queues.size(); ++s) {
      if (queues[s].empty() || given[queues[s].front()].not_before > now) continue;
      const std::size_t op = queues[s].front();
      if (ready[s] < 0) ready[s] = now;
      const bool signalled =
          given[op].kind == 4 && signals[static_cast<std::size_t>(given[op].value)] >= 0;
      if (given[op].kind != 3 && !signalled) continue;
      if (given[op].kind == 3) signals[op] = now;
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
      if (queues[s].empty() || ready[s] < 0 || c.streams[s] != u / 3) continue;
      const std::size_t op = queues[s].front();
      if (given[op].kind != static_cast<int>(u % 3)) continue;
      if (best == given.size() ||
          std::pair(ready[s], op) < std::pair(ready[given[best].stream], best)) {
        best = op;
      }
    }
    if (best == given.size()) return;
    unit.running = static_cast<int>(best);
    unit.start = now;
    unit.left = std::max<Time>(given[best].value, 1);
    unit.copy = {c.devices[u / 3].latency_ns, std::max<Time>(given[best].value * 1000, 1)};
  }
  void progress(std::size_t u) {
    Unit& unit = units[u];
    if (unit.running < 0) return;
    --unit.left;
    if (u % 3 == 0) return;
    if (unit.copy.latency-- > 0) return;
    unit.copy.latency = 0;
    const LinkRates& r = c.devices[u / 3];
    const bool both = units[u % 3 == 1 ? u + 1 : u - 1].running >= 0;
    unit.copy.thousandths -=
        u % 3 == 1 ? (both ? r.d2h_both : r.d2h_alone) : (both ? r.h2d_both : r.h2d_alone);
  }
};

// ------------------------------------------------------------------------------------------------

struct Answer {
  std::uint64_t digest;
  Time makespan;
};

void prepare(Engine& engine, const Case& c) {
  for (const LinkRates& rates : c.devices) engine.add_device(rates);
  for (const std::uint32_t device : c.streams) engine.add_stream(DeviceId{device});
}

// Submits; a wait's value is the index of the record's operation.
struct Submitter {
  Engine& engine;
  std::vector<Signal> signals;  // of each operation; others' are unused
  void operator()(const Given& g) {
    const StreamId stream{g.stream};
    signals.push_back({});
    if (g.kind == 0) engine.kernel(stream, g.value, g.not_before);
    if (g.kind == 1) engine.copy(stream, CopyKind::kDeviceToHost, g.value, g.not_before);
    if (g.kind == 2) engine.copy(stream, CopyKind::kHostToDevice, g.value, g.not_before);
    if (g.kind == 3) signals.back() = engine.record(stream, g.not_before);
    if (g.kind == 4) engine.wait(stream, signals[static_cast<std::size_t>(g.value)], g.not_before);
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
    const bool on_signal = step.kind == 4 || step.kind == 6;
    if (on_signal && records.empty()) continue;
    const std::int64_t record =
        on_signal ? records[static_cast<std::size_t>(step.value) % records.size()] : 0;
    if (step.kind == 5) {
      if (step.value % 3 == 0) host = std::max(host, engine.run_until_idle(StreamId{step.stream}));
      engine.advance(host);
    } else if (step.kind == 6) {
      const Signal signal = submit.signals[static_cast<std::size_t>(record)];
      const bool done = engine.done(signal, host);
      const Time when = engine.run_until(signal);
      RC_ASSERT(done == (when <= host));
      host = std::max(host, when);
    } else {
      if (step.kind == 3) records.push_back(static_cast<std::int64_t>(given.size()));
      given.push_back({step.kind, step.stream, on_signal ? record : step.value, host});
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
