// ferry-train: what `ferry train` runs, for `ferry` itself never links LibTorch.
//
// Reads the command line, trains, turns errors into exit codes.
#include <c10/util/Exception.h>
#include <fmt/core.h>
#include <torch/cuda.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "ferry/capture.h"
#include "ferry/offload.h"
#include "formats/error.h"
#include "real/disk/disk_error.h"
#include "real/tensors/host_memory_error.h"
#include "real/train/exit_code.h"
#include "real/train/loop.h"
#include "real/train/options.h"
#include "shared/checkpoint/errors.h"

namespace {

using namespace ferry::real::train;

int complain(const std::string& message, int code) {
  fmt::print(stderr, "ferry: {}\n", message);
  return code;
}

int run(int argc, char** argv) {
  std::optional<Options> options;
  try {
    options = parse_options(argc, argv);
  } catch (const CLI::ParseError& error) {
    return complain(std::string(error.what()) + " (ferry train --help)", kUsage);
  }
  if (!options) return kOk;
  if (options->cuda && !torch::cuda::is_available()) {
    return complain(
        "--device cuda: LibTorch finds no GPU here (a driver, or a build with CUDA, is "
        "missing)",
        kResourceMissing);
  }
  return train(*options);
}

// With the exit code of whatever is thrown.
int guarded(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const ferry::InputError& error) {
    return complain(error.what(), kUsage);
  } catch (const ferry::CaptureError& error) {
    return complain(error.what(), kInternal);
  } catch (const ferry::PlanMismatch& error) {
    return complain(error.what(), kUsage);
  } catch (const ferry::SegmentMismatch& error) {
    return complain(error.what(), kUsage);
  } catch (const std::invalid_argument& error) {
    return complain(error.what(), kUsage);
  } catch (const c10::OutOfMemoryError& error) {
    return complain(std::string("out of memory: ") + error.what_without_backtrace(), kDoesNotFit);
  } catch (const ferry::real::OutOfHostMemory& error) {
    return complain(error.what(), kDoesNotFit);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kDoesNotFit);
  } catch (const ferry::real::DiskError& error) {
    return complain(error.what(), kResourceMissing);
  } catch (const std::system_error& error) {
    return complain(error.what(), kResourceMissing);
  } catch (const c10::Error& error) {
    return complain(error.what_without_backtrace(), kInternal);
  } catch (const std::exception& error) {
    return complain(std::string("internal error: ") + error.what(), kInternal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = guarded(argc, argv);
  // A result that did not reach its file is no result (a full disk, a closed pipe).
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return complain("cannot write to stdout", kResourceMissing);
  }
  return code;
}
