#pragma once

#include "backend/backend.h"

namespace iridium {

/// What `StreamImpl::make_tensor_map` gives on a GPU. Throws `invalid_argument` for a matrix that
/// tensor copies cannot have.
TensorMap encode_tensor_map(const TensorBox& box);

}  // namespace iridium
