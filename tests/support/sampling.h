// How much of a long list of cases a run looks at.
#pragma once

#include <cstddef>

namespace iridium::test {

/// Whether IRIDIUM_TEST_FULL asks for everything instead of a sample.
bool is_full_run();

/// Every n-th case of a list: the more ranks there are on few cores, and the slower a sanitizer
/// makes them, the fewer. The same on every rank.
class Sample {
 public:
  explicit Sample(int ranks);
  /// Whether the next case is one of the sample.
  bool takes_next() { return next_++ % every_ == 0; }

 private:
  std::size_t every_;
  std::size_t next_ = 0;
};

}  // namespace iridium::test
