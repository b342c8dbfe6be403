// The types of a product by one word, as options and rows of the tuning table have it.
#pragma once

#include <span>
#include <string_view>
#include <type_traits>

#include "matmul/problem.h"

namespace iridium {

/// Of A and B, and how they are multiplied. D has the same type; where theirs is e4m3, bf16 or
/// fp16.
enum class ProductType { bf16, fp16, fp32, tf32, e4m3 };

/// All of them, in this order.
std::span<const ProductType> product_types();
/// "tf32".
std::string_view name(ProductType type);
/// The type called `text`; throws `invalid_argument` with the known names.
ProductType parse_product_type(std::string_view text);

ProductType product_type(const Problem& problem);

/// use(T(), D()) for the elements of A and B, and of D: of e4m3, bf16.
template <class Use>
void with_elements(ProductType type, Use use) {
  switch (type) {
    case ProductType::bf16:
      return use(bf16(), bf16());
    case ProductType::fp16:
      return use(fp16(), fp16());
    case ProductType::fp32:
    case ProductType::tf32:
      return use(float(), float());
    case ProductType::e4m3:
      return use(e4m3(), bf16());
  }
}

}  // namespace iridium
