#include "cli/output_stream.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string_view>

namespace iridium::cli {

void OutputStream::write_some() {
  const ssize_t bytes = ::write(descriptor_, pending_.data() + written_, next_write_bytes());
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (bytes < 0) {
    failure_ = errno;
    is_inside_line_ = false;
    written_ = pending_.size();
  } else if (bytes > 0) {
    written_ += static_cast<std::size_t>(bytes);
    is_inside_line_ = pending_[written_ - 1] != '\n';
  }
  if (!has_pending()) {
    pending_.clear();
    written_ = 0;
  }
}

std::size_t OutputStream::next_write_bytes() const {
  const std::string_view rest = std::string_view(pending_).substr(written_);
  if (rest.size() <= PIPE_BUF) return rest.size();
  const std::size_t newline = rest.rfind('\n', PIPE_BUF - 1);
  return newline == std::string_view::npos ? PIPE_BUF : newline + 1;
}

}  // namespace iridium::cli
