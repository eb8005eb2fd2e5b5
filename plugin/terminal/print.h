// Prints one object as -o asks for it.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "plugin/base/command.h"
#include "plugin/terminal/terminal.h"

namespace holdfast::plugin {

// "durablejob.holdfast.dev/encode-7".
std::string job_reference(std::string_view name);

// "namespace/name" of an object.
std::string key_of(const Json& object);

// -o json, yaml, name or wide; without -o: "durablejob.holdfast.dev/NAME WHAT".
void print_job(Terminal& terminal, const Command& command, const Json& job, std::string_view what);

// -o json or yaml of any value; JSON is indented as kubectl does. Control characters are escaped.
std::string rendered(const Json& json, std::string_view form);

}  // namespace holdfast::plugin
