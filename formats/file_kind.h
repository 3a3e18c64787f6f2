// Recognises the kind of a file by its beginning. So the error for a file that is given to the
// wrong command says what the file is and which command reads it.
//
// Archives, pickles and web pages have characteristic first bytes; JSON files have characteristic
// keys. Any other file is kOther, and its reader reports what it expected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ferry {

enum class FileKind : std::uint8_t {
  kOther,
  kEmpty,
  kCompressed,
  kZip,
  kPage,
  kPickle,
  kProfile,
  kProgram,
  kLog,  // a stream log
  kHazard,
  kPlan,
  kPipelinePlan,
  kDecisions,
  kKernelTimes,
  kTraining,
  kCampaign,
  kResults,  // the results of a sweep
  kToml,
};
inline constexpr std::size_t kFileKinds = static_cast<std::size_t>(FileKind::kToml) + 1;

// `beginning` is about the first 64 KiB of the file, or the whole file.
FileKind kind_of(std::string_view beginning);

std::string_view in_words(FileKind kind);  // "a program"
// Says which commands read the file ("`ferry check` reads it"), or what to do if none does.
std::string_view read_by(FileKind kind);

// Throws InputError if the text is of a known kind that is not among `wanted`. The message names
// the first of these as expected. `wanted` is not empty.
void refuse_other_kinds(std::string_view text, const std::string& file,
                        std::initializer_list<FileKind> wanted);
// The same for the beginning of a file. Files that are not regular are not opened, because a pipe
// can be read only once.
void refuse_other_kinds(const std::filesystem::path& path, std::initializer_list<FileKind> wanted);

}  // namespace ferry
