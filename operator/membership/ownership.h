// Which jobs are this replica's to work on, and until when it may act. Loop only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::controller {

class Ownership {
 public:
  virtual ~Ownership() = default;

  // The right to act on a job in one tenure of its shard: it ends with the tenure, also when the
  // shard comes back.
  struct Claim {
    int shard = 0;
    std::uint64_t tenure = 0;
  };

  // None: the job is another replica's, or about to be; begin nothing.
  virtual std::optional<Claim> claim(const std::string& job_uid) const = 0;

  // What has begun may go on: the shard is held, if only until what is in hand is done, and the
  // last acknowledged renewal was sent less than the renew deadline ago. Ask before every write.
  virtual bool holds(const Claim& claim) const = 0;

  // Until the renew deadline; not positive: it has passed. A request under a claim must not be
  // under way for longer.
  virtual Duration time_left() const = 0;
};

}  // namespace holdfast::controller
