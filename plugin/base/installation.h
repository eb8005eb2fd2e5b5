// In which namespace the operator is.
#pragma once

#include <string>

#include "plugin/base/command.h"

namespace holdfast::plugin {

inline constexpr const char* kUsualNamespace = "holdfast-system";

// What --operator-namespace says, else HOLDFAST_OPERATOR_NAMESPACE. Empty: neither does.
std::string operator_namespace(const Command& command);

}  // namespace holdfast::plugin
