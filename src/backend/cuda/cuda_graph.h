// What a capture on a CUDA stream records.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"

namespace iridium {

/// Where functions called by CUDA leave what they threw, for the next call of a stream.
/// Thread safety: all of it.
class Failure {
 public:
  void set(std::string reason);
  std::optional<std::string> take();

 private:
  std::mutex mutex_;
  std::optional<std::string> reason_;
};

/// A function for CUDA to call.
struct HostCall {
  std::function<void()> function;
  std::shared_ptr<Failure> failure;

  static void run_and_delete(void* call);
  static void run(void* call);
  static void destroy(void* call);
};

struct CudaGraph final : detail::Resource {
  explicit CudaGraph(int on_device) : device(on_device) {}
  ~CudaGraph() override;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void keep_until(std::shared_ptr<const Marker> work) const override;
  std::size_t node_count() const;
  /// This graph's failures and those of the graphs recorded in it.
  std::vector<std::shared_ptr<Failure>> all_failures() const;

  const ProcessMark process;
  int device;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::vector<std::shared_ptr<const detail::Resource>> retained;
  std::shared_ptr<Failure> failure = std::make_shared<Failure>();
  std::vector<std::shared_ptr<Failure>> child_failures;
};

/// A capture that Iridium has begun, shared by the streams that are in it. Thread safety: all of
/// it.
class Recording {
 public:
  explicit Recording(int device) : graph_(std::make_shared<CudaGraph>(device)) {}

  bool is_over() const;
  /// The functions below do nothing when it is over.
  void retain(std::shared_ptr<const detail::Resource> resource);
  void add_child(const CudaGraph& child);
  /// Null when it is over.
  std::shared_ptr<Failure> failure() const;
  /// Returns what was recorded; null when it is over.
  std::shared_ptr<CudaGraph> end();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<CudaGraph> graph_;  ///< null when it is over
};

/// What a `Graph` names. Streams keep the graph itself until its launches are done.
struct CudaGraphHandle final : detail::GraphImpl {
  explicit CudaGraphHandle(std::shared_ptr<const CudaGraph> names) : graph(std::move(names)) {}
  std::size_t node_count() const override { return graph->node_count(); }

  const std::shared_ptr<const CudaGraph> graph;
};

}  // namespace iridium
