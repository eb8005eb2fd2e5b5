#include "plugin/verbs/outcome.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/utf8.h"
#include "plugin/base/refusals.h"
#include "plugin/terminal/print.h"
#include "plugin/verbs/verb.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kMaxTextBytes = 400;
// How often a silent wait looks whether the watch has trouble.
constexpr std::chrono::seconds kLook{1};
// How often it then asks why, and for how long it waits for that answer.
constexpr std::chrono::seconds kAsk{5};

std::string uid_of(const Json& job) { return string_at(at(job, "metadata"), "uid"); }

// What the condition of the outcome says.
std::string why(const Json& job) {
  const std::string phase = phase_of(job);
  for (const Json& condition : at(at(job, "status"), "conditions")) {
    const std::string type = string_at(condition, "type");
    if (string_at(condition, "status") != "True") continue;
    if (type != phase && !(phase == "Succeeded" && type == "Complete")) continue;
    const std::string reason = clean_text(string_at(condition, "reason"), kMaxTextBytes);
    const std::string message = clean_text(string_at(condition, "message"), kMaxTextBytes);
    return message.empty() ? reason : reason + ": " + message;
  }
  return "";
}

class Wait {
 public:
  Wait(const Command& command, Api& api, Terminal& terminal, const Json& job,
       const std::string& wanted, std::function<SteadyTime()> clock)
      : command_(command),
        api_(api),
        terminal_(terminal),
        last_(job),
        uid_(uid_of(job)),
        name_(string_at(at(job, "metadata"), "name")),
        namespace_(string_at(at(job, "metadata"), "namespace")),
        wanted_(wanted),
        clock_(std::move(clock)) {}

  int run() {
    if (has_ended(last_)) return ended(last_);
    const Selector selector{.labels = "", .fields = "metadata.name=" + name_};
    // The mirror would wait for rights for ever.
    const auto listed = api_.list(kJobs, namespace_, selector);
    if (!listed.ok() && listed.error().code == ErrorCode::kForbidden) {
      return refuse(terminal_, command_,
                    job_reference(name_) + " is there, but " +
                        advice(listed.error(), {"list", kJobs, namespace_, ""}));
    }
    auto mirror = api_.mirror(kJobs, namespace_, selector);
    if (!mirror.ok()) return refuse(terminal_, command_, mirror.error().message);
    const std::optional<Duration> limit = command_.duration("timeout");
    const SteadyTime begun = clock_();
    for (;;) {
      const Duration left = limit ? begun + *limit - clock_() : Duration::max();
      if (left <= Duration::zero()) return too_late(*limit);
      const bool changed = (*mirror)->wait(std::min<Duration>(kLook, left));
      if (changed) {
        if (const auto code = look(**mirror)) return *code;
      }
      if (const auto code = in_trouble(**mirror, left)) return *code;
    }
  }

 private:
  std::optional<int> look(Mirror& mirror) {
    const auto objects = mirror.objects();
    const auto found = find(objects);
    if (found == nullptr) return gone(mirror);
    if (has_ended(*found)) return ended(*found);
    last_ = *found;
    const Json& waiting = at(at(last_, "status"), "waiting");
    const std::string reported = phase_of(last_) + string_at(waiting, "reason");
    if (reported != reported_) terminal_.err(job_reference(name_) + ": " + state_of(last_) + "\n");
    reported_ = reported;
    return std::nullopt;
  }

  using Objects = std::vector<std::shared_ptr<const Json>>;

  const Json* find(const Objects& objects) const {
    const auto found = std::find_if(objects.begin(), objects.end(),
                                    [&](const auto& one) { return uid_of(*one) == uid_; });
    return found == objects.end() ? nullptr : found->get();
  }

