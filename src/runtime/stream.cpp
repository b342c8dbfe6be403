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

detail::StreamImpl& StreamRef::impl() const {
  if (!impl_->process().is_here()) throw forked_child_error();
  return *impl_;
}

void StreamRef::copy(void* to, const void* from, std::size_t bytes) {
  require_pointer("copy", to, bytes);
  require_pointer("copy", from, bytes);
  const auto* target = static_cast<const std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (target < source + bytes && source < target + bytes)
    throw Error(Errc::invalid_argument, fmt::format("copy: {} bytes at {} and at {} overlap", bytes,
                                                    fmt::ptr(from), fmt::ptr(to)));
  if (bytes > 0) impl().copy(to, from, bytes);
}

void StreamRef::fill(void* to, unsigned char value, std::size_t bytes) {
  require_pointer("fill", to, bytes);
  if (bytes > 0) impl().fill(to, value, bytes);
}

void StreamRef::call(std::function<void()> function) {
  if (!function) throw Error(Errc::invalid_argument, "call: the function is empty");
  impl().call(std::move(function));
}

Event StreamRef::record() {
  return Event(impl().record());
}

void StreamRef::wait(const Event& event) {
  if (!event.impl_) throw Error(Errc::invalid_argument, "wait: the event was never recorded");
  if (!event.impl_->process().is_here()) throw forked_child_error();
  impl().wait(event.impl_);
}

void StreamRef::retain(std::shared_ptr<const detail::Resource> resource) {
  if (resource) impl().retain(std::move(resource));
}

void StreamRef::retain_in_capture(std::shared_ptr<const detail::Resource> resource) {
  if (resource) impl().retain_in_capture(std::move(resource));
}

void StreamRef::synchronize() {
  impl().synchronize();
}
bool StreamRef::idle() {
  return impl().idle();
}
void StreamRef::begin_capture() {
  impl().begin_capture();
}
Graph StreamRef::end_capture() {
  return Graph(impl().end_capture());
}
CaptureStatus StreamRef::capture_status() const {
  return impl().capture_status();
}
void StreamRef::launch(const Graph& graph) {
  if (graph.impl_ && !graph.impl_->process().is_here()) throw forked_child_error();
  impl().launch(graph.impl_);
}
void* StreamRef::native_handle() const {
  return impl().native_handle();
}

Event::Event(std::shared_ptr<const detail::EventImpl> impl) : impl_(std::move(impl)) {}

Stream::Stream(std::shared_ptr<detail::StreamImpl> impl) : StreamRef(std::move(impl)) {}
Stream::Stream(Stream&& other) noexcept : StreamRef(std::move(other.impl_)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    close();
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Stream::~Stream() {
  close();
}

void Stream::close() noexcept {
  if (impl_ && impl_->process().is_here()) impl_->close();
}

Graph::Graph(std::shared_ptr<const detail::GraphImpl> impl) : impl_(std::move(impl)) {}
std::size_t Graph::node_count() const {
  if (!impl_->process().is_here()) throw forked_child_error();
  return impl_->node_count();
}

}  // namespace iridium
