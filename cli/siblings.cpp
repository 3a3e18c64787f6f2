// The subcommands that start another program (cli/console/sibling.h), and the messages if that
// program was not built.
#include "cli/commands.h"
#include "cli/console/sibling.h"

namespace ferry::cli {

void add_train(CLI::App& app, Context& context) {
  add_sibling(
      app, context,
      {"train", "Train a network with offload (LibTorch)", "Train", FERRY_WITHOUT_LIBTORCH});
}

void add_run(CLI::App& app, Context& context) {
  add_sibling(app, context,
              {"run", "Run a PyTorch CUDA program without a GPU (LibTorch)", "Train",
               FERRY_WITHOUT_LIBTORCH});
}

void add_calibrate(CLI::App& app, Context& context) {
  add_sibling(app, context,
              {"calibrate", "Measure this machine: a card file and kernel times (LibTorch)",
               "Train", FERRY_WITHOUT_LIBTORCH});
}

void add_verify(CLI::App& app, Context& context) {
  add_sibling(
      app, context,
      {"verify", "Test the scheduler core with random programs", "", FERRY_WITHOUT_RAPIDCHECK});
}

}  // namespace ferry::cli
