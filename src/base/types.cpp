#include "iridium/types.h"

#include <string>

#include "iridium/errors.h"
#include "iridium/version.h"

namespace iridium {

std::string_view name(BackendKind kind) {
  switch (kind) {
    case BackendKind::host:
      return "host";
    case BackendKind::cuda:
      return "cuda";
    case BackendKind::hip:
      return "hip";
  }
  return "unknown";
}

BackendKind parse_backend(std::string_view text) {
  for (BackendKind kind : {BackendKind::host, BackendKind::cuda, BackendKind::hip})
    if (text == name(kind)) return kind;
  throw Error(Errc::invalid_argument,
              "unknown backend '" + std::string(text) + "': expected host, cuda or hip");
}

std::string_view name(Placement placement) {
  return placement == Placement::device ? "device" : "host";
}

Placement parse_placement(std::string_view text) {
  for (Placement placement : {Placement::device, Placement::host})
    if (text == name(placement)) return placement;
  throw Error(Errc::invalid_argument,
              "unknown placement '" + std::string(text) + "': expected device or host");
}

std::string_view name(Link link) {
  switch (link) {
    case Link::shared:
      return "shared";
    case Link::apart:
      return "apart";
    case Link::nvlink:
      return "nvlink";
    case Link::pcie_atomics:
      return "pcie_atomics";
    case Link::pcie:
      return "pcie";
    case Link::none:
      return "none";
  }
  return "unknown";
}

Link parse_link(std::string_view text) {
  for (Link link :
       {Link::shared, Link::apart, Link::nvlink, Link::pcie_atomics, Link::pcie, Link::none})
    if (text == name(link)) return link;
  throw Error(Errc::invalid_argument,
              "unknown link '" + std::string(text) +
                  "': expected shared, apart, nvlink, pcie_atomics, pcie or none");
}

const char* version() {
  return IR_VERSION;
}

}  // namespace iridium
