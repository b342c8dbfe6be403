// Uses the installed library in a world of one.
#include <iridium/iridium.h>

#include <cstdio>

int main() {
  iridium::Context context(iridium::make_local_jobs(1).front());
  auto numbers = context.allocate<int>(1000);
  numbers[999] = 42;
  context.barrier();
  std::printf("iridium %s: rank %d of %d, last element %d\n", iridium::version(), context.rank(),
              context.size(), *context.at(&numbers[999], 0));
  return *numbers.at(0) == numbers[0] && numbers.at(0)[999] == 42 ? 0 : 1;
}
