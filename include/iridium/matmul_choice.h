// What `automatic` is for matrix products.
#pragma once

#include <string_view>

#include "iridium/matmul.h"
#include "iridium/matmul_shape.h"

namespace iridium {

struct MatmulChoice {
  MatmulAlgorithm algorithm;
  bool by_row;  ///< a row of the tuning table (iridium/tuning.h) decides; else an estimate does
};

/// What `matmul` runs on this stream for a product without an algorithm of its own: to name it, so
/// that the bits of results stay whatever tables say later. `type` is that of A and B: "bf16",
/// "fp16", "fp32", "tf32" (fp32, multiplied so) or "e4m3".
MatmulChoice choose_matmul(StreamRef& stream, const MatmulShape& shape, std::string_view type,
                           MatmulLayout layout);

}  // namespace iridium
