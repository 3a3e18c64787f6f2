#include "real/calibrate/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <vector>

#include "formats/error.h"

namespace ferry::real::calibrate {
namespace {

constexpr const char* kFooter = R"(
A model and its options (`ferry train MODEL --help`) may stand beside these. Then the kernel times of
its step are measured as well. Several tables serve `ferry plan --times A --times B`.

Examples:
  ferry calibrate                                     what the CPU and its memory do
  ferry calibrate --disk /var/tmp -o mine.toml        with a disk for the host tier
  ferry calibrate --device cuda -o mine.toml --times mine.times.jsonl gpt --batch 16
  ferry train gpt --batch 16 --capture gpt.jsonl      then plan by what was measured:
  ferry plan gpt.jsonl --card mine.toml --times mine.times.jsonl

Measure while nothing else runs. Exit codes: 0 ok, 2 usage or bad input, 3 out of memory,
7 a resource is missing (a GPU, room on the disk).)";

void add_options(CLI::App& app, Options& options, std::string& device) {
  app.add_option("--device", device, "cpu or cuda")
      ->type_name("NAME")
      ->check(CLI::IsMember({"cpu", "cuda"}).description(""))
      ->capture_default_str();
  app.add_option("--disk", options.disk, "The host tier is a file in this folder, not memory")
      ->type_name("DIR");
  app.add_option("--threads", options.threads, "That compute; 0: LibTorch's choice")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  app.add_option("--rounds", options.rounds, "Of each measurement; their median counts")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--small", options.small, "Little of everything, to try the command: a few seconds");
  app.add_option("-o,--output", options.output, "Write a hardware file here")->type_name("FILE");
  app.add_option("--times", options.times, "Write the model's kernel times here")
      ->type_name("FILE");
  app.add_option("--kernels", options.kernels,
                 "Write each kernel of the model's step here, as CUPTI times it (cuda)")
      ->type_name("FILE");
  app.add_option("--date", options.date, "To be written into the files (default: today's)")
      ->type_name("YYYY-MM-DD");
  app.add_flag("--json", options.json, "Everything that was measured, for machines");
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
                     "expected with a model, whose kernel times are measured: gpt, …");
  }
  if (!options.kernels.empty() && !options.cuda) {
    throw InputError("--kernels", 0, "expected with --device cuda: CUPTI times a GPU's kernels");
  }
  if (!options.kernels.empty() && !options.model) {
    throw InputError("--kernels", 0, "expected with a model, whose kernels are timed: gpt, …");
  }
  if (!options.date.empty() && !is_date(options.date)) {
    throw InputError("--date", 0, "expected YYYY-MM-DD, got '" + options.date + "'");
  }
}

// The model and its options, through the parser of `ferry train`.
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
    throw InputError("--policy", 0, "expected none: the kernels of a step are timed as they are");
  }
  if (model && (model->stages > 0 || model->microbatches > 1)) {
    throw InputError("--microbatches", 0, "expected one: a program is of one micro-batch");
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
  } catch (const CLI::Success& asked) {  // --help and --version
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
