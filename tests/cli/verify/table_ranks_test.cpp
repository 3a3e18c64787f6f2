// The tables of mutants and schedulers over MPI's ranks are those of one process.
#include <gtest/gtest.h>

#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/verify/ranks.h"

namespace ferry::cli {
namespace {

#ifdef FERRY_MPIRUN

TEST(TableRanksTest, SchedulersDoNotTellHowManyRanksThereWere) {
  const std::string table = "--schedulers --programs 40 --seed 0 --csv";
  const Result alone = verify("", table);
  EXPECT_NE(alone.out.find("torchtune-1860"), std::string::npos) << alone.out << alone.err;
  for (const int ranks : {2, 3}) {
    const Result result = verify(mpirun(ranks), table);
    EXPECT_EQ(result.out, alone.out);
    EXPECT_EQ(result.code, alone.code) << result.err;
  }
}

TEST(TableRanksTest, MutantsDoNotEither) {
  const std::string table = "--mutants --programs 3 --seed 0 --json";
  const Result alone = verify("", table);
  const Result result = verify(mpirun(3), table + " --jobs 2");
  EXPECT_NE(alone.out.find("\"killed_by\": \"value\""), std::string::npos) << alone.out;
  EXPECT_EQ(result.out, alone.out);
  EXPECT_EQ(result.code, alone.code) << result.err;
}

#else

TEST(TableRanksTest, Skipped) { GTEST_SKIP() << "built without MPI"; }

#endif

}  // namespace
}  // namespace ferry::cli
