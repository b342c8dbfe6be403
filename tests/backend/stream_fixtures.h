// What tests of the host's streams are made of.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "backend/host/host_stream.h"
#include "iridium/symmetric_array.h"

namespace iridium::test {

/// What a stream's work waits at until the test lets it go; a test that fails lets it go too.
class Gate {
 public:
  Gate() : opened_(promise_.get_future().share()) {}
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  std::function<void()> pass() const {
    return [opened = opened_] { opened.wait(); };
  }
  void open() {
    if (!std::exchange(is_open_, true)) promise_.set_value();
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_;
  bool is_open_ = false;
};

class OwnedStream {
 public:
  OwnedStream() : stream_(make_host_stream()) {}
  ~OwnedStream() { stream_->close(); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  detail::StreamImpl* operator->() const { return stream_.get(); }
  detail::StreamImpl& operator*() const { return *stream_; }
  const std::shared_ptr<detail::StreamImpl>& shared() const { return stream_; }

 private:
  std::shared_ptr<detail::StreamImpl> stream_;
};

class FakeAllocation final : public detail::Allocation {
 public:
  FakeAllocation() : Allocation(nullptr, 0) {}
  std::byte* at(int) const override { return nullptr; }
  void keep_until(std::shared_ptr<const Marker>) const override {}
};

}  // namespace iridium::test
