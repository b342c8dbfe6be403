#include "iridium/stream.h"

#include <fmt/format.h>

#include <utility>

#include "backend/backend.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

void require_pointer(const char* call, const void* pointer, std::size_t bytes) {
  if (pointer == nullptr && bytes > 0)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: a null pointer with {} bytes", call, bytes));
}

}  // namespace

StreamRef::StreamRef(std::shared_ptr<detail::StreamImpl> impl) : impl_(std::move(impl)) {}

void StreamRef::copy(void* to, const void* from, std::size_t bytes) {
  require_pointer("copy", to, bytes);
  require_pointer("copy", from, bytes);
  const auto* target = static_cast<const std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (target < source + bytes && source < target + bytes)
    throw Error(Errc::invalid_argument, fmt::format("copy: {} bytes at {} and at {} overlap", bytes,
                                                    fmt::ptr(from), fmt::ptr(to)));
  if (bytes > 0) impl_->copy(to, from, bytes);
}

void StreamRef::fill(void* to, unsigned char value, std::size_t bytes) {
  require_pointer("fill", to, bytes);
  if (bytes > 0) impl_->fill(to, value, bytes);
}

void StreamRef::call(std::function<void()> function) {
  if (!function) throw Error(Errc::invalid_argument, "call: the function is empty");
  impl_->call(std::move(function));
}

void StreamRef::retain(std::shared_ptr<const void> resource) {
  if (resource) impl_->retain(std::move(resource));
}

void StreamRef::synchronize() {
  impl_->synchronize();
}
bool StreamRef::idle() {
  return impl_->idle();
}
void StreamRef::begin_capture() {
  impl_->begin_capture();
}
Graph StreamRef::end_capture() {
  return Graph(impl_->end_capture());
}
CaptureStatus StreamRef::capture_status() const {
  return impl_->capture_status();
}
void StreamRef::launch(const Graph& graph) {
  impl_->launch(graph.impl_);
}
void* StreamRef::native_handle() const {
  return impl_->native_handle();
}

Stream::Stream(std::shared_ptr<detail::StreamImpl> impl) : StreamRef(std::move(impl)) {}
Stream::Stream(Stream&& other) noexcept : StreamRef(std::move(other.impl_)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    if (impl_) impl_->close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Stream::~Stream() {
  if (impl_) impl_->close();
}

Graph::Graph(std::shared_ptr<const detail::GraphImpl> impl) : impl_(std::move(impl)) {}
std::size_t Graph::node_count() const {
  return impl_->node_count();
}

}  // namespace iridium
