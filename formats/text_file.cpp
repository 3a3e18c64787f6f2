#include "formats/text_file.h"

#include <cerrno>
#include <iterator>
#include <system_error>

#include "formats/error.h"

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
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) throw InputError(path.string(), 0, "cannot read to the end");
  return text;
}

}  // namespace ferry
