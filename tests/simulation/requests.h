// What a request to the simulated API server is about, by its target and its body.
#pragma once

#include <string>

#include "core/json.h"
#include "tests/simulation/api_server.h"

namespace holdfast::simulation {

inline bool is_queue(const ApiRequest& request) {
  return request.target.find("/jobqueues/") != std::string::npos;
}

inline bool is_batch_job(const ApiRequest& request) {
  return request.target.find("/batch/v1/") != std::string::npos;
}

inline bool is_pool(const ApiRequest& request) {
  return request.target.find("/workerpools/") != std::string::npos;
}

inline bool is_worker_lease(const ApiRequest& request, const Json& meta) {
  return request.target.find("/leases/holdfast-work") != std::string::npos ||
         string_at(meta, "name").starts_with("holdfast-work");
}

inline bool is_of_pool(const Json& object) {
  for (const Json& owner : at(at(object, "metadata"), "ownerReferences")) {
    if (string_at(owner, "kind") == "WorkerPool") return true;
  }
  return false;
}

// In ".../namespaces/<namespace>/...".
inline std::string namespace_in(const std::string& target) {
  static const std::string kMark = "/namespaces/";
  const std::size_t begin = target.find(kMark) + kMark.size();
  return target.substr(begin, target.find('/', begin) - begin);
}

// Of a job, a queue, a pool or a batch/v1 Job.
inline bool is_status_write(const ApiRequest& request) {
  const bool ours = request.target.find("/durablejobs/") != std::string::npos ||
                    is_queue(request) || is_pool(request) || is_batch_job(request);
  return request.method == "PUT" && ours && request.target.ends_with("/status");
}

inline bool is_lease(const ApiRequest& request) {
  return request.target.find("/leases") != std::string::npos;
}

inline bool is_pod(const ApiRequest& request) {
  return request.target.find("/pods/") != std::string::npos;
}

}  // namespace holdfast::simulation
