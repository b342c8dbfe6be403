// From a product's arguments to a problem.
#pragma once

#include "matmul/problem.h"

namespace iridium {

/// Throws, with the operation's name, what `matmul` throws for matrices and options that cannot be,
/// and for an algorithm that cannot compute this product.
Problem checked_problem(const char* operation, StreamRef& stream, const detail::MatmulCall& call,
                        const MatmulOptions& options);

/// The same without any check, for what is never launched: matrices may have no data.
Problem unchecked_problem(StreamRef& stream, const detail::MatmulCall& call,
                          const MatmulOptions& options);

/// Launches a checked problem's kernel.
void run_product(const Problem& problem, const MatmulOptions& options);

}  // namespace iridium
