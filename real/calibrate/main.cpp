// ferry-calibrate: the program behind `ferry calibrate`, because `ferry` itself never links
// LibTorch.
#include <optional>

#include "real/calibrate/calibrate.h"
#include "real/calibrate/options.h"
#include "real/train/exit_code.h"
#include "real/train/guarded.h"

int main(int argc, char** argv) {
  using namespace ferry::real;
  return train::guarded("ferry calibrate", [&]() -> int {
    const std::optional<calibrate::Options> options = calibrate::parse_options(argc, argv);
    if (!options) return train::kOk;
    if (options->cuda) train::require_cuda();
    calibrate::calibrate(*options);
    return train::kOk;
  });
}
