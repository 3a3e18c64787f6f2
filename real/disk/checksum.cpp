#include "real/disk/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ferry::real {

struct Checksum::State {
  XXH3_state_t xxh3;  // needs an alignment of 64, which operator new gives
};

void Checksum::Free::operator()(State* state) const noexcept { delete state; }

Checksum::Checksum() : state_(new State) { XXH3_64bits_reset(&state_->xxh3); }

void Checksum::add(const void* from, std::int64_t bytes) {
  XXH3_64bits_update(&state_->xxh3, from, static_cast<std::size_t>(bytes));
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->xxh3); }

}  // namespace ferry::real
