#include "backend/cuda/cuda_graph.h"

#include <exception>
#include <utility>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/cuda_scope.h"
#include "backend/cuda/cuda_stream.h"

namespace iridium {
namespace {

thread_local bool called_by_cuda = false;

/// While it lives, this thread is CUDA's.
struct CallbackScope {
  CallbackScope() { called_by_cuda = true; }
  ~CallbackScope() { called_by_cuda = false; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
};

void run_call(const HostCall& call) {
  try {
    call.function();
  } catch (const std::exception& error) {
    call.failure->set(error.what());
  } catch (...) {
    call.failure->set("an exception of unknown type");
  }
}

}  // namespace

bool in_cuda_callback() {
  return called_by_cuda;
}

void Failure::set(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (!reason_) reason_ = std::move(reason);
}

std::optional<std::string> Failure::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reason_, std::nullopt);
}

void HostCall::run_and_delete(void* call) {
  const CallbackScope scope;
  const std::unique_ptr<HostCall> owned(static_cast<HostCall*>(call));
  run_call(*owned);
}

void HostCall::run(void* call) {
  const CallbackScope scope;
  run_call(*static_cast<const HostCall*>(call));
}

void HostCall::destroy(void* call) {
  const CallbackScope scope;
  delete static_cast<HostCall*>(call);
}

CudaGraph::~CudaGraph() {
  if (!process.is_here()) return;
  const CudaScope scope(device);
  if (executable != nullptr) static_cast<void>(cudaGraphExecDestroy(executable));
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
}

void CudaGraph::keep_until(std::shared_ptr<const Marker> work) const {
  for (const auto& resource : retained) resource->keep_until(work);
}

std::size_t CudaGraph::node_count() const {
  std::size_t count = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &count), "cannot count a graph's nodes");
  return count;
}

std::vector<std::shared_ptr<Failure>> CudaGraph::all_failures() const {
  std::vector<std::shared_ptr<Failure>> all = child_failures;
  all.push_back(failure);
  return all;
}

bool Recording::is_over() const {
  const std::lock_guard lock(mutex_);
  return graph_ == nullptr;
}

void Recording::retain(std::shared_ptr<const detail::Resource> resource) {
  const std::lock_guard lock(mutex_);
  if (graph_) graph_->retained.push_back(std::move(resource));
}

void Recording::add_child(const CudaGraph& child) {
  const std::lock_guard lock(mutex_);
  if (!graph_) return;
  graph_->retained.insert(graph_->retained.end(), child.retained.begin(), child.retained.end());
  for (const auto& failure : child.all_failures()) graph_->child_failures.push_back(failure);
}

std::shared_ptr<Failure> Recording::failure() const {
  const std::lock_guard lock(mutex_);
  return graph_ ? graph_->failure : nullptr;
}

std::shared_ptr<CudaGraph> Recording::end() {
  const std::lock_guard lock(mutex_);
  return std::exchange(graph_, nullptr);
}

}  // namespace iridium
