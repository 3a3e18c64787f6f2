// The links that copies cross, and their rates: the PCIe link of each device, root ports that
// several devices share, and links between devices.
//
//    host ══ root port ══ device 0 ╌╌ peer links ╌╌ device 1 ══ the same port, or another ══ host
//
// A copy between device and host crosses one direction of the device's link, and of its port if it
// has one. A copy between devices crosses the source's outgoing and the destination's incoming peer
// link, if both have one (NVLink). Otherwise it uses PCIe: the source's link and port towards the
// host, then the destination's port and link away from it, even if the port is the same.
//
// Rates: each direction of a link or port gives an equal share to every copy that crosses it,
// rounded down but at least 1 byte per us. A copy runs at the smallest of its shares. This
// simplifies max-min fairness: if another link limits a copy, nobody gets the rest of its share. If
// copies cross both directions of a link at once, its "both" rates hold.
//
// Copies cross from their start, so also during their latency. A copy between devices has the
// latency of its destination's link.
// Not modelled: switches below a root port, NVLinks between some pairs only, traffic through host
// memory if devices cannot reach each other, ports between sockets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace ferry::sim {

using Time = std::int64_t;  // ns

enum class DeviceId : std::uint32_t {};
enum class PortId : std::uint32_t {};
inline constexpr PortId kNoPort{~std::uint32_t{0}};

// Bytes per microsecond (1000 is 1 GB/s), at least 1; latency in ns, at the start of each copy.
struct LinkRates {
  std::int64_t h2d_alone = 25'000;
  std::int64_t d2h_alone = 25'000;
  std::int64_t h2d_both = 25'000;
  std::int64_t d2h_both = 25'000;
  Time latency_ns = 0;
};

// The rates of one root port. Up means towards the host.
struct PortRates {
  std::int64_t up_bytes_per_us = 25'000;
  std::int64_t down_bytes_per_us = 25'000;
};

// The rate of one device's links to all its peers, in each direction. 0: it has none.
struct PeerRates {
  std::int64_t bytes_per_us = 0;
  Time latency_ns = 0;
};

// A route from a device or the host to another one.
struct Route {
  static constexpr std::uint32_t kHost = ~std::uint32_t{0};
  std::uint32_t from = kHost;
  std::uint32_t to = kHost;
  bool on_peer_links = false;
};

class Links {
 public:
  void add_device(const LinkRates& rates, PortId port, const PeerRates& peer) {
    const bool steady = rates.h2d_alone == rates.h2d_both && rates.d2h_alone == rates.d2h_both;
    devices_.push_back(
        {.pcie = rates, .peer = peer, .port = static_cast<std::uint32_t>(port), .steady = steady});
  }
  PortId add_port(const PortRates& rates) {
    ports_.push_back({.rates = rates});
    return PortId{static_cast<std::uint32_t>(ports_.size() - 1)};
  }
  std::size_t devices() const { return devices_.size(); }
  std::size_t ports() const { return ports_.size(); }
  const LinkRates& pcie(std::uint32_t device) const { return devices_[device].pcie; }

  Route between(std::uint32_t from, std::uint32_t to) const {
    const bool both = std::min(peer_rate(from), peer_rate(to)) > 0;
    return {.from = from, .to = to, .on_peer_links = both};
  }
  // True if copies other than the device's own with the host may cross its PCIe link or port, now
  // or later.
  bool shared(std::uint32_t device) const {
    return devices_[device].port != kNone || devices_[device].peers_cross;
  }
  // True if copies in one direction of its PCIe link do not slow those in the other.
  bool steady(std::uint32_t device) const { return devices_[device].steady; }
  void announce(const Route& route) {
    if (route.on_peer_links) return;
    devices_[route.from].peers_cross = devices_[route.to].peers_cross = true;
  }

  void enter(const Route& route) { cross(route, 1); }
  void leave(const Route& route) { cross(route, -1); }

  // Returns the current rate of one copy on this route. The copy must have entered.
  std::int64_t rate(const Route& route) const {
    if (route.on_peer_links) {
      const Device& from = devices_[route.from];
      const Device& to = devices_[route.to];
      return std::min(share(from.peer.bytes_per_us, from.out), share(to.peer.bytes_per_us, to.in));
    }
    std::int64_t rate = std::numeric_limits<std::int64_t>::max();
    if (route.from != Route::kHost) rate = up_rate(devices_[route.from]);
    if (route.to != Route::kHost) rate = std::min(rate, down_rate(devices_[route.to]));
    return rate;
  }
  Time latency_ns(const Route& route) const {
    const Device& device = devices_[route.to == Route::kHost ? route.from : route.to];
    return route.on_peer_links ? device.peer.latency_ns : device.pcie.latency_ns;
  }

 private:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(kNoPort);

  // `up` and `down` count the copies that cross the PCIe link now, `out` and `in` those that cross
  // the peer links now.
  struct Device {
    LinkRates pcie;
    PeerRates peer;
    std::uint32_t port = kNone;
    bool steady = false;
    bool peers_cross = false;  // a peer copy that crosses its PCIe link was ever submitted
    std::int32_t up = 0;
    std::int32_t down = 0;
    std::int32_t out = 0;
    std::int32_t in = 0;
  };
  struct Port {
    PortRates rates;
    std::int32_t up = 0;
    std::int32_t down = 0;
  };

  static std::int64_t share(std::int64_t rate, std::int32_t copies) {
    return copies <= 1 ? rate : std::max<std::int64_t>(rate / copies, 1);
  }
  std::int64_t peer_rate(std::uint32_t device) const { return devices_[device].peer.bytes_per_us; }
  std::int64_t up_rate(const Device& d) const {
    const std::int64_t own = share(d.down > 0 ? d.pcie.d2h_both : d.pcie.d2h_alone, d.up);
    if (d.port == kNone) return own;
    return std::min(own, share(ports_[d.port].rates.up_bytes_per_us, ports_[d.port].up));
  }
  std::int64_t down_rate(const Device& d) const {
    const std::int64_t own = share(d.up > 0 ? d.pcie.h2d_both : d.pcie.h2d_alone, d.down);
    if (d.port == kNone) return own;
    return std::min(own, share(ports_[d.port].rates.down_bytes_per_us, ports_[d.port].down));
  }
  void cross(const Route& route, std::int32_t change) {
    if (route.on_peer_links) {
      devices_[route.from].out += change;
      devices_[route.to].in += change;
      return;
    }
    if (route.from != Route::kHost) {
      Device& from = devices_[route.from];
      from.up += change;
      if (from.port != kNone) ports_[from.port].up += change;
    }
    if (route.to != Route::kHost) {
      Device& to = devices_[route.to];
      to.down += change;
      if (to.port != kNone) ports_[to.port].down += change;
    }
  }

  std::vector<Device> devices_;
  std::vector<Port> ports_;
};

}  // namespace ferry::sim
