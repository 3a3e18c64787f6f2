#include "real/train/guarded.h"

#include <c10/util/Exception.h>
#include <fmt/core.h>
#include <torch/cuda.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "ferry/capture.h"
#include "ferry/offload.h"
#include "formats/error.h"
#include "real/disk/disk_error.h"
#include "real/tensors/host_memory_error.h"
#include "real/train/exit_code.h"
#include "shared/checkpoint/errors.h"

namespace ferry::real::train {
namespace {

int complain(const std::string& message, int code) {
  fmt::print(stderr, "ferry: {}\n", message);
  return code;
}

int caught(const char* command, const std::function<int()>& run) {
  try {
    return run();
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{} ({} --help)", error.what(), command), kUsage);
  } catch (const ResourceMissing& error) {
    return complain(error.what(), kResourceMissing);
  } catch (const ferry::InputError& error) {
    return complain(error.what(), kUsage);
  } catch (const ferry::CaptureError& error) {
    return complain(error.what(), kInternal);
  } catch (const ferry::PlanMismatch& error) {
    return complain(error.what(), kUsage);
  } catch (const ferry::SegmentMismatch& error) {
    return complain(error.what(), kUsage);
  } catch (const ferry::ValueError& error) {
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

int guarded(const char* command, const std::function<int()>& run) {
  const int code = caught(command, run);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return complain("cannot write to stdout", kResourceMissing);
  }
  return code;
}

void require_cuda() {
  if (torch::cuda::is_available()) return;
  throw ResourceMissing(
      "--device cuda: LibTorch finds no GPU here (a driver, or a build with CUDA, is missing)");
}

}  // namespace ferry::real::train
