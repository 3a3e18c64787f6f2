#include "real/calibrate/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "formats/error.h"

namespace ferry::real::calibrate {
namespace {

constexpr const char* kFooter = R"(
Add a model and its options (`ferry train MODEL --help`) to measure the kernel times of its step too.
`ferry plan --times A --times B` takes several tables.

Examples:
  ferry calibrate                                     measure the CPU and its memory
  ferry calibrate --disk /var/tmp -o mine.toml        with a disk for the host tier
  ferry calibrate --device cuda -o mine.toml --times mine.times.jsonl gpt --batch 16
  ferry train gpt --batch 16 --capture gpt.jsonl      then plan with the measured times:
  ferry plan gpt.jsonl --card mine.toml --times mine.times.jsonl

Measure while nothing else runs. Exit codes: 0 ok, 2 usage or bad input, 3 out of memory,
7 a resource is missing (a GPU, room on the disk).)";

void add_options(CLI::App& app, Options& options, std::string& device) {
  app.add_option("--device", device, "cpu or cuda")
      ->type_name("NAME")
      ->check(CLI::IsMember({"cpu", "cuda"}).description(""))
      ->capture_default_str();
  app.add_option("--disk", options.disk, "Use a file in this folder as host tier, not memory")
      ->type_name("DIR");
  app.add_option("--threads", options.threads, "Number of compute threads; 0: LibTorch's choice")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  app.add_option("--rounds", options.rounds, "Rounds of each measurement; the median counts")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--small", options.small, "Measure little, to try the command in a few seconds");
  app.add_option("-o,--output", options.output, "Write a hardware file here")->type_name("FILE");
  app.add_option("--times", options.times, "Write the model's kernel times here")
      ->type_name("FILE");
  app.add_option("--kernels", options.kernels,
                 "Write the time of each kernel of the model's step here, from CUPTI (cuda)")
      ->type_name("FILE");
  app.add_option("--date", options.date, "The date to write into the files (default: today's)")
      ->type_name("YYYY-MM-DD");
  app.add_flag("--json", options.json, "Print all measurements as JSON");
}

bool is_date(const std::string& text) {
  constexpr std::string_view kForm = "0000-00-00";
  return text.size() == kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(), [](char is, char form) {
           return form == '0' ? std::isdigit(static_cast<unsigned char>(is)) != 0 : is == form;
         });
}

void check(const Options& options) {
  if (!options.disk.empty() && options.cuda) {
    throw InputError("--disk", 0, "expected with --device cpu: a GPU's host tier is memory");
  }
  if (!options.times.empty() && !options.model) {
    throw InputError("--times", 0,
                     "expected with a model, such as gpt, to measure its kernel times");
  }
  if (!options.kernels.empty() && !options.cuda) {
    throw InputError("--kernels", 0, "expected with --device cuda: CUPTI times a GPU's kernels");
  }
  if (!options.kernels.empty() && !options.model) {
    throw InputError("--kernels", 0, "expected with a model, such as gpt, to measure its kernels");
  }
  if (!options.date.empty() && !is_date(options.date)) {
    throw InputError("--date", 0, "expected YYYY-MM-DD, got '" + options.date + "'");
  }
}

// Parses the model and its options with the parser of `ferry train`.
std::optional<train::Options> parse_model(std::vector<std::string> words, const Options& options) {
  for (const std::string& word :
       {std::string("--device"), std::string(options.cuda ? "cuda" : "cpu"),
        std::string("--threads"), std::to_string(options.threads)}) {
    words.push_back(word);
  }
  std::vector<const char*> argv = {"ferry train"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::optional<train::Options> model =
      train::parse_options(static_cast<int>(argv.size()), argv.data());
  if (model && model->policy != train::PolicyKind::kKeep) {
    throw InputError("--policy", 0, "expected none: kernel times are measured without a policy");
  }
  if (model && (model->stages > 0 || model->microbatches > 1)) {
    throw InputError("--microbatches", 0, "expected 1: a program has one micro-batch");
  }
  return model;
}

}  // namespace

std::optional<Options> parse_options(int argc, const char* const* argv) {
  CLI::App app("Measures a machine: copies, rates, launches, and the kernels of a model's step.",
               "ferry calibrate");
  app.set_version_flag("--version", "ferry " FERRY_VERSION);
  app.footer(kFooter);
  app.allow_extras();
  Options options;
  std::string device = "cpu";
  add_options(app, options, device);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help or --version
    app.exit(asked);
    return std::nullopt;
  }
  options.cuda = device == "cuda";
  if (const std::vector<std::string> rest = app.remaining(); !rest.empty()) {
    options.model = parse_model(rest, options);
  }
  check(options);
  return options;
}

}  // namespace ferry::real::calibrate
