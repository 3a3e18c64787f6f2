// The offloader over LibTorch's own autograd on a GPU, under hostile schedules: it gives the plain
// step's bits. And its mutants, each of which takes one step wrongly: wrong bytes show them, or the
// happens-before checker does in the log of the run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/line_source.h"
#include "real/api/stream_logged.h"
#include "real/autograd/torch_autograd.h"
#include "real/cuda/cuda_device.h"
#include "real/cuda_backend/allocations.h"
#include "real/log/log_streams.h"
#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "shared/seam/hooks.h"
#include "sim/check/log_check.h"
#include "tests/real/gpu/hostile.h"
#include "tests/real/gpu/odd_step.h"
#include "tests/real/gpu/trained.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/offload_mutants.h"
#include "tests/real/verdict.h"

namespace ferry::real {
namespace {

// The ways to offload between which a mutant cannot hide.
struct Way {
  const char* name;
  CoreOptions options;
};

std::vector<Way> ways() {
  std::vector<Way> all = {{"tight", {}}, {"ahead", {}}, {"one stream", {}}};
  for (Way& way : all) way.options.window_tensors = 1;
  all[0].options.prefetch_bytes = 0;
  all[0].options.hold_bytes = 0;
  all[1].options.prefetch_bytes = 4 << 20;
  all[2].options.prefetch_bytes = 0;
  all[2].options.copy_streams = CopyStreams::kOne;
  all[2].options.reload_pool = ReloadPool::kCopyStream;
  return all;
}

// What a step computes, in the order of its results; each is a program of its own.
struct Program {
  const char* name;
  std::function<Tensors()> step;
  std::vector<at::Tensor> exempt;
};

Program gpt() {
  const auto model = std::make_shared<Trained>(TrainedModel::kGpt);
  return {"gpt", [model] { return model->step(); }, model->module().parameters()};
}
Program odd(bool two_streams) { return {"odd", OddStep(two_streams), {}}; }

// Steps on such a device; what is wrong with them, if anything.
template <Device D>
std::optional<Verdict> hunt(D device, const CoreOptions& options, const Program& program,
                            Late late) {
  constexpr int kSteps = 3;
  const Tensors expected = program.step();
  Offloader<D, TorchAutograd> offloader(std::move(device), TorchAutograd(), options);
  for (const at::Tensor& parameter : program.exempt) offloader.exempt(parameter);
  try {
    for (int step = 0; step < kSteps; ++step) {
      offloader.begin_run();
      const HooksGuard<TorchAutograd> guard(TorchAutograd(), offloader.hooks());
      const CheckpointScope slow =
          late == Late::kKernels ? OpScope::enter(std::make_shared<LateKernels>()) : nullptr;
      const std::string wrong = difference(expected, program.step());
      if (!wrong.empty()) return Verdict{"bytes", wrong};
    }
  } catch (const std::exception& error) {
    return Verdict{"error", error.what()};
  }
  if (!offloader.empty()) return Verdict{"leak", "something is left"};
  return std::nullopt;
}

using Hostile = LateCopies<CudaDevice>;
using Mutated = Bent<Hostile>;
using Logged = StreamLogged<CudaDevice>;

CudaDevice gpu() { return CudaDevice({.index = 0}); }

class OffloaderUnderHostileSchedules : public testing::TestWithParam<Late> {};

TEST_P(OffloaderUnderHostileSchedules, GivesThePlainStepsBits) {
  for (const Program& program : {gpt(), odd(/*two_streams=*/true)}) {
    for (const Way& way : ways()) {
      const auto verdict =
          hunt(Mutated(Hostile(gpu(), GetParam()), std::nullopt), way.options, program, GetParam());
      EXPECT_FALSE(verdict) << program.name << ", " << way.name << ": " << verdict->oracle << ": "
                            << verdict->words;
    }
  }
}

std::string late_name(const testing::TestParamInfo<Late>& late) {
  constexpr const char* kNames[] = {"Nobody", "Offloads", "Reloads", "Kernels"};
  return kNames[static_cast<std::size_t>(late.param)];
}
INSTANTIATE_TEST_SUITE_P(Gpu, OffloaderUnderHostileSchedules,
                         testing::Values(Late::kNobody, Late::kOffloads, Late::kReloads,
                                         Late::kKernels),
                         late_name);

// The same with a log, which is judged: of the device as it is, or bent.
std::optional<Verdict> judge(std::optional<Mutation> mutation, const CoreOptions& options,
                             const Program& program) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("ferry_gpu_" + std::to_string(::getpid()));
  {
    LogStreams log(file, at::Device(at::kCUDA, 0));
    log_allocations();
    const auto verdict = hunt(Bent<Logged>(Logged(gpu(), StreamLog::active()), mutation), options,
                              program, Late::kNobody);
    log.commit();
    if (verdict && verdict->oracle == "error") return verdict;
  }
  std::ifstream in(file);
  LineSource lines(in, file.string());
  const check::LogReport report = check::check_log(lines);
  std::filesystem::remove(file);
  if (report.violations.empty()) return std::nullopt;
  return Verdict{"log", report.violations.front().message};
}

TEST(LoggedOffloader, IsClean) {
  for (const Program& program : {gpt(), odd(/*two_streams=*/false)}) {
    for (const Way& way : ways()) {
      const auto verdict = judge(std::nullopt, way.options, program);
      EXPECT_FALSE(verdict) << program.name << ", " << way.name << ": " << verdict->oracle << ": "
                            << verdict->words;
    }
  }
}

std::optional<Verdict> by_bytes(Mutation mutation) {
  for (const Program& program : {gpt(), odd(/*two_streams=*/true)}) {
    for (const Late late : {Late::kOffloads, Late::kReloads, Late::kKernels}) {
      for (const Way& way : ways()) {
        const Mutated device(Hostile(gpu(), late), mutation);
        if (const auto verdict = hunt(device, way.options, program, late)) return verdict;
      }
    }
  }
  return std::nullopt;
}
std::optional<Verdict> by_log(Mutation mutation) {
  for (const Program& program : {gpt(), odd(/*two_streams=*/false)}) {
    for (const Way& way : ways()) {
      if (const auto verdict = judge(mutation, way.options, program)) return verdict;
    }
  }
  return std::nullopt;
}

class MutantOnGpu : public testing::TestWithParam<Mutation> {};

TEST_P(MutantOnGpu, IsCaught) {
  const std::string mutant = name_of(GetParam());
  auto verdict = by_bytes(GetParam());
  if (!verdict) verdict = by_log(GetParam());
  ASSERT_TRUE(verdict) << mutant << " survives";
  // What throws may be the machine's fault and not the mutant's.
  ASSERT_NE(verdict->oracle, "error") << mutant << ": " << verdict->words;
  std::cout << mutant << " | " << verdict->oracle << " | " << verdict->words << "\n";
}

INSTANTIATE_TEST_SUITE_P(Core, MutantOnGpu, testing::ValuesIn(offload_mutations()),
                         mutant_test_name);

}  // namespace
}  // namespace ferry::real
