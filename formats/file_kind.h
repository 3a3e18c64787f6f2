// What kind of file one is, by its beginning: so that a file given to the wrong command is called
// by its name, and with the command that reads it.
//
// It tells by what no other kind has: the first bytes of archives, pickles and pages, and the keys
// of JSON. What it does not know is kOther, of which a reader says what it expected.
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
  kLog,  // of streams
  kHazard,
  kPlan,
  kPipelinePlan,
  kDecisions,
  kKernelTimes,
  kTraining,
  kCampaign,
  kResults,  // of a sweep
  kToml,
};
inline constexpr std::size_t kFileKinds = static_cast<std::size_t>(FileKind::kToml) + 1;

// `beginning`: of the file, some 64 KiB, or all of it.
FileKind kind_of(std::string_view beginning);

std::string_view in_words(FileKind kind);  // "a program"
// "`ferry plan`, `ferry simulate` and `ferry replay` read it"; of what none reads, what to do.
std::string_view read_by(FileKind kind);

// Throws InputError where the text is of a kind that is not among `wanted` (the first is what it
// calls expected), which has one at least.
void refuse_other_kinds(std::string_view text, const std::string& file,
                        std::initializer_list<FileKind> wanted);
// The same of a file's beginning. What is no regular file is left alone: a pipe is read once.
void refuse_other_kinds(const std::filesystem::path& path, std::initializer_list<FileKind> wanted);

}  // namespace ferry
