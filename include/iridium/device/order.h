// Memory order and scope, as arguments: atomic_store(block, flag, 1, order::release,
// scope::system).
#pragma once

namespace iridium {

/// How an access orders the accesses around it.
enum class Order {
  relaxed,  ///< not at all
  acquire,  ///< what the writer did before its release is seen after this load
  release,  ///< what came before is seen by whoever acquires this store
  acq_rel,  ///< both, for an access that reads and writes
};

/// Among whom an access is ordered. Memory that a peer reads or writes needs `system`, also when
/// both ranks share a GPU.
enum class Scope {
  block,   ///< the threads of one block
  device,  ///< the blocks of one rank
  system,  ///< all ranks, and the host
};

/// An order as a type, so that a wrong one is an error at compile time.
template <Order order>
struct OrderTag {};
template <Scope scope>
struct ScopeTag {};

namespace order {
inline constexpr OrderTag<Order::relaxed> relaxed;
inline constexpr OrderTag<Order::acquire> acquire;
inline constexpr OrderTag<Order::release> release;
inline constexpr OrderTag<Order::acq_rel> acq_rel;
}  // namespace order

namespace scope {
inline constexpr ScopeTag<Scope::block> block;
inline constexpr ScopeTag<Scope::device> device;
inline constexpr ScopeTag<Scope::system> system;
}  // namespace scope

}  // namespace iridium
