// cancel, suspend and resume: each sets one field of the spec.
#include "plugin/terminal/print.h"
#include "plugin/verbs/outcome.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

struct Steer {
  const char* field;
  bool value;
  const char* already;  // the field has the value
  const char* done;     // what the user reads after the write
};

// No value: there is nothing to refuse.
std::string refusal(const Command& command, const Json& job) {
  const std::string name = string_at(at(job, "metadata"), "name");
  const std::string where = " -n " + string_at(at(job, "metadata"), "namespace");
  const std::string phase = phase_of(job);
  if (has_ended(job)) {
    if (command.verb == "cancel" && phase == "Cancelled") return "";
    return job_reference(name) + " has ended, " + state_of(job) + "; " +
           "to run it again: kubectl holdfast retry " + name + where;
  }
  if (is_being_deleted(job))
    return job_reference(name) + " is being deleted; nothing is left to " + command.verb;
  if (command.verb != "cancel" && bool_at(at(job, "spec"), "cancel")) {
    return job_reference(name) +
           " is being cancelled, which nothing reverses; once it has ended: "
           "kubectl holdfast retry " +
           name + where;
  }
  return "";
}

int steer(const Command& command, Api& api, Terminal& terminal, const Steer& what) {
  const Result<Json> job = job_of(command, api);
  if (!job.ok()) return refuse(terminal, command, job.error().message);
  const std::string why_not = refusal(command, *job);
  if (!why_not.empty()) return refuse(terminal, command, why_not);
  Json after = *job;
  if (bool_at(at(*job, "spec"), what.field) == what.value) {
    print_job(terminal, command, *job, what.already);
  } else {
    const Json& metadata = at(*job, "metadata");
    // The UID: another job of the same name is not meant.
    const Json patch = {{"metadata", {{"uid", string_at(metadata, "uid")}}},
                        {"spec", {{what.field, what.value}}}};
    const Result<Json> written =
        api.patch(kJobs, string_at(metadata, "namespace"), string_at(metadata, "name"), patch);
    if (!written.ok()) {
      return refuse(terminal, command,
                    advice(written.error(), {"patch", kJobs, string_at(metadata, "namespace"),
                                             string_at(metadata, "name")}));
    }
    after = *written;
    print_job(terminal, command, after, what.done);
  }
  if (!command.has("wait")) return kExitDone;
  return wait_for_end(command, api, terminal, after, "Cancelled");
}

}  // namespace

int cancel(const Command& command, Api& api, Terminal& terminal) {
  return steer(command, api, terminal,
               {"cancel", true, "is cancelled already", "is being cancelled"});
}

int suspend(const Command& command, Api& api, Terminal& terminal) {
  return steer(command, api, terminal,
               {"suspend", true, "is suspended already", "is being suspended"});
}

int resume(const Command& command, Api& api, Terminal& terminal) {
  return steer(command, api, terminal, {"suspend", false, "is not suspended", "is resumed"});
}

}  // namespace holdfast::plugin
