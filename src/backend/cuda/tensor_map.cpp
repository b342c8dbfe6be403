#include "backend/cuda/tensor_map.h"

#include <fmt/format.h>

#include "backend/cuda/driver.h"

namespace iridium {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) >= alignof(CUtensorMap));

CUtensorMapDataType tensor_type(DataType type) {
  switch (type) {
    case DataType::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DataType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DataType::fp32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DataType::uint8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    default:
      throw Error(
          Errc::invalid_argument,
          fmt::format("tensor copies of {}: expected fp16, bf16, fp32 or uint8", name(type)));
  }
}

}  // namespace

TensorMap encode_tensor_map(const TensorBox& box) {
  constexpr cuuint32_t row_bytes = 128;
  const std::size_t element = size_of(box.type);
  const cuuint64_t sizes[] = {box.columns, box.rows};
  const cuuint64_t strides[] = {box.pitch * element};
  const cuuint32_t widths[] = {row_bytes / static_cast<cuuint32_t>(element),
                               static_cast<cuuint32_t>(box.box_rows)};
  const cuuint32_t steps[] = {1, 1};
  TensorMap map = {};
  const CUresult status = driver().encode_tensor_map(
      reinterpret_cast<CUtensorMap*>(&map), tensor_type(box.type), 2, const_cast<void*>(box.data),
      sizes, strides, widths, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw Error(
        Errc::invalid_argument,
        fmt::format("tensor copies of a matrix at {} with {} rows, {} columns and a pitch of "
                    "{} elements of {}, in boxes of {} rows: the driver refuses it (error "
                    "{})",
                    box.data, box.rows, box.columns, box.pitch, name(box.type), box.box_rows,
                    static_cast<int>(status)));
  return map;
}

}  // namespace iridium
