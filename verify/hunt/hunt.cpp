#include "verify/hunt/hunt.h"

#include <algorithm>
#include <stdexcept>

#include "formats/error.h"
#include "verify/campaign/replay_line.h"
#include "verify/hunt/crash.h"

namespace ferry::verify {
namespace {

void check_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), allowed)) return;
  throw std::invalid_argument(
      "a scheduler's name: expected letters, digits, '-', '_' and '.', not '" + name + "'");
}

}  // namespace

Hunt hunt(const HuntedScheduler& scheduler, const HuntOptions& options, std::string_view again) {
  check_name(scheduler.name);
  CampaignOptions campaign;
  campaign.seed = options.seed;
  campaign.programs = options.programs;
  campaign.seconds = options.seconds;
  campaign.jobs = options.jobs;
  campaign.sizes = options.small ? Sizes::kSmall : Sizes::kMixed;
  campaign.deviations = options.every_way;
  campaign.scheduler = &scheduler;
  campaign.usual = options.usual;
  campaign.stop = options.stop;
  if (options.only) {
    campaign.from.end = *options.only;
    campaign.programs = static_cast<std::int64_t>(*options.only) + 1;
  }
  const Campaign found = run_campaign(campaign);
  Hunt result{.coverage = found.coverage, .seconds = found.seconds, .number = 0, .report = {}};
  if (found.failure) {
    result.number = found.failure->number;
    result.report = explain(found.failure->spec, again);
  }
  return result;
}

Report replay(const std::vector<HuntedScheduler>& schedulers, std::string_view line,
              std::string_view again) {
  const auto find = [&schedulers](std::string_view name) {
    const auto found = std::find_if(schedulers.begin(), schedulers.end(),
                                    [name](const auto& each) { return each.name == name; });
    return found == schedulers.end() ? nullptr : &*found;
  };
  return explain(parse_line(line, {nullptr, find}), again);
}

}  // namespace ferry::verify
