// Reading and writing what a rank can address, wherever it lies.
#pragma once

#include <vector>

#include "iridium/iridium.h"

namespace iridium::test {

/// Goes through a stream of the context, and waits: a test's host code cannot touch a GPU's memory.
class Memory {
 public:
  explicit Memory(Context& context) : stream_(context.make_stream()) {}

  template <class T>
  T read(const T* from) {
    T value;
    copy(&value, from, sizeof(T));
    return value;
  }
  template <class T>
  void write(T* to, const T& value) {
    copy(to, &value, sizeof(T));
  }
  template <class T>
  std::vector<T> read(const SymmetricArray<T>& array) {
    std::vector<T> values(array.size());
    copy(values.data(), array.data(), array.bytes());
    return values;
  }
  template <class T>
  void write(const SymmetricArray<T>& array, const std::vector<T>& values) {
    copy(array.data(), values.data(), array.bytes());
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes) {
    stream_.copy(to, from, bytes);
    stream_.synchronize();
  }

  Stream stream_;
};

}  // namespace iridium::test
