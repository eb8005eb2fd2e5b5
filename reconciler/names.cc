#include "reconciler/names.h"

namespace holdfast::reconciler {

std::uint64_t hash64(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  return hash;
}

std::uint64_t mixed(std::uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

std::string pod_name(const std::string& job_name, const std::string& job_uid,
                     std::int64_t attempt) {
  // No vowels and no look-alikes, as Kubernetes' own generated names.
  static constexpr char kAlphabet[] = "bcdfghjklmnpqrstvwxz2456789";
  std::uint64_t hash = hash64(job_uid);
  std::string suffix;
  for (int i = 0; i < 5; ++i) {
    suffix += kAlphabet[hash % (sizeof(kAlphabet) - 1)];
    hash /= sizeof(kAlphabet) - 1;
  }
  return job_name + "-" + std::to_string(attempt) + "-" + suffix;
}

std::string heartbeat_lease_name(const std::string& job_uid, std::optional<std::int64_t> index) {
  return "holdfast-" + job_uid + (index ? "-" + std::to_string(*index) : "");
}

std::int64_t attempt_in_name(const std::string& job_name, const std::string& job_uid,
                             const std::string& name) {
  constexpr std::size_t kMaxDigits = 10;
  std::int64_t attempt = 0;
  const std::size_t begin = job_name.size() + 1;
  for (std::size_t i = begin; i < name.size() && i < begin + kMaxDigits; ++i) {
    if (name[i] < '0' || name[i] > '9') break;
    attempt = attempt * 10 + (name[i] - '0');
  }
  return attempt > 0 && name == pod_name(job_name, job_uid, attempt) ? attempt : 0;
}

}  // namespace holdfast::reconciler
