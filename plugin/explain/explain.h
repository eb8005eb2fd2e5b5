// `explain`: one page about one job. It says what the job waits for, why, since when, what comes
// next and by when, and what you can do. Then come its runs, its stages, the timeline of its
// attempts, and a link to what the manual says of its reason.
//
//   ExplainFacts facts;
//   facts.job = ...;                       // the rest may be missing
//   for (const std::string& line : explain(facts, now, Page{})) terminal.out(line + "\n");
//
// Pure. Whatever is missing or malformed in the objects is left out. Texts of the cluster are
// cleaned of control characters, so that no pod's message can steer the terminal.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/time.h"

namespace holdfast::plugin {

// Objects as the API server returns them. Null or empty: not read, or missing.
struct ExplainFacts {
  Json job;
  Json queue;                    // the JobQueue of spec.queue
  std::vector<Json> queue_jobs;  // the jobs of the namespace, to compute the place in the queue
  Json pool;                     // the WorkerPool of the current stage
  std::vector<Json> pods;        // of the job: that of the last end, and all if it stops pods
  std::vector<Json> events;      // about the job, of either API group
  Json lease;                    // of the heartbeat of a job with one run
  Json node_lease;               // of the node of a job with one run
  // The operator's own, with the label holdfast.dev/lease. They say who should be acting.
  std::vector<Json> operator_leases;
  // Where all such Leases were listed and none is: "in this cluster"; empty: some are, or nobody
  // knows.
  std::string operator_absent;
  // Why nobody knows, in sentences; empty: they were read, or the job has ended.
  std::string operator_unseen;
};

struct Page {
  std::size_t width = 80;
  // The page is kept to so many lines, by leaving out older attempts, ended stages and long texts;
  // 0: no limit.
  std::size_t height = 23;
  bool unicode = true;
};

std::vector<std::string> explain(const ExplainFacts& facts, Time now, const Page& page);

}  // namespace holdfast::plugin
