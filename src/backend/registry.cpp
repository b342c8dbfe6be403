#include <fmt/format.h>

#include "backend/backend.h"
#include "backend/host/host_backend.h"
#include "iridium/errors.h"

namespace iridium {
namespace {

BackendInfo not_built(BackendKind kind) {
  return {.kind = kind,
          .available = false,
          .reason = fmt::format("this build has no {} backend", name(kind)),
          .devices = {},
          .capabilities = {}};
}

}  // namespace

std::vector<BackendInfo> describe_backends() {
  return {not_built(BackendKind::cuda), not_built(BackendKind::hip), describe_host_backend()};
}

std::unique_ptr<Backend> make_backend(std::optional<BackendKind> kind) {
  if (!kind || *kind == BackendKind::host) return make_host_backend();
  throw Error(Errc::unsupported,
              fmt::format("backend {} cannot be used: {}", name(*kind), not_built(*kind).reason));
}

}  // namespace iridium
