// main() of test binaries whose ranks run as processes: the binary is every rank's program too.
#include <gtest/gtest.h>

#include "support/ranks.h"

int main(int argc, char** argv) {
  int status = 0;
  if (iridium::test::run_as_rank(argc, argv, status)) return status;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
