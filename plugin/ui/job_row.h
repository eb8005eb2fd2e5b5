// What the page keeps of each job: some 500 bytes, so that 100,000 jobs fit into a small process.
//
// Texts of the cluster are cleaned of control characters and cut to kRowText.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/kube/object.h"
#include "core/json_view.h"
#include "core/time.h"
#include "plugin/base/rank.h"

namespace holdfast::plugin {

// Of one text, in bytes.
inline constexpr std::size_t kRowText = 256;

// A text that many jobs have in common, kept once for as long as the process lives: phases, reasons,
// queues, nodes.
class SharedText {
 public:
  SharedText() : SharedText(std::string_view()) {}
  explicit SharedText(std::string_view text);
  const std::string& get() const { return *text_; }
  operator const std::string&() const { return *text_; }  // NOLINT: it is read as one
  bool empty() const { return text_->empty(); }
  bool operator==(std::string_view other) const { return *text_ == other; }

 private:
  const std::string* text_;
};

struct JobRow : kube::Object {
  SharedText phase;       // "": no operator has read it yet
  SharedText waiting;     // the reason why it waits, or has ended
  SharedText stalled_by;  // the reason of the condition Stalled, if it is true
  SharedText stage;
  SharedText queue;
  SharedText pool;
  std::string place;    // the node or worker of its first open run; names of workers come and go
  std::string message;  // why; a job that has succeeded needs none
  std::string labels;   // "a=b,c=d," and so on, at most 1 KiB
  bool stalled = false;
  std::string completions;  // "3/10"
  std::int64_t attempt = 0;
  std::int64_t failures = 0;
  std::int64_t priority = 0;
  std::optional<Time> created;
  std::optional<Time> since;  // it waits so, or has ended
  std::optional<Time> deadline;

  bool has_ended() const {
    return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
  }
};
using JobRowPtr = std::shared_ptr<const JobRow>;

Rank rank_of(const JobRow& row, Time now);

// Null: the object has no name, UID or version.
kube::ObjectPtr decode_job_row(const JsonView& job);

}  // namespace holdfast::plugin
