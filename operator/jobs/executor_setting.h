// What the writes of one decision have in common, and what a write asks for. Loop only.
#pragma once

#include <optional>

#include "core/log.h"
#include "core/result.h"
#include "operator/codecs/job_codec.h"
#include "operator/jobs/job_memory.h"
#include "operator/membership/ownership.h"

namespace holdfast::jobs {

struct WriteSetting {
  const codecs::CachedJob& job;
  const membership::Ownership::Claim& claim;
  JobMemory& memory;
  const Log& log;
};

struct WriteOutcome {
  // A refused write changes what should happen: decide again at once.
  bool decide_again = false;
  // A write failed, but the others went on without it: retry.
  std::optional<Error> later{};
};

}  // namespace holdfast::jobs
