// submit: creates a job, at most once for a key.
//
// The lock is the API server's: of several creates of one name, one succeeds and the others get
// AlreadyExists. Who loses reads the job that is there and compares.
#include <utility>

#include "plugin/terminal/print.h"
#include "plugin/verbs/difference.h"
#include "plugin/verbs/job_file.h"
#include "plugin/verbs/outcome.h"
#include "plugin/verbs/spec_defaults.h"
#include "plugin/verbs/submit_key.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

// A create may meet a job that is deleted before it can be read, or lose its answer.
constexpr int kMaxTries = 5;
constexpr std::size_t kMaxDifferences = 30;

class Submit {
 public:
  Submit(const Command& command, Api& api, Terminal& terminal)
      : command_(command), api_(api), terminal_(terminal), key_(command.text("key")) {}

  int run() {
    Result<Json> read = read_manifest(command_, terminal_);
    if (!read.ok()) return refuse(terminal_, command_, read.error().message);
    job_ = std::move(*read);
    const Result<> checked = check_job(job_);
    if (!checked.ok()) return refuse(terminal_, command_, checked.error().message);
    const Result<> named = take_names();
    if (!named.ok()) return refuse(terminal_, command_, named.error().message);
    return create();
  }

 private:
  // Namespace and name, and the annotations of the key.
  Result<> take_names() {
    const auto wrong = [](std::string message) {
      return make_error(ErrorCode::kInvalid, std::move(message));
    };
    Json& metadata = job_["metadata"];
    const std::string own = string_at(metadata, "namespace");
    if (command_.has("namespace") && !own.empty() && own != command_.text("namespace")) {
      return wrong("the file names the namespace " + own + ", and -n " +
                   command_.text("namespace") + "; leave one out");
    }
    Result<std::string> namespace_ = own;
    if (own.empty()) namespace_ = namespace_of(command_, api_);
    if (!namespace_.ok()) return namespace_.error();
    namespace_name_ = *namespace_;
    metadata["namespace"] = namespace_name_;
    job_.erase("status");
    if (key_.size() > kMaxKeyBytes) {
      return wrong("the key has more than " + std::to_string(kMaxKeyBytes) +
                   " bytes; give a shorter one");
    }
    if (key_.empty()) {
      name_ = string_at(metadata, "name");
      if (!name_.empty() || !string_at(metadata, "generateName").empty()) return Unit{};
      return wrong("the job has no name; set metadata.name, or give --key");
    }
    name_ = name_of_key(key_);
    metadata["name"] = name_;
    metadata.erase("generateName");
    hash_ = spec_hash(without_defaults(at(job_, "spec")));
    if (!at(metadata, "annotations").is_object()) metadata["annotations"] = Json::object();
    metadata["annotations"][kKeyAnnotation] = key_;
    metadata["annotations"][kHashAnnotation] = hash_;
    return Unit{};
  }

  int create() {
    Error last;
    for (int tries = 0; tries < kMaxTries; ++tries) {
      const Result<Json> created =
          api_.create(kJobs, namespace_name_, job_, command_.has("dry-run"));
      if (created.ok()) {
        return report(*created, command_.has("dry-run") ? "would be created (dry run)" : "created");
      }
      last = created.error();
      if (last.code == ErrorCode::kAlreadyExists) {
        const Result<Json> there = api_.get(kJobs, namespace_name_, name_);
        if (there.ok()) return meet(*there);
        last = there.error();
        // Deleted meanwhile: the name is free.
        if (last.code == ErrorCode::kNotFound) continue;
        return refuse(terminal_, command_, advice(last, {"get", kJobs, namespace_name_, name_}));
      }
      // Without a key nobody could distinguish our job from another one of the name.
      if (key_.empty() || last.code != ErrorCode::kTransient || !last.maybe_applied) break;
    }
    std::string line = advice(last, {"create", kJobs, namespace_name_, name_});
    if (last.maybe_applied && key_.empty()) {
      line += "; the job may have been created: kubectl get dj -n " + namespace_name_;
    }
    return refuse(terminal_, command_, line);
  }

  // A job of the name is there.
  int meet(const Json& there) {
    const Json& annotations = at(at(there, "metadata"), "annotations");
    const std::string reference = job_reference(name_) + " in namespace " + namespace_name_;
    if (key_.empty()) {
      return refuse(terminal_, command_,
                    reference +
                        " exists already; delete it, give another "
                        "name, or use --key to submit once");
    }
    if (string_at(annotations, kKeyAnnotation) != key_) {
      return refuse(
          terminal_, command_,
          reference +
              " exists, and was not submitted with this key; delete it, or give another key");
    }
    if (is_being_deleted(there)) {
      return refuse(terminal_, command_,
                    reference +
                        " has this key and is being deleted; submit "
                        "again once it is gone: kubectl wait "
                        "--for=delete dj/" +
                        name_ + " -n " + namespace_name_);
    }
    if (string_at(annotations, kHashAnnotation) == hash_) return report(there, unchanged(there));
    return compare(there);
  }

  // Another text of the spec may still mean the same. So the API server is asked what it would make
  // of this one.
  int compare(const Json& there) {
    Json trial = job_;
    // Of the same length as the name, and free.
    trial["metadata"]["name"] = trial_name(name_, hash_);
    const Result<Json> made = api_.create(kJobs, namespace_name_, trial, true);
    if (!made.ok()) {
      return refuse(terminal_, command_,
                    "the key is taken by " + job_reference(name_) +
                        ", which has another spec; this "
                        "one cannot be compared: " +
                        advice(made.error(), {"create", kJobs, namespace_name_, name_}));
    }
    const auto lines =
        differences("spec", with_defaults(at(there, "spec")), with_defaults(at(*made, "spec")));
    if (lines.empty()) return report(there, unchanged(there));
    refuse(terminal_, command_,
           "the key is taken by " + job_reference(name_) + ", which has another spec (" +
               std::to_string(lines.size()) + (lines.size() == 1 ? " field" : " fields") +
               "); submit the same spec, give another key, or delete that job");
    for (std::size_t i = 0; i < std::min(lines.size(), kMaxDifferences); ++i) {
      terminal_.err("  " + lines[i] + "\n");
    }
    if (lines.size() > kMaxDifferences) {
      terminal_.err("  and " + std::to_string(lines.size() - kMaxDifferences) + " more\n");
    }
    return kExitRefused;
  }

  static std::string unchanged(const Json& there) {
    return "is there already, submitted with this key; " + state_of(there);
  }

  int report(const Json& job, const std::string& what) {
    return report_job(command_, api_, terminal_, job, what);
  }

  const Command& command_;
  Api& api_;
  Terminal& terminal_;
  const std::string key_;
  Json job_;
  std::string namespace_name_, name_, hash_;
};

}  // namespace

int submit(const Command& command, Api& api, Terminal& terminal) {
  return Submit(command, api, terminal).run();
}

}  // namespace holdfast::plugin
