#include "plugin/ui/actions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "plugin/base/command.h"
#include "plugin/base/exit_codes.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/terminal.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

// Keeps what a verb prints.
class KeptTerminal : public Terminal {
 public:
  void out(std::string_view text) override { output += text; }
  void err(std::string_view text) override { errors += text; }
  bool is_interactive() const override { return false; }
  bool has_colour() const override { return false; }
  bool is_unicode() const override { return true; }
  int width() const override { return 80; }
  int height() const override { return 24; }
  void show(const std::vector<std::string>&) override {}
  bool wait(Duration) override { return false; }
  Result<std::string> read(const std::string& path, std::size_t) override {
    return make_error(ErrorCode::kInvalid, path + ": the page reads no files");
  }

  std::string output, errors;
};

// The Api, in which the job of one name is there only if it is the one that was chosen.
class ChosenApi : public Api {
 public:
  ChosenApi(Api& api, const ChosenJob& job) : api_(api), job_(job) {}

  Result<std::string> context_namespace() override { return job_.namespace_; }
  Result<Json> get(const Resource& resource, const std::string& namespace_,
                   const std::string& name) override {
    Result<Json> object = api_.get(resource, namespace_, name);
    const bool is_chosen = std::string_view(resource.plural) == kJobs.plural &&
                           namespace_ == job_.namespace_ && name == job_.name;
    if (!object.ok() || !is_chosen) return object;
    if (string_at(at(*object, "metadata"), "uid") == job_.uid) return object;
    return make_error(ErrorCode::kInvalid,
                      "the job that was chosen is gone; another one has its name now, and was left "
                      "alone");
  }
  Result<std::vector<Json>> list(const Resource& resource, const std::string& namespace_,
                                 const Selector& selector) override {
    return api_.list(resource, namespace_, selector);
  }
  Result<std::vector<kube::ObjectPtr>> first_page(const Resource& resource,
                                                  const std::string& namespace_,
                                                  Watch::Decode decode) override {
    return api_.first_page(resource, namespace_, std::move(decode));
  }
  Result<Json> create(const Resource& resource, const std::string& namespace_, const Json& object,
                      bool dry_run) override {
    return api_.create(resource, namespace_, object, dry_run);
  }
  Result<Json> patch(const Resource& resource, const std::string& namespace_,
                     const std::string& name, const Json& merge_patch) override {
    return api_.patch(resource, namespace_, name, merge_patch);
  }
  Result<std::string> text(const std::string& path) override { return api_.text(path); }
  Result<std::unique_ptr<Mirror>> mirror(const Resource& resource, const std::string& namespace_,
                                         const Selector& selector) override {
    return api_.mirror(resource, namespace_, selector);
  }
  Result<std::unique_ptr<Watch>> watch(const Resource& resource, const std::string& namespace_,
                                       Watch::Decode decode, Watch::OnChange on_change) override {
    return api_.watch(resource, namespace_, std::move(decode), std::move(on_change));
  }
  Time now() override { return api_.now(); }
  std::string server() override { return api_.server(); }

 private:
  Api& api_;
  const ChosenJob& job_;
};

constexpr std::array kVerbs = {"cancel", "suspend", "resume", "retry", "retry-failed", "priority"};

std::vector<std::string> words_of(const Action& action, const ChosenJob& job) {
  if (action.verb == "retry-failed") {
    return {"retry", job.name, "-n", job.namespace_, "--failed-indexes"};
  }
  return {action.verb, job.name, "-n", job.namespace_};
}

Printed set_priority(const Action& action, const ChosenJob& job, Api& api) {
  const Json patch = {{"metadata", {{"uid", job.uid}}},
                      {"spec", {{"queue", {{"priority", action.priority}}}}}};
  const Result<Json> written = api.patch(kJobs, job.namespace_, job.name, patch);
  if (written.ok()) return {true, "has priority " + std::to_string(action.priority)};
  return {false, advice(written.error(), {"patch", kJobs, job.namespace_, job.name})};
}

}  // namespace

bool is_object_name(std::string_view name) {
  constexpr std::size_t kLongest = 253;
  const auto is_usual = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kLongest && name[0] != '-' && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), is_usual);
}

Result<Action> parse_action(std::string_view body) {
  const Result<Json> json = parse_json(body);
  if (!json.ok()) return make_error(ErrorCode::kInvalid, "the request is no JSON");
  Action action;
  action.verb = string_at(*json, "verb");
  action.priority = int_at(*json, "priority");
  if (std::find(kVerbs.begin(), kVerbs.end(), action.verb) == kVerbs.end()) {
    return make_error(ErrorCode::kInvalid, "there is no such action");
  }
  for (const Json& one : at(*json, "jobs")) {
    ChosenJob job{string_at(one, "ns"), string_at(one, "name"), string_at(one, "uid")};
    if (!is_object_name(job.namespace_) || !is_object_name(job.name) || job.uid.empty()) {
      return make_error(ErrorCode::kInvalid, "a job without a namespace, a name or a UID");
    }
    action.jobs.push_back(std::move(job));
  }
  if (action.jobs.empty() || action.jobs.size() > kMostChosen) {
    return make_error(ErrorCode::kInvalid, "choose 1 to 500 jobs");
  }
  return action;
}

std::string command_of(const Action& action, const ChosenJob& job) {
  if (action.verb == "priority") {
    return "kubectl patch dj " + shell_word(job.name) + " -n " + shell_word(job.namespace_) +
           " --type=merge -p '{\"spec\":{\"queue\":{\"priority\":" +
           std::to_string(action.priority) + "}}}'";
  }
  std::string command = "kubectl holdfast";
  for (const std::string& word : words_of(action, job)) command += " " + shell_word(word);
  return command;
}

std::string in_cluster(const std::string& command, const std::string& where) {
  constexpr std::string_view kPlugin = "kubectl holdfast ";
  constexpr std::string_view kKubectl = "kubectl ";
  if (where.empty() || !command.starts_with(kKubectl)) return command;
  if (command.starts_with(kPlugin)) return command + " " + where;
  return std::string(kKubectl) + where + " " + command.substr(kKubectl.size());
}

Json act(const Action& action, Api& api) {
  Json results = Json::array();
  for (const ChosenJob& job : action.jobs) {
    ChosenApi chosen(api, job);
    const Printed printed = action.verb == "priority" ? set_priority(action, job, api)
                                                      : run_verb(words_of(action, job), chosen);
    results.push_back(
        {{"ns", job.namespace_}, {"name", job.name}, {"ok", printed.ok}, {"text", printed.text}});
  }
  return results;
}

Printed run_verb(const std::vector<std::string>& words, Api& api) {
  const Result<Command> command = parse_command(words);
  if (!command.ok()) return {false, command.error().message};
  const VerbFunction function = function_of(command->verb);
  if (function == nullptr) return {false, "there is no such command"};
  KeptTerminal terminal;
  const bool ok = function(*command, api, terminal) == kExitDone;
  std::string text = ok ? terminal.output : terminal.errors;
  // Errors begin with the command, which whoever clicked did not type.
  const std::string prefix = "kubectl holdfast " + command->verb + ": ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  return {ok, text};
}

}  // namespace holdfast::plugin
