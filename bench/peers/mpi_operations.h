// What bench/peers/mpi_peer.cpp measures of Open MPI.
#pragma once

// The C++ bindings that MPI has dropped do not compile without warnings.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

/// How often a rank that waits for its turn looks: seldom, since others are being measured.
inline constexpr std::chrono::milliseconds pause_between_looks{5};

struct Heat {
  int number = 0;
  std::string operation;
  std::size_t bytes = 0;
  // Empty where the operation has no such parameter.
  std::string dtype = {};
  std::string op = {};
};

/// The communicator of all ranks.
class World {
 public:
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int next() const { return (rank_ + 1) % ranks_; }
  int previous() const { return (rank_ + ranks_ - 1) % ranks_; }

  void barrier() const { MPI_Barrier(MPI_COMM_WORLD); }

  /// Collective: what rank 0 gives.
  template <class Value>
  Value from_first(Value value) const {
    static_assert(std::is_trivially_copyable_v<Value>);
    MPI_Bcast(&value, sizeof(value), MPI_BYTE, 0, MPI_COMM_WORLD);
    return value;
  }

  /// Collective: the same, for a wait of minutes that leaves the cores to others.
  bool from_first_later(bool value) const {
    int word = value ? 1 : 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    int is_done = 0;
    // Ended by rank 0, which has a limit; when it dies mpirun ends the others.
    while (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), is_done == 0)
      std::this_thread::sleep_for(pause_between_looks);
    return word != 0;
  }

  /// Collective: the first text that is not empty, in the order of ranks.
  std::string first_text(const std::string& mine) const {
    using Line = std::array<char, 200>;
    Line line{};
    std::copy_n(mine.begin(), std::min(mine.size(), line.size() - 1), line.begin());
    std::vector<Line> all(static_cast<std::size_t>(ranks_));
    MPI_Allgather(line.data(), sizeof(Line), MPI_BYTE, all.data(), sizeof(Line), MPI_BYTE,
                  MPI_COMM_WORLD);
    for (const Line& one : all)
      if (one[0] != 0) return one.data();
    return "";
  }

 private:
  int rank_ = 0;
  int ranks_ = 0;
};

/// What is measured; all functions are collective.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  virtual void call() = 0;
  /// Bytes that bandwidths are about.
  virtual std::size_t payload() const = 0;
  /// Calls it with inputs made of `seed`; what is wrong with this rank's result, or nothing.
  virtual std::string check(std::uint64_t seed) = 0;
  /// How many bytes cross a rank's links for each byte of payload.
  virtual double bus_factor() const { return 1; }
};

/// Why the heat is skipped, or nothing.
std::string reason_to_skip(const Heat& heat);

/// Collective. For a heat that is not skipped.
std::unique_ptr<Operation> make_operation(const World& world, const Heat& heat);