  // A job with ttlSecondsAfterFinished 0 ends and goes in one moment.
  std::optional<int> gone(Mirror& mirror) {
    const Objects deleted = mirror.deleted();
    const Json* const last = find(deleted);
    if (last != nullptr && has_ended(*last)) return ended(*last);
    if (last == nullptr) {
      // The first list may be older than the job.
      const Result<Json> now = api_.get(kJobs, namespace_, name_);
      const bool is_there = now.ok() && uid_of(*now) == uid_;
      if (is_there && has_ended(*now)) return ended(*now);
      if (is_there || (!now.ok() && now.error().code != ErrorCode::kNotFound)) return std::nullopt;
    }
    return refuse(
        terminal_, command_,
        last != nullptr
            ? "somebody has deleted " + job_reference(name_) +
                  " before it ended; submit it again if you need it"
            : job_reference(name_) +
                  " is gone, and nobody has seen how it ended; submit it again if you need it");
  }

  int ended(const Json& job) {
    const bool is_wanted = phase_of(job) == wanted_;
    terminal_.err(job_reference(name_) + ": " + state_of(job) + "\n");
    return is_wanted ? kExitDone : kExitJobFailed;
  }

  int too_late(Duration limit) {
    return refuse(terminal_, command_,
                  job_reference(name_) + " has not ended after " + human_duration(limit) + ", " +
                      state_of(last_) +
                      "; it goes on: wait again, or see kubectl holdfast explain " + name_);
  }

  // A server that is away is waited for. Credentials that were revoked do not come back.
  std::optional<int> in_trouble(Mirror& mirror, Duration at_most) {
    const std::string trouble = mirror.trouble();
    if (!trouble.empty() && trouble != trouble_) {
      terminal_.err("the API server does not answer (" + clean_text(trouble, kMaxTextBytes) +
                    "); still waiting\n");
    }
    trouble_ = trouble;
    if (trouble.empty()) {
      // The watch often recovers before the next question: that is a success, too.
      static_cast<void>(refusals_.note(std::nullopt, clock_()));
      return std::nullopt;
    }
    if (clock_() < next_ask_) return std::nullopt;
    const std::optional<Error> error = mirror.look(std::min<Duration>(kAsk, at_most));
    next_ask_ = clock_() + kAsk;
    if (!refusals_.note(error, clock_())) return std::nullopt;
    return refuse(terminal_, command_,
                  "cannot wait for " + job_reference(name_) + " any longer: for " +
                      human_duration(kRefusedFor) + ", " +
                      advice(*error, {"list", kJobs, namespace_, ""}) + "; at last " +
                      state_of(last_) + "; it goes on: see kubectl holdfast explain " + name_);
  }

  const Command& command_;
  Api& api_;
  Terminal& terminal_;
  Json last_;
  const std::string uid_, name_, namespace_, wanted_;
  const std::function<SteadyTime()> clock_;
  std::string reported_, trouble_;
  SteadyTime next_ask_{};
  Refusals refusals_;
};

}  // namespace

std::string phase_of(const Json& job) { return string_at(at(job, "status"), "phase", "Pending"); }

bool has_ended(const Json& job) {
  const std::string phase = phase_of(job);
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
}

bool is_being_deleted(const Json& job) {
  return !string_at(at(job, "metadata"), "deletionTimestamp").empty();
}

std::string state_of(const Json& job) {
  std::string text = "it is " + phase_of(job);
  if (has_ended(job)) {
    const std::string reason = why(job);
    return reason.empty() ? text : text + ": " + reason;
  }
  const Json& waiting = at(at(job, "status"), "waiting");
  const std::string reason = clean_text(string_at(waiting, "reason"), kMaxTextBytes);
  if (reason.empty()) return text;
  return text + ": " + reason + ": " + clean_text(string_at(waiting, "message"), kMaxTextBytes);
}

int wait_for_end(const Command& command, Api& api, Terminal& terminal, const Json& job,
                 const std::string& wanted, std::function<SteadyTime()> clock) {
  return Wait(command, api, terminal, job, wanted, std::move(clock)).run();
}

int report_job(const Command& command, Api& api, Terminal& terminal, const Json& job,
               const std::string& what) {
  print_job(terminal, command, job, what);
  if (!command.has("wait") || command.has("dry-run")) return kExitDone;
  return wait_for_end(command, api, terminal, job);
}

}  // namespace holdfast::plugin
