#include "real/train/text.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "formats/error.h"
#include "formats/text_file.h"
#include "real/train/random.h"

namespace ferry::real::train {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBytesMax = std::size_t{64} << 20;

constexpr std::array kEndings = {".c",   ".cc", ".cmake", ".cpp", ".cu",   ".cuh", ".h",
                                 ".hpp", ".md", ".py",    ".rst", ".toml", ".txt"};

bool is_text(const fs::directory_entry& file) {
  std::error_code error;
  if (file.is_symlink(error) || !file.is_regular_file(error)) return false;
  const std::string ending = file.path().extension().string();
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

bool is_passed_over(const fs::directory_entry& folder) {
  std::error_code error;
  return folder.path().filename().string().starts_with(".") ||
         fs::exists(folder.path() / "CMakeCache.txt", error);
}

std::vector<fs::path> text_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator each(folder, fs::directory_options::skip_permission_denied,
                                        error);
  if (error) throw InputError(folder.string(), 0, "expected a folder of text: " + error.message());
  for (const fs::directory_entry& entry : each) {
    if (entry.is_directory(error)) {
      if (is_passed_over(entry)) each.disable_recursion_pending();
    } else if (is_text(entry) && !entry.path().filename().string().starts_with(".")) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

fs::path default_text_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    fs::path installed = program.parent_path().parent_path() / "share/ferry/text";
    if (fs::is_directory(installed, error)) return installed;
  }
  if (fs::is_directory(FERRY_SOURCE_TEXT, error)) return FERRY_SOURCE_TEXT;
  return {};
}

Text read_text(const fs::path& folder, std::int64_t min_bytes) {
  Text text;
  for (const fs::path& file : text_files(folder)) {
    if (text.bytes.size() >= kBytesMax) break;
    text.bytes += read_file(file);
    ++text.files;
  }
  text.bytes.resize(std::min(text.bytes.size(), kBytesMax));
  if (static_cast<std::int64_t>(text.bytes.size()) < min_bytes) {
    throw InputError(folder.string(), 0,
                     "expected at least " + std::to_string(min_bytes) + " bytes of text, found " +
                         std::to_string(text.bytes.size()) + " in " + std::to_string(text.files) +
                         " files (*.md, *.txt, *.cpp, *.h, *.py, ...)");
  }
  return text;
}

Batch text_batch(const Text& text, std::int64_t batch, std::int64_t context, std::uint64_t seed,
                 std::int64_t step) {
  Random random(seed, static_cast<std::uint64_t>(step));
  Batch result{torch::empty({batch, context}, torch::kLong),
               torch::empty({batch, context}, torch::kLong)};
  auto* input = result.input.mutable_data_ptr<std::int64_t>();
  auto* target = result.target.mutable_data_ptr<std::int64_t>();
  const auto size = static_cast<std::int64_t>(text.bytes.size());
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto* from =
        reinterpret_cast<const unsigned char*>(text.bytes.data()) + random.below(size - context);
    std::copy(from, from + context, input + row * context);
    std::copy(from + 1, from + 1 + context, target + row * context);
  }
  return result;
}

}  // namespace ferry::real::train
