// ferry-verify: the program behind `ferry verify`, since `ferry` itself does not link RapidCheck.
#include "cli/console/program.h"
#include "cli/verify/verify.h"

int main(int argc, char** argv) {
  constexpr ferry::cli::AddSubcommand kVerify[] = {ferry::cli::add_verify};
  return ferry::cli::run_sibling(argc, argv, "verify", {FERRY_VERSION, kVerify});
}
