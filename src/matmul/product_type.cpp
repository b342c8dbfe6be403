#include "matmul/product_type.h"

#include "base/names.h"

namespace iridium {
namespace {

constexpr Names<ProductType, 5> type_names = {"type of a product",
                                              {"bf16", "fp16", "fp32", "tf32", "e4m3"}};
constexpr auto types = type_names.values();

}  // namespace

std::span<const ProductType> product_types() {
  return types;
}
std::string_view name(ProductType type) {
  return type_names.name(type);
}
ProductType parse_product_type(std::string_view text) {
  return type_names.parse(text);
}

ProductType product_type(const Problem& problem) {
  switch (problem.type) {
    case MatmulType::bf16:
      return ProductType::bf16;
    case MatmulType::fp16:
      return ProductType::fp16;
    case MatmulType::fp32:
      return problem.tf32 ? ProductType::tf32 : ProductType::fp32;
    case MatmulType::e4m3:
      break;
  }
  return ProductType::e4m3;
}

}  // namespace iridium
