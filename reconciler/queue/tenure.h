// The proof that this replica may count the permits of a queue: rule S19 rests on it.
//
// An earlier owner may have admitted jobs that this replica's caches do not show yet. So a new
// owner first claims the queue: it writes its own name into the queue's status, by
// compare-and-swap. From then on no write of an earlier owner succeeds. Each admission of an
// earlier owner is in that status, or its job has moved before. Then the new owner waits until its
// caches have everything that the API server had when the claim was acknowledged. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace holdfast::reconciler {

class QueueTenure {
 public:
  // This tenure's first write has put our name into the status of the queue with this UID. The
  // `moment` is of this process, after the answer to that write.
  void claimed(std::string holder, std::string queue_uid, std::uint64_t moment) {
    holder_ = std::move(holder);
    queue_uid_ = std::move(queue_uid);
    moment_ = moment;
  }
  void lost() { *this = QueueTenure(); }

  // The claim is of this tenure and of this queue, and not of an earlier one of its name.
  bool holds(const std::string& holder, const std::string& queue_uid) const {
    return moment_ > 0 && holder == holder_ && queue_uid == queue_uid_;
  }
  // `shown`: all caches from which permits are counted have everything of this moment. No version
  // of a job or a pod says that, for each resource may have an etcd of its own.
  bool may_count(std::uint64_t shown) const { return moment_ > 0 && shown >= moment_; }

 private:
  std::string holder_;
  std::string queue_uid_;
  std::uint64_t moment_ = 0;
};

}  // namespace holdfast::reconciler
