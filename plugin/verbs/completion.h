// Shell completion, made from the tables of verbs and flags.
#pragma once

#include <string>
#include <vector>

#include "plugin/base/api.h"

namespace holdfast::plugin {

// The candidates for the last of `words`, the words behind "kubectl holdfast". Asks the API server
// for jobs' names where a job is meant; without an answer it has none.
std::vector<std::string> candidates(const std::vector<std::string>& words, Api& api);

// The script for a shell, "bash" or "zsh". Empty: another shell.
std::string completion_script(const std::string& shell);

}  // namespace holdfast::plugin
