// ferry-train: the program behind `ferry train`, since `ferry` itself never links LibTorch.
//
// It reads the command line and trains; errors become exit codes (guarded.h).
#include <optional>

#include "real/train/exit_code.h"
#include "real/train/guarded.h"
#include "real/train/loop.h"
#include "real/train/options.h"

int main(int argc, char** argv) {
  using namespace ferry::real::train;
  return guarded("ferry train", [&]() -> int {
    const std::optional<Options> options = parse_options(argc, argv);
    if (!options) return kOk;
    if (options->cuda) require_cuda();
    return train(*options);
  });
}
