// retry: a new job with the spec of one that has ended.
//
// The new name depends on the source alone, so a retry whose answer was lost finds its own job.
#include <utility>

#include "plugin/terminal/print.h"
#include "plugin/verbs/outcome.h"
#include "plugin/verbs/retry_job.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

// A create may lose its answer, or meet a job that is deleted before it can be read.
constexpr int kMaxRetryTries = 5;

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
    job_ = std::move(*job);
    name_ = command_.text("name", retry_name(source_name_, source_uid_));
    job_["metadata"]["name"] = name_;
    return create();
  }

 private:
  int create() {
    const bool dry_run = command_.has("dry-run");
    Error last;
    for (int tries = 0; tries < kMaxRetryTries; ++tries) {
      const Result<Json> created = api_.create(kJobs, namespace_, job_, dry_run);
      if (created.ok()) {
        const std::string what = dry_run ? "would be created (dry run)" : "created";
        return report(*created, what + ", a retry of " + source_name_);
      }
      last = created.error();
      if (last.code == ErrorCode::kAlreadyExists) {
        const Result<Json> there = api_.get(kJobs, namespace_, name_);
        if (there.ok()) return meet(*there);
        // Deleted meanwhile: the name is free.
        if (there.error().code == ErrorCode::kNotFound) continue;
        return refuse(terminal_, command_,
                      advice(there.error(), {"get", kJobs, namespace_, name_}));
      }
      if (last.code != ErrorCode::kTransient || !last.maybe_applied) break;
    }
    if (last.code == ErrorCode::kAlreadyExists) {
      return refuse(terminal_, command_,
                    "somebody creates and deletes " + job_reference(name_) +
                        " again and again; try again, or give another name with --name");
    }
    return refuse(terminal_, command_, advice(last, {"create", kJobs, namespace_, name_}));
  }

  // A job of the name is there.
  int meet(const Json& there) {
    const Json& annotations = at(at(there, "metadata"), "annotations");
    if (string_at(annotations, kRetryOfUidAnnotation) == source_uid_) return again(there);
    return refuse(terminal_, command_,
                  job_reference(name_) + " exists, and does not retry this " + source_name_ +
                      "; give another name with --name");
  }

  // The source has been retried already.
  int again(const Json& there) {
    if (is_being_deleted(there)) {
      return refuse(terminal_, command_,
                    job_reference(name_) +
                        " retries it already and is being deleted; try again "
                        "once it is gone, or give --name");
    }
    if (has_ended(there)) {
      return refuse(terminal_, command_,
                    source_name_ + " was retried as " + job_reference(name_) + ", " +
                        state_of(there) + "; to retry that one: kubectl holdfast retry " + name_ +
                        " -n " + string_at(at(there, "metadata"), "namespace") +
                        "; to retry this one again, give --name");
    }
    const std::string runs = indexes_of(there);
    if (runs != indexes_of(job_)) {
      return refuse(terminal_, command_,
                    job_reference(name_) + " retries " + source_name_ + " already, but runs " +
                        runs + " and not " + indexes_of(job_) + "; wait for its end, cancel it, " +
                        "or give --name to run both");
    }
    return report(there, "retries " + source_name_ + " already; " + state_of(there));
  }

  static std::string indexes_of(const Json& job) {
    const std::string indexes = string_at(at(job, "spec"), "indexes");
    return indexes.empty() ? "all indexes" : "only the indexes " + indexes;
  }

  int report(const Json& job, const std::string& what) {
    return report_job(command_, api_, terminal_, job, what);
  }

  const Command& command_;
  Api& api_;
  Terminal& terminal_;
  Json job_;
  std::string source_name_, source_uid_, namespace_, name_;
};

}  // namespace

int retry(const Command& command, Api& api, Terminal& terminal) {
  return Retry(command, api, terminal).run();
}

}  // namespace holdfast::plugin
