#include "cli/other_models.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "cli/console/ended.h"
#include "cli/console/stop.h"
#include "cli/rows.h"
#include "formats/error.h"

namespace ferry::cli {
namespace {

// The rank that PEFT's documentation and most published adapters use.
constexpr const char* kRank = "16";
constexpr std::int64_t kFewestTokens = 128;
constexpr int kHalvings = 3;

// Captures and plans the training; no value: it cannot be captured, or no policy runs.
std::optional<OtherModel> tried(PolicyArguments arguments, std::string words) {
  arguments.model.quiet = true;
  try {
    PolicyRequest request = understand(arguments);
    request.plan.stop = is_stopped;
    const auto way = plan::least_way(request.program, request.hardware, request.plan);
    if (!way) return std::nullopt;
    return OtherModel{std::move(words), *way, std::move(request)};
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const Ended&) {
    if (is_stopped()) throw;
    return std::nullopt;
  }
}

// Halves a figure of the model, which is `value`, until the training fits.
std::optional<OtherModel> halved(PolicyArguments arguments, std::int64_t ModelArguments::*figure,
                                 std::int64_t value, std::int64_t least, const char* option) {
  for (int i = 0; i < kHalvings && value / 2 >= least; ++i) {
    value /= 2;
    arguments.model.*figure = value;
    auto other = tried(arguments, fmt::format("another training: {} {}", option, value));
    if (!other || other->way.fits) return other;
  }
  return std::nullopt;
}

}  // namespace

std::vector<OtherModel> models_that_fit(const PolicyArguments& arguments,
                                        const PolicyRequest& request, bool smaller_helps) {
  std::vector<OtherModel> found;
  if (!is_configuration(arguments.subject)) return found;
  if (arguments.model.lora.empty() && arguments.model.qlora.empty()) {
    PolicyArguments other = arguments;
    other.model.lora = kRank;
    auto adapters = tried(
        other, fmt::format("another training: --lora {}, which trains adapters alone", kRank));
    const bool fits = adapters && adapters->way.fits;
    if (adapters) found.push_back(std::move(*adapters));
    if (!fits) {
      std::swap(other.model.lora, other.model.qlora);
      auto in_four_bits = tried(other, fmt::format("another training: --qlora {}, the same on "
                                                   "weights of four bits",
                                                   kRank));
      if (in_four_bits) found.push_back(std::move(*in_four_bits));
    }
  }
  if (!smaller_helps) return found;
  const std::int64_t batch = said_number(request.program, "batch");
  const std::int64_t tokens = said_number(request.program, "tokens");
  for (auto& other :
       {halved(arguments, &ModelArguments::batch, batch, 1, "--batch"),
        halved(arguments, &ModelArguments::tokens, tokens, kFewestTokens, "--tokens")}) {
    if (other) found.push_back(std::move(*other));
  }
  return found;
}

}  // namespace ferry::cli
