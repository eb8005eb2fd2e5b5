#include "plugin/base/installation.h"

#include <cstdlib>

namespace holdfast::plugin {

std::string operator_namespace(const Command& command) {
  const char* const variable = std::getenv("HOLDFAST_OPERATOR_NAMESPACE");
  return command.text("operator-namespace", variable == nullptr ? "" : variable);
}

}  // namespace holdfast::plugin
