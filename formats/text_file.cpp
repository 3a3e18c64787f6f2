#include "formats/text_file.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry {

std::ifstream open_file(const std::filesystem::path& path) {
  std::error_code ignored;
  std::ifstream in(path, std::ios::binary);
  const int cause = in ? EISDIR : errno;
  if (!in || std::filesystem::is_directory(path, ignored)) {
    throw InputError(path.string(), 0, "cannot read: " + std::generic_category().message(cause));
  }
  return in;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in = open_file(path);
  std::string text;
  std::vector<char> part(std::size_t{1} << 16);
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())), in.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > limits::kFileBytes) {
      throw InputError(path.string(), 0,
                       "expected at most " + std::to_string(limits::kFileBytes) + " bytes");
    }
  }
  if (in.bad()) throw InputError(path.string(), 0, "cannot read to the end");
  return text;
}

}  // namespace ferry
