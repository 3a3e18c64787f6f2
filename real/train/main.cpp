// ferry-train: the program behind `ferry train`, because `ferry` itself never links LibTorch.
//
// It parses the command line and trains. Errors become exit codes (guarded.h).
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
