// What the page does for a person: the verbs of the command line, each for one job of a UID.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "plugin/base/api.h"

namespace holdfast::plugin {

// One job that was chosen. Another job that has its name now is not meant.
struct ChosenJob {
  std::string namespace_;
  std::string name;
  std::string uid;
};

struct Action {
  std::string verb;           // "cancel", "suspend", "resume", "retry", "retry-failed", "priority"
  std::int64_t priority = 0;  // of "priority"
  std::vector<ChosenJob> jobs;
};

// A name as Kubernetes has it: never a flag, never a path.
bool is_object_name(std::string_view name);

// No more at a time.
inline constexpr std::size_t kMostChosen = 500;

// From {"verb", "priority", "jobs": [{"ns", "name", "uid"}]}. kInvalid says what is wrong.
Result<Action> parse_action(std::string_view body);

// The command that does the same to one job.
std::string command_of(const Action& action, const ChosenJob& job);

// [{"ns", "name", "ok", "text"}], one for each job, in order.
Json act(const Action& action, Api& api);

// A command for the same cluster as the page's. `where`: "--context prod", or empty. kubectl takes
// such flags before its verb, and a plugin only after it.
std::string in_cluster(const std::string& command, const std::string& where);

// What a verb of the command line prints: the end of a log, for example.
struct Printed {
  bool ok = false;
  std::string text;
};
Printed run_verb(const std::vector<std::string>& words, Api& api);

}  // namespace holdfast::plugin
