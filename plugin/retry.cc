// retry: a new job with the spec of one that has ended.
//
// The new name depends on the source alone, so a retry whose answer was lost finds its own job.
#include "plugin/outcome.h"
#include "plugin/print.h"
#include "plugin/retry_job.h"
#include "plugin/verbs.h"

namespace holdfast::plugin {
namespace {

constexpr int kMaxNames = 100;

class Retry {
 public:
  Retry(const Command& command, Api& api, Terminal& terminal)
      : command_(command), api_(api), terminal_(terminal) {}

  int run() {
    const Result<Json> source = job_of(command_, api_);
    if (!source.ok()) return refuse(terminal_, command_, source.error().message);
    source_name_ = string_at(at(*source, "metadata"), "name");
    source_uid_ = string_at(at(*source, "metadata"), "uid");
    namespace_ = string_at(at(*source, "metadata"), "namespace");
    Result<Json> job = retry_job(*source, command_.has("failed-indexes"));
    if (!job.ok()) return refuse(terminal_, command_, job.error().message);
    if (command_.has("name")) {
      const auto code = create(*job, command_.text("name"));
      return code ? *code : taken();
    }
    const int first = retry_number(source_name_) + 1;
    for (int number = first; number < first + kMaxNames; ++number) {
      if (const auto code = create(*job, retry_name(source_name_, number))) return *code;
    }
    return taken();
  }

 private:
  // None: the name is taken by a job that has nothing to do with this source.
  std::optional<int> create(Json& job, const std::string& name) {
    job["metadata"]["name"] = name;
    const bool dry_run = command_.has("dry-run");
    const Result<Json> created = api_.create(kJobs, namespace_, job, dry_run);
    if (created.ok()) {
      const std::string what = dry_run ? "would be created (dry run)" : "created";
      return report(*created, what + ", a retry of " + source_name_);
    }
    if (created.error().code != ErrorCode::kAlreadyExists) {
      return refuse(terminal_, command_,
                    advice(created.error(), {"create", kJobs, namespace_, name}));
    }
    const Result<Json> there = api_.get(kJobs, namespace_, name);
    if (!there.ok()) {
      return refuse(terminal_, command_, advice(there.error(), {"get", kJobs, namespace_, name}));
    }
    const Json& annotations = at(at(*there, "metadata"), "annotations");
    if (string_at(annotations, kRetryOfUidAnnotation) != source_uid_) return std::nullopt;
    return again(*there, name);
  }

  // The source has been retried already.
  int again(const Json& there, const std::string& name) {
    if (is_being_deleted(there)) {
      return refuse(terminal_, command_,
                    job_reference(name) +
                        " retries it already and is being deleted; try again "
                        "once it is gone, or give --name");
    }
    if (has_ended(there)) {
      return refuse(terminal_, command_,
                    source_name_ + " was retried as " + job_reference(name) + ", " +
                        state_of(there) + "; to retry that one: kubectl holdfast retry " + name +
                        "; to retry this one again, give --name");
    }
    return report(there, "retries " + source_name_ + " already; " + state_of(there));
  }

  int taken() {
    return refuse(terminal_, command_,
                  "the name of the new job is taken; give another one with --name");
  }

  int report(const Json& job, const std::string& what) {
    return report_job(command_, api_, terminal_, job, what);
  }

  const Command& command_;
  Api& api_;
  Terminal& terminal_;
  std::string source_name_, source_uid_, namespace_;
};

}  // namespace

int retry(const Command& command, Api& api, Terminal& terminal) {
  return Retry(command, api, terminal).run();
}

}  // namespace holdfast::plugin
