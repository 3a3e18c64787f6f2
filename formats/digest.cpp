#include "formats/digest.h"

#include <cstddef>
#include <cstdint>

#include "formats/hash.h"

namespace ferry {

std::string digest_of(std::string_view bytes) {
  std::uint64_t hash = fnv1a(bytes);
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace ferry
