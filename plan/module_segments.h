// The surveys of a program for every choice of modules as its segments, without a run for each:
// what the forward saves is the same whatever its segments are, and a segment is handed and saves
// the same whichever others there are. So a few runs, each with modules that do not nest, tell it
// of all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "formats/program.h"
#include "plan/survey.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

class ModuleSegments {
 public:
  // `modules`: of the forward, which may nest. Each runs once, and can be a segment.
  ModuleSegments(const Program& program, const Hardware& hardware,
                 const std::vector<std::string>& modules);

  // The survey of the program outlined at these, which are in order of the forward and do not nest.
  Survey survey_of(const std::vector<std::string>& modules) const;

 private:
  std::vector<PackedTensor> packs_;
  std::map<std::string, SurveyedSegment> segments_;
};

}  // namespace ferry::plan
