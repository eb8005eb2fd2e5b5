// A DurableJob as decisions read it: its spec, its status, and what its metadata says. Plain
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/api.h"

namespace holdfast::reconciler {

struct Job {
  std::string namespace_;
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t generation = 0;
  Time created{};
  bool deleting = false;
  std::optional<Time> deletion;  // deletionTimestamp
  bool holds_outbox = false;     // it has kOutboxFinalizer
  bool orphans = false;          // its deletion leaves its pods to themselves
  // Of a job that runs a batch/v1 Job (lane/). Its shard, fixed when it was made: "<label>/<uid>",
  // where the label is shard_label(). The Job's UID decides if there is no label that means anything.
  std::string fixed_shard;
  std::string hostname;   // of the pods of an Indexed job, before "-<index>"; empty: the job's name
  bool has_pool = false;  // any of its stages
  // Rises each time spec.message may have changed: the commands of its attempts on workers read it
  // again.
  std::int64_t message = 0;
  Spec spec;                  // of the current stage
  std::vector<Stage> stages;  // all of them, the first one included; empty: there is one
  bool cancel = false;        // spec.cancel of the whole job
  std::optional<QueueRef> queue;
  std::vector<std::string> notify;  // names of targets, kNotifyLimit at most
  // The parts of spec that this version of the operator does not know, for humans: a newer version
  // made the job. Such a job gets no new attempt. Empty: it knows all.
  std::string unknown;
  Status status;
  std::size_t stored_bytes = 0;  // as JSON; 0: a job with one run, or an ended one
};

}  // namespace holdfast::reconciler
