// A DurableJob, read from its JSON for people: clean texts, and times instead of their text forms.
// Used by `explain` and `top`. Pure; what is missing or malformed reads as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/time.h"

namespace holdfast::plugin {

// The member as one line of clean text.
std::string clean_at(const Json& object, std::string_view key);
std::optional<Time> moment_at(const Json& object, std::string_view key);

struct RunText {
  std::int64_t index = 0;
  std::int64_t attempt = 0;
  std::int64_t attempts = 1;
  std::string pod;
  std::string node;
  std::string worker;
  std::optional<Time> start;
  std::optional<Time> next_attempt;  // none: the run is open
  std::int64_t failures = 0;
  std::int64_t disruptions = 0;
  std::int64_t deferrals = 0;
  std::string progress;
  std::string refused;
};

struct EndText {
  std::string stage;
  std::optional<std::int64_t> index;
  std::int64_t attempt = 0;
  std::int64_t count = 1;
  std::string pod;
  std::string node;
  std::string worker;
  std::string outcome;
  std::string reason;
  std::optional<std::int64_t> exit_code;
  std::optional<Time> start;
  std::optional<Time> end;
  std::string message;  // lines, the last words of its container; empty: history has none
};

struct StageText {
  std::string name;
  std::string phase;
  std::optional<Time> start;
  std::optional<Time> end;
  std::int64_t failures = 0;
  std::int64_t disruptions = 0;
  std::int64_t deferrals = 0;
  std::string result;
  std::string message;
  bool always = false;
  std::int64_t suspended = 0;  // seconds, since start
};

struct WaitingText {
  std::string reason;
  std::string message;
  std::string next_action;
  std::optional<Time> deadline;
  std::optional<Time> since;
};

struct JobText {
  std::string namespace_;
  std::string name;
  std::string uid;
  std::string phase;  // "": no operator has read the job yet
  std::optional<Time> created;
  std::optional<Time> started;
  std::optional<Time> completed;
  std::optional<WaitingText> waiting;
  std::vector<RunText> runs;
  std::vector<EndText> history;  // oldest first
  std::vector<StageText> stages;
  std::string stage;
  std::int64_t attempt = 0;
  std::int64_t failures = 0;
  std::int64_t disruptions = 0;
  std::int64_t wanted = 1;  // runs of the current stage that must succeed
  std::int64_t succeeded = 0;
  // As stored: not cleaned, and up to 600 KB long.
  std::string completed_indexes;
  std::string failed_indexes;
  std::string queue;
  std::string pool;  // of the current stage
  Json spec;         // of the current stage: that of the job, or of its entry in spec.stages

  bool has_ended() const {
    return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
  }
  bool many_runs() const { return wanted > 1 || int_at(spec, "completions", 1) > 1; }
  std::size_t open_runs() const;
};

JobText read_job(const Json& job);

// The condition of this type, or null.
const Json& condition_of(const Json& job, std::string_view type);
// That condition is there and "True".
bool holds(const Json& job, std::string_view type);

}  // namespace holdfast::plugin
