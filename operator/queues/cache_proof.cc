#include "operator/queues/cache_proof.h"

namespace holdfast::queues {
namespace {

// Only the numbers in the status wait for it.
constexpr std::chrono::seconds kNoHurry{3};

}  // namespace

bool CacheProof::is_new(const std::string& ns, const QueueBook& book) const {
  return book.tenure.may_count(jobs_.shown(ns)) &&
         (!book.counts_pods() || book.tenure.may_count(pods_.shown(ns)));
}

Duration CacheProof::renew(const std::string& ns, const QueueBook& book) {
  const bool is_urgent = book.line.waiting() > 0;
  const Duration patience = is_urgent ? Duration(kOtherEvents) : Duration(kNoHurry);
  const Duration left =
      book.last_write ? *book.last_write + patience - loop_.now() : Duration::zero();
  const auto renew = [&](cache::CacheCheck& check) {
    if (book.tenure.may_count(check.shown(ns))) return;
    if (left <= Duration::zero()) {
      check.compare(ns);
    } else if (is_urgent) {
      check.begin(ns);
    }
  };
  renew(jobs_);
  if (book.counts_pods()) renew(pods_);
  return left > Duration::zero() ? left : Duration(kNextLook);
}

}  // namespace holdfast::queues
