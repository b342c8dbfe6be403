// Stands in for nvidia-cuda-mps-control: the same socket, files and requests, and no GPU.
//
// FAKE_MPS_BEHAVIOUR: "fails", "stays_silent" (never listens), "starts_slowly" (and never listens)
// or "ignores_quit".
// FAKE_MPS_RECORD: a file that gets a line for each thing that happens to the daemon.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string directory() {
  return variable("CUDA_MPS_PIPE_DIRECTORY");
}

void record(const std::string& text) {
  std::ofstream(variable("FAKE_MPS_RECORD"), std::ios::app) << text << '\n';
}

sockaddr_un control_address() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/control", directory().c_str());
  return address;
}

int serve() {
  const std::string behaviour = variable("FAKE_MPS_BEHAVIOUR");
  const std::string number_file = directory() + "/nvidia-cuda-mps-control.pid";
  ::setsid();
  if (behaviour == "starts_slowly") ::usleep(200'000);
  std::ofstream(number_file) << ::getpid() << '\n';
  record("started, visible devices '" + variable("CUDA_VISIBLE_DEVICES") + "'");
  if (behaviour == "stays_silent" || behaviour == "starts_slowly") ::pause();
  const sockaddr_un address = control_address();
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(listener, generic, sizeof address) != 0 || ::listen(listener, 8) != 0) return 1;
  for (;;) {
    const int client = ::accept(listener, nullptr, nullptr);
    char request[16] = {};
    if (::read(client, request, sizeof request - 1) > 0 && std::strcmp(request, "quit") == 0) {
      record("asked to quit");
      if (behaviour != "ignores_quit") break;
    }
    ::close(client);
  }
  ::unlink(number_file.c_str());
  return 0;
}

int send_requests() {
  for (std::string request; std::getline(std::cin, request);) {
    const sockaddr_un address = control_address();
    const int server = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return 1;
    if (::write(server, request.data(), request.size()) < 0) return 1;
    char answer = 0;
    while (::read(server, &answer, 1) > 0) {
    }
    ::close(server);
  }
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count == 1) return send_requests();
  if (argument_count != 2 || std::strcmp(arguments[1], "-d") != 0) return 2;
  if (variable("FAKE_MPS_BEHAVIOUR") == "fails") {
    std::cerr << "there is no device\n";
    return 1;
  }
  return ::fork() == 0 ? serve() : 0;
}
