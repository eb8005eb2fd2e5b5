// `kubectl holdfast ui`: serves the page until it is interrupted.
#pragma once

#include "plugin/verbs/verb.h"

namespace holdfast::plugin {

int ui(const Command& command, Api& api, Terminal& terminal);

}  // namespace holdfast::plugin
