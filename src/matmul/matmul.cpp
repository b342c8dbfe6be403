#include "iridium/matmul.h"

#include "base/names.h"
#include "matmul/check.h"
#include "matmul/choice.h"
#include "matmul/launch.h"

namespace iridium {
namespace {

using detail::MatmulCall;

constexpr Names<MatmulAlgorithm, 10> algorithm_names = {
    "matmul algorithm",
    {"automatic", "simple", "tiled", "narrow", "hopper_64x128", "hopper_128x128", "hopper_128x256",
     "hopper_64x128_k4", "hopper_128x128_k2", "cublas"}};
constexpr auto algorithms = algorithm_names.values();

constexpr Names<MatmulLayout, 2> layout_names = {"layout of B", {"kn", "nk"}};
constexpr auto layouts = layout_names.values();

constexpr Names<MatmulActivation, 4> activation_names = {"activation",
                                                         {"none", "relu", "gelu", "silu"}};
constexpr auto activations = activation_names.values();

void launch(const Problem& problem, MatmulAlgorithm algorithm) {
  if (is_hopper(algorithm)) return launch_hopper_product(problem, algorithm);
  if (algorithm == MatmulAlgorithm::cublas) return launch_cublas_product(problem);
  if (algorithm == MatmulAlgorithm::tiled) return launch_tiled_product(problem);
  if (algorithm == MatmulAlgorithm::narrow) return launch_narrow_product(problem);
  launch_simple_product(problem);
}

}  // namespace

std::span<const MatmulAlgorithm> matmul_algorithms() {
  return algorithms;
}
std::string_view name(MatmulAlgorithm algorithm) {
  return algorithm_names.name(algorithm);
}
MatmulAlgorithm parse_matmul_algorithm(std::string_view text) {
  return algorithm_names.parse(text);
}

std::span<const MatmulLayout> matmul_layouts() {
  return layouts;
}
std::string_view name(MatmulLayout layout) {
  return layout_names.name(layout);
}
MatmulLayout parse_matmul_layout(std::string_view text) {
  return layout_names.parse(text);
}

std::span<const MatmulActivation> matmul_activations() {
  return activations;
}
std::string_view name(MatmulActivation activation) {
  return activation_names.name(activation);
}
MatmulActivation parse_matmul_activation(std::string_view text) {
  return activation_names.parse(text);
}

KernelList matmul_kernels() {
  KernelList list;
  for (const KernelList& some : {simple_product_kernels(), tiled_product_kernels(),
                                 narrow_product_kernels(), hopper_product_kernels()})
    list.insert(list.end(), some.begin(), some.end());
  return list;
}

void run_product(const Problem& problem, const MatmulOptions& options) {
  if (problem.rows == 0 || problem.columns == 0) return;
  // Without K there is nothing to multiply: the simple loop has sums of zero.
  if (problem.depth == 0) return launch_simple_product(problem);
  launch(problem, options.algorithm == MatmulAlgorithm::automatic
                      ? choose_algorithm(problem, options.invariant)
                      : options.algorithm);
}

void detail::matmul(StreamRef& stream, const MatmulCall& call, const MatmulOptions& options) {
  run_product(checked_problem("matmul", stream, call, options), options);
}

}  // namespace iridium
