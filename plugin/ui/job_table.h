// All jobs of the page, kept by a watch: counts, views of a hundred rows, and the causes that need
// a person.
//
//   JobTable table;
//   table.put(before, after);                    // on the watch's thread
//   table.view({filter, JobSort::kWorst}, now);  // on any thread
//
// A view of 100,000 jobs takes some 20 ms. Counts are kept, not scanned.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/thread_annotations.h"
#include "plugin/ui/job_filter.h"

namespace holdfast::plugin {

enum class JobSort { kWorst, kName, kPhase, kReason, kQueue, kPlace, kAge, kSince };
std::optional<JobSort> parse_job_sort(std::string_view text);  // "worst", "name", ...

struct JobQuery {
  JobFilter filter;
  JobSort sort = JobSort::kWorst;
  bool reverse = false;
  std::size_t offset = 0;
  std::size_t limit = 100;
};

struct JobView {
  std::size_t matching = 0;
  std::vector<JobRowPtr> rows;
};

// Jobs that wait for a person, or have failed, for the same reason.
struct Cause {
  std::string reason;
  Rank rank = Rank::kStalled;
  std::size_t count = 0;
  std::optional<Time> oldest;    // of their `since`
  std::optional<Time> deadline;  // the first
  std::vector<JobRowPtr> some;   // that have waited longest, at most 20
};

class JobTable {
 public:
  // Some rows to show until the first list is there: put() and settle() replace them.
  void begin(const std::vector<JobRowPtr>& rows);
  // The first list has been put: what it did not have is gone.
  void settle();

  // Null: it was not there, or is not any more.
  void put(const JobRowPtr& before, const JobRowPtr& after);

  // Rises with each change.
  std::uint64_t changes() const;
  std::size_t size() const;
  std::map<std::string, std::size_t> phases() const;
  // Null: there is no such job.
  JobRowPtr find(const std::string& namespace_, const std::string& name) const;

  JobView view(const JobQuery& query, Time now) const;
  // In one pass: the jobs of each group, the worst first, at most 100 of each. `group` empty: the
  // job is in none.
  using Groups = std::map<std::string, std::vector<JobRowPtr>>;
  Groups grouped(const std::function<std::string(const JobRow&)>& group, Time now) const;
  // The worst first.
  std::vector<Cause> causes(Time now) const;

 private:
  std::vector<JobRowPtr> all() const;
  void drop(const std::string& key) HOLDFAST_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, JobRowPtr> rows_ HOLDFAST_GUARDED_BY(mutex_);  // by key
  std::map<std::string, std::size_t> phases_ HOLDFAST_GUARDED_BY(mutex_);
  std::uint64_t changes_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::set<std::string> early_ HOLDFAST_GUARDED_BY(mutex_);  // keys of begin() that no put() had
};

}  // namespace holdfast::plugin
