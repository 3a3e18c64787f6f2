#include "plan/module_segments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "formats/modules.h"
#include "formats/outline.h"

namespace ferry::plan {
namespace {

// The modules by how many others of them each is in.
std::vector<std::vector<std::string>> layers(const Program& program,
                                             const std::vector<std::string>& modules) {
  const std::set<std::string> wanted(modules.begin(), modules.end());
  std::vector<ModuleRun> runs;
  if (const std::optional<CodeId> forward = forward_code(program)) {
    for (ModuleRun& run : module_runs(program.codes[*forward].statements)) {
      if (wanted.contains(run.module)) runs.push_back(std::move(run));
    }
  }
  std::sort(runs.begin(), runs.end(),
            [](const ModuleRun& a, const ModuleRun& b) { return a.begin < b.begin; });
  std::vector<std::vector<std::string>> found;
  std::vector<std::size_t> ends;  // of those that are open
  for (const ModuleRun& run : runs) {
    while (!ends.empty() && ends.back() <= run.begin) ends.pop_back();
    if (found.size() <= ends.size()) found.emplace_back();
    found[ends.size()].push_back(run.module);
    ends.push_back(run.end);
  }
  return found;
}

}  // namespace

ModuleSegments::ModuleSegments(const Program& program, const Hardware& hardware,
                               const std::vector<std::string>& modules) {
  packs_ = survey(program, hardware).packs;
  for (const std::vector<std::string>& layer : layers(program, modules)) {
    Survey found = survey(outline(program, layer), hardware);
    for (std::size_t s = 0; s < layer.size(); ++s) {
      segments_[layer[s]] = std::move(found.segments[s]);
    }
  }
}

// Storages are numbered as a survey numbers them: in order, and a segment's inputs before what it
// saves.
Survey ModuleSegments::survey_of(const std::vector<std::string>& modules) const {
  Survey made;
  made.packs = packs_;
  for (const std::string& module : modules) made.segments.push_back(segments_.at(module));
  std::map<std::uint64_t, std::uint64_t> groups;
  const auto number = [&groups](PackedTensor& tensor) {
    tensor.group = groups.try_emplace(tensor.storage, groups.size()).first->second;
  };
  auto segment = made.segments.begin();
  for (std::size_t p = 0; p <= made.packs.size(); ++p) {
    for (; segment != made.segments.end() && segment->first <= p; ++segment) {
      for (PackedTensor& input : segment->inputs) number(input);
    }
    if (p < made.packs.size()) number(made.packs[p]);
  }
  return made;
}

}  // namespace ferry::plan
