// Which jobs belong to this replica, and until when it may act on them. Loop only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::controller {

class Ownership {
 public:
  virtual ~Ownership() = default;

  // The right to act on a job or a queue in one tenure of its shard. It ends with the tenure, even
  // if the shard comes back. `key` is reconciler::shard_key().
  struct Claim {
    int shard = 0;
    std::uint64_t tenure = 0;
  };

  // None: the job belongs to another replica, now or soon. Begin nothing.
  virtual std::optional<Claim> claim(const std::string& key) const = 0;

  // True if the claim is of the key's shard, whether or not it still holds.
  virtual bool covers(const Claim& claim, const std::string& key) const = 0;

  // What the pods of a job of this shard have as reconciler::kShardLabel.
  virtual std::string shard_label(int shard) const = 0;

  // True while work under the claim may go on. The shard is still held, and the last acknowledged
  // renewal was sent less than the renew deadline ago. Check this before every write.
  virtual bool holds(const Claim& claim) const = 0;

  // The time until the renew deadline; zero or less: it has passed. A request under a claim must
  // end within this time.
  virtual Duration time_left() const = 0;
};

}  // namespace holdfast::controller
