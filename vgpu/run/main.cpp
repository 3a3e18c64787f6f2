// ferry-run, the program behind `ferry run`. It is a program of its own, so that `ferry` itself
// never sees the virtual GPU. It runs the script once, or once in each setting that is compared,
// prints the verdict, and writes the files that the options name.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/error.h"
#include "formats/printable.h"
#include "sim/check/report_json.h"
#include "vgpu/run/child.h"
#include "vgpu/run/comparison.h"
#include "vgpu/run/one_run.h"
#include "vgpu/run/options.h"
#include "vgpu/run/summary.h"
#include "vgpu/run/verdict.h"

namespace {

using namespace ferry::vgpu;

int complain(const std::string& what, int code) {
  std::fprintf(stderr, "ferry run: %s\n", ferry::printable(what).c_str());
  return code;
}

void write(const std::string& file, const nlohmann::ordered_json& json) {
  if (!file.empty()) ferry::write_file(file, json.dump(2, ' ', /*ensure_ascii=*/true) + "\n");
}

int run_alone(const Options& options, const std::filesystem::path& libraries) {
  const Run run = run_once(options, options.settings().front(), libraries, {});
  if (run.summary) {
    std::fprintf(stderr, "ferry run: %s\n", to_string(*run.summary).c_str());
    if (const std::string refused = refused_text(*run.summary); !refused.empty()) {
      std::fprintf(stderr, "ferry run: not supported, so these calls failed: %s\n",
                   ferry::printable(refused).c_str());
    }
    if (const std::string named = stand_ins_text(*run.summary); !named.empty()) {
      std::fprintf(stderr, "ferry run: values by stand-ins: %s\n", ferry::printable(named).c_str());
    }
    if (const std::string named = without_cuda_kernel_text(*run.summary); !named.empty()) {
      std::fprintf(stderr,
                   "ferry run: without a CUDA kernel, so computed by their CPU kernels: %s\n",
                   ferry::printable(named).c_str());
    }
  }
  print(run.most_memory);
  print(run.report, options.log);
  print_verdict(run, options.log);
  write(options.json, to_json(run));
  write(options.sarif, ferry::check::to_sarif(run.report, options.log));
  return run.exit_code();
}

int run_all(const Options& options, const std::filesystem::path& libraries) {
  const std::vector<Row> rows = compare(options, libraries);
  std::fputs(to_table(rows).c_str(), stdout);
  std::fflush(stdout);
  std::fprintf(stderr, "ferry run: %s\n", verdict_of(rows).c_str());
  write(options.json, to_json(rows));
  return exit_code(rows);
}

int run(const Options& options) {
  const std::filesystem::path libraries =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "vgpu";
  const std::string why = why_not(options, libraries);
  if (!why.empty()) return complain(why, kResourceMissing);
  for (const std::string& file : {options.json, options.sarif, options.trace, options.snapshot}) {
    if (!file.empty()) ferry::require_folder_of(file);
  }
  const bool one = options.settings().size() == 1;
  return one ? run_alone(options, libraries) : run_all(options, libraries);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<Options> options = parse_options(argc, argv);
    return options ? run(*options) : kOk;
  } catch (const ferry::InputError& error) {
    return complain(error.what(), kUsage);
  } catch (const std::system_error& error) {
    return complain(error.what(), kResourceMissing);
  } catch (const std::exception& error) {
    return complain(error.what(), kInternal);
  }
}
