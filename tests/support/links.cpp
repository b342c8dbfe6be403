#include "support/links.h"

#include "support/ranks.h"

namespace iridium::test {

bool needs_native_atomics(const Operation& operation, const Arguments& arguments) {
  if (operation.name == "signal_all") return true;
  const auto algorithm = arguments.find("algorithm");
  return operation.name == "all_reduce" && algorithm != arguments.end() &&
         algorithm->second == "atomic";
}

bool depends_on_device(const Operation& operation, const Arguments& arguments) {
  const auto algorithm = arguments.find("algorithm");
  return operation.name == "matmul" && algorithm != arguments.end() &&
         algorithm->second != "automatic" && algorithm->second != "simple";
}

bool has_native_atomics(const Team& team) {
  return iridium::has_native_atomics(team.link());
}

std::unique_ptr<OperationCase> prepare_or_refuse(Context& context, const Team& team,
                                                 const Operation& operation,
                                                 const Arguments& arguments) {
  if (depends_on_device(operation, arguments)) try {
      return operation.prepare(context, team, arguments);
    } catch (const Error& error) {
      require(error.code() == Errc::unsupported, error.what());
      return nullptr;
    }
  if (has_native_atomics(team) || !needs_native_atomics(operation, arguments))
    return operation.prepare(context, team, arguments);
  require_error(Errc::unsupported, {}, [&] { operation.prepare(context, team, arguments); });
  return nullptr;
}

}  // namespace iridium::test
