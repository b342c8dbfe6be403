#include "mpi_operations.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>

namespace {

using Bytes = std::span<unsigned char>;

/// Bytes of a window that every rank has, open to all ranks until it is destroyed.
class Window {
 public:
  enum class Kind { remote, shared };

  /// Collective.
  Window(std::size_t bytes, Kind kind) : bytes_(bytes) {
    const auto allocate = kind == Kind::remote ? MPI_Win_allocate : MPI_Win_allocate_shared;
    allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    MPI_Win_lock_all(0, window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  /// Collective.
  ~Window() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  Bytes mine() { return {static_cast<unsigned char*>(memory_), bytes_}; }
  /// Of a shared window: where another rank's bytes are.
  void* of_rank(int rank) const {
    MPI_Aint bytes = 0;
    int unit = 0;
    void* memory = nullptr;
    MPI_Win_shared_query(window_, rank, &bytes, &unit, &memory);
    return memory;
  }

  void synchronize() const { MPI_Win_sync(window_); }
  MPI_Win get() const { return window_; }

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

class Barrier final : public Operation {
 public:
  explicit Barrier(const World& world)
      : world_(world), values_(sizeof(std::uint64_t), Window::Kind::shared) {}

  void call() override { MPI_Barrier(MPI_COMM_WORLD); }
  std::size_t payload() const override { return 0; }

  /// Every rank writes a value, some of them late, and after a barrier reads all of them.
  std::string check(std::uint64_t seed) override {
    std::string wrong;
    std::mt19937_64 random(seed);
    for (int step = 0; step < 10; ++step) {
      const std::uint64_t value = random();
      if (static_cast<int>(value % static_cast<unsigned>(world_.ranks())) == world_.rank())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      at(world_.rank()).store(value + static_cast<unsigned>(world_.rank()));
      values_.synchronize();
      call();
      values_.synchronize();
      for (int rank = 0; rank < world_.ranks(); ++rank)
        if (at(rank).load() != value + static_cast<unsigned>(rank) && wrong.empty())
          wrong = "rank " + std::to_string(world_.rank()) + " did not see what rank " +
                  std::to_string(rank) + " wrote before the barrier";
      // Not by the barrier under test: nobody overwrites what another one still reads.
      world_.first_text("");
    }
    return wrong;
  }

 private:
  std::atomic_ref<std::uint64_t> at(int rank) const {
    return std::atomic_ref(*static_cast<std::uint64_t*>(values_.of_rank(rank)));
  }

  const World& world_;
  Window values_;
};

void fill(Bytes bytes, std::uint64_t seed, int rank, unsigned char mask) {
  std::mt19937_64 random(seed + static_cast<unsigned>(rank));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random() ^ (mask * 0x0101'0101'0101'0101U);
    std::memcpy(&bytes[at], &word, std::min(sizeof(word), bytes.size() - at));
  }
}

/// What `fill` writes.
std::vector<unsigned char> values(std::size_t bytes, std::uint64_t seed, int rank) {
  std::vector<unsigned char> bytes_of_rank(bytes);
  fill(bytes_of_rank, seed, rank, 0);
  return bytes_of_rank;
}

/// The first one, or nothing.
template <class Number>
std::string difference(const World& world, std::span<const Number> output,
                       const std::vector<Number>& expected) {
  const auto [wrong, right] = std::ranges::mismatch(output, expected);
  if (right == expected.end()) return "";
  return "rank " + std::to_string(world.rank()) + ": element " +
         std::to_string(right - expected.begin()) + " is " + std::to_string(*wrong) + ", not " +
         std::to_string(*right);
}

std::string difference(const World& world, Bytes output,
                       const std::vector<unsigned char>& expected) {
  return difference(world, std::span<const unsigned char>(output), expected);
}

/// MPI_Put to the next rank, or MPI_Get from it, each with a flush.
class RingCopy final : public Operation {
 public:
  enum class Kind { put, get };

  RingCopy(const World& world, std::size_t bytes, Kind kind)
      : world_(world), kind_(kind), local_(bytes), window_(bytes, Window::Kind::remote) {}

  void call() override {
    const int count = static_cast<int>(local_.size());
    const auto move = [&](auto function) {
      function(local_.data(), count, MPI_BYTE, world_.next(), 0, count, MPI_BYTE, window_.get());
    };
    if (kind_ == Kind::put)
      move(MPI_Put);
    else
      move(MPI_Get);
    MPI_Win_flush(world_.next(), window_.get());
  }

  std::size_t payload() const override { return local_.size(); }

  std::string check(std::uint64_t seed) override {
    const bool is_put = kind_ == Kind::put;
    const Bytes input = is_put ? Bytes(local_) : window_.mine();
    const Bytes output = is_put ? window_.mine() : Bytes(local_);
    const int source = is_put ? world_.previous() : world_.next();
    fill(input, seed, world_.rank(), 0);
    // No byte is right before the call.
    fill(output, seed, source, 0xff);
    window_.synchronize();
    world_.barrier();
    call();
    world_.barrier();
    window_.synchronize();
    return difference(world_, output, values(output.size(), seed, source));
  }

 private:
  const World& world_;
  Kind kind_;
  std::vector<unsigned char> local_;
  Window window_;
};

/// Names of types end with their bits: "bf16".
std::size_t element_bytes(const Heat& heat) {
  const std::size_t digits = heat.dtype.find_first_of("0123456789");
  return digits == std::string::npos ? 1 : std::stoul(heat.dtype.substr(digits)) / 8;
}

/// The elements of each of `parts` that the bytes hold; at least one, as Iridium counts them.
std::size_t count_of(const Heat& heat, int parts = 1) {
  const std::size_t count = heat.bytes / element_bytes(heat) / static_cast<std::size_t>(parts);
  return std::max<std::size_t>(count, 1);
}

/// Bytes of every rank for every rank: MPI_Allgather, MPI_Alltoall and MPI_Bcast from rank 0.
class Exchange final : public Operation {
 public:
  enum class Kind { all_gather, all_to_all, broadcast };

  Exchange(const World& world, const Heat& heat, Kind kind) : world_(world), kind_(kind) {
    const bool has_parts = kind == Kind::all_to_all;
    const std::size_t part = count_of(heat, has_parts ? world.ranks() : 1) * element_bytes(heat);
    input_.resize(has_parts ? part * ranks() : part);
    output_.resize(kind == Kind::broadcast ? part : part * ranks());
  }

  void call() override {
    const int part = static_cast<int>(output_.size() / ranks());
    switch (kind_) {
      case Kind::all_gather:
        MPI_Allgather(input_.data(), part, MPI_BYTE, output_.data(), part, MPI_BYTE,
                      MPI_COMM_WORLD);
        break;
      case Kind::all_to_all:
        MPI_Alltoall(input_.data(), part, MPI_BYTE, output_.data(), part, MPI_BYTE, MPI_COMM_WORLD);
        break;
      case Kind::broadcast:
        MPI_Bcast(output_.data(), static_cast<int>(output_.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    }
  }

  std::string check(std::uint64_t seed) override {
    const std::vector<unsigned char> expected = result(seed);
    // No byte is right before the call.
    std::ranges::transform(expected, output_.begin(), std::bit_not<unsigned char>());
    if (kind_ != Kind::broadcast)
      fill(input_, seed, world_.rank(), 0);
    else if (world_.rank() == 0)
      output_ = expected;
    call();
    return difference(world_, Bytes(output_), expected);
  }

  double bus_factor() const override {
    return kind_ == Kind::broadcast ? 1 : 1 - 1 / static_cast<double>(ranks());
  }
  std::size_t payload() const override { return output_.size(); }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(world_.ranks()); }

  std::vector<unsigned char> result(std::uint64_t seed) const {
    if (kind_ == Kind::broadcast) return values(output_.size(), seed, 0);
    std::vector<unsigned char> all;
    const std::size_t part = output_.size() / ranks();
    const std::size_t offset =
        kind_ == Kind::all_to_all ? part * static_cast<std::size_t>(world_.rank()) : 0;
    for (int rank = 0; rank < world_.ranks(); ++rank) {
      const std::vector<unsigned char> theirs = values(input_.size(), seed, rank);
      const auto begin = theirs.begin() + static_cast<std::ptrdiff_t>(offset);
      all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(part));
    }
    return all;
  }

  const World& world_;
  Kind kind_;
  std::vector<unsigned char> input_;
  std::vector<unsigned char> output_;
};

/// Spreads the bits of a number over all of another.
std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58'476d'1ce4'e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d0'49bb'1331'11ebU;
  return bits ^ (bits >> 31);
}

/// MPI_Allreduce, or MPI_Reduce_scatter_block.
template <class Number>
class Reduction final : public Operation {
 public:
  enum class Kind { all_reduce, reduce_scatter };

  Reduction(const World& world, const Heat& heat, Kind kind, MPI_Datatype type, MPI_Op op)
      : world_(world),
        kind_(kind),
        type_(type),
        op_(op),
        output_(count_of(heat, kind == Kind::all_reduce ? 1 : world.ranks())),
        input_(output_.size() * (kind == Kind::all_reduce ? 1 : ranks())) {}

  void call() override {
    const int count = static_cast<int>(output_.size());
    const auto reduce = kind_ == Kind::all_reduce ? MPI_Allreduce : MPI_Reduce_scatter_block;
    reduce(input_.data(), output_.data(), count, type_, op_, MPI_COMM_WORLD);
  }

  std::string check(std::uint64_t seed) override {
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = value(seed, world_.rank(), i);
    const std::size_t offset =
        kind_ == Kind::all_reduce ? 0 : output_.size() * static_cast<std::size_t>(world_.rank());
    std::vector<Number> expected(output_.size());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = reduced(seed, offset + i);
    // No number is right before the call.
    std::ranges::transform(expected, output_.begin(),
                           [](Number number) { return static_cast<Number>(number + 1); });
    call();
    return difference(world_, std::span<const Number>(output_), expected);
  }

  double bus_factor() const override {
    const double share = 1 - 1 / static_cast<double>(ranks());
    return kind_ == Kind::all_reduce ? 2 * share : share;
  }
  std::size_t payload() const override { return input_.size() * sizeof(Number); }

 private:
  std::size_t ranks() const { return static_cast<std::size_t>(world_.ranks()); }

  /// A small whole number, so that every order of sums is exact and nothing overflows.
  Number value(std::uint64_t seed, int rank, std::size_t index) const {
    const std::uint64_t column = mixed(seed + index);
    const std::uint64_t bits = mixed(column + static_cast<std::uint64_t>(rank));
    if (op_ == MPI_PROD) {
      const bool is_chosen = column % ranks() == static_cast<std::uint64_t>(rank);
      return static_cast<Number>(is_chosen ? 2 + bits % 100 : 1);
    }
    const int most = op_ == MPI_SUM ? 100 / world_.ranks() : 100;
    const int least = std::is_signed_v<Number> ? -most : 0;
    return static_cast<Number>(least + static_cast<int>(bits % (2 * unsigned(most) + 1)));
  }

  Number reduced(std::uint64_t seed, std::size_t index) const {
    Number result = value(seed, 0, index);
    for (int rank = 1; rank < world_.ranks(); ++rank) {
      const Number next = value(seed, rank, index);
      if (op_ == MPI_SUM) result = static_cast<Number>(result + next);
      if (op_ == MPI_PROD) result = static_cast<Number>(result * next);
      if (op_ == MPI_MIN) result = std::min(result, next);
      if (op_ == MPI_MAX) result = std::max(result, next);
    }
    return result;
  }

  const World& world_;
  Kind kind_;
  MPI_Datatype type_;
  MPI_Op op_;
  std::vector<Number> output_;
  std::vector<Number> input_;
};

/// MPI_OP_NULL where MPI has none.
MPI_Op op_of(const std::string& name) {
  if (name == "sum") return MPI_SUM;
  if (name == "prod") return MPI_PROD;
  if (name == "min") return MPI_MIN;
  return name == "max" ? MPI_MAX : MPI_OP_NULL;
}

/// Calls `body` with a number of the type, and MPI's name for it; false where MPI has none.
template <class Body>
bool with_type(const std::string& name, const Body& body) {
  const auto is = [&](const char* wanted, auto number, MPI_Datatype type) {
    if (name != wanted) return false;
    body(number, type);
    return true;
  };
  return is("fp32", float{}, MPI_FLOAT) || is("fp64", double{}, MPI_DOUBLE) ||
         is("int8", std::int8_t{}, MPI_INT8_T) || is("int32", std::int32_t{}, MPI_INT32_T) ||
         is("int64", std::int64_t{}, MPI_INT64_T) || is("uint8", std::uint8_t{}, MPI_UINT8_T) ||
         is("uint32", std::uint32_t{}, MPI_UINT32_T) || is("uint64", std::uint64_t{}, MPI_UINT64_T);
}

bool is_reduction(const Heat& heat) {
  return heat.operation == "all_reduce" || heat.operation == "reduce_scatter";
}

std::unique_ptr<Operation> make_reduction(const World& world, const Heat& heat) {
  std::unique_ptr<Operation> made;
  with_type(heat.dtype, [&](auto number, MPI_Datatype type) {
    using Case = Reduction<decltype(number)>;
    const auto kind =
        heat.operation == "all_reduce" ? Case::Kind::all_reduce : Case::Kind::reduce_scatter;
    made = std::make_unique<Case>(world, heat, kind, type, op_of(heat.op));
  });
  return made;
}

/// Why it cannot be reduced, or nothing.
std::string reason_against_reduction(const Heat& heat) {
  if (!with_type(heat.dtype, [](auto, MPI_Datatype) {}))
    return "MPI has no numbers of type " + heat.dtype;
  return op_of(heat.op) == MPI_OP_NULL ? "MPI has no reduction by " + heat.op : "";
}

}  // namespace

std::string reason_to_skip(const Heat& heat) {
  constexpr std::array names = {"device_barrier", "put",        "get",        "all_reduce",
                                "reduce_scatter", "all_gather", "all_to_all", "broadcast"};
  if (std::ranges::find(names, heat.operation) == names.end())
    return "Open MPI has no such operation here";
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (heat.bytes > most) return "a call of MPI moves " + std::to_string(most) + " bytes at most";
  return is_reduction(heat) ? reason_against_reduction(heat) : "";
}

std::unique_ptr<Operation> make_operation(const World& world, const Heat& heat) {
  if (heat.operation == "device_barrier") return std::make_unique<Barrier>(world);
  if (heat.operation == "put")
    return std::make_unique<RingCopy>(world, heat.bytes, RingCopy::Kind::put);
  if (heat.operation == "get")
    return std::make_unique<RingCopy>(world, heat.bytes, RingCopy::Kind::get);
  if (is_reduction(heat)) return make_reduction(world, heat);
  const auto kind = heat.operation == "all_gather"   ? Exchange::Kind::all_gather
                    : heat.operation == "all_to_all" ? Exchange::Kind::all_to_all
                                                     : Exchange::Kind::broadcast;
  return std::make_unique<Exchange>(world, heat, kind);
}
