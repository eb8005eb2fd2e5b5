#include "operator/membership/lease_requests.h"

#include "client/kube/lease_resource.h"
#include "core/json.h"
#include "core/pause.h"

namespace holdfast::membership {

LeaseRequests::LeaseRequests(kube::Client& client, MembershipConfig config, Log log)
    : client_(client), config_(std::move(config)), log_(std::move(log)) {}

std::string LeaseRequests::path(const std::string& name) const {
  return kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, config_.namespace_, name);
}

LeaseWrite LeaseRequests::write(const std::string& holder) const {
  LeaseWrite write;
  write.namespace_ = config_.namespace_;
  write.holder = holder;
  write.shards = config_.shards;
  write.duration = config_.timings.lease_duration;
  write.now = client_.server_clock().now(loop().now());
  return write;
}

LeaseWrite LeaseRequests::write(const std::string& holder, const kube::Object& before) const {
  LeaseWrite write = this->write(holder);
  write.uid = before.uid;
  write.version = before.version;
  return write;
}

Task<LeaseRequests::Answer> LeaseRequests::get(const std::string& name,
                                               const kube::CallOptions& options) {
  return client_.get(path(name), options);
}

Task<LeaseRequests::Answer> LeaseRequests::create(std::string body,
                                                  const kube::CallOptions& options) {
  return client_.post(
      kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, config_.namespace_),
      std::move(body), options);
}

Task<LeaseRequests::Answer> LeaseRequests::replace(const std::string& name, std::string body,
                                                   const kube::CallOptions& options) {
  return client_.put(path(name), std::move(body), options);
}

Task<LeaseRequests::Answer> LeaseRequests::remove(const std::string& name, const std::string& uid,
                                                  std::uint64_t version,
                                                  const kube::CallOptions& options) {
  Json preconditions = {{"uid", uid}};
  if (version != 0) preconditions["resourceVersion"] = std::to_string(version);
  const Json body = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", std::move(preconditions)}};
  return client_.del(path(name), body.dump(), options);
}

void LeaseRequests::heed(const Answer& answer) {
  if (!answer) holdfast::heed(answer.error(), loop().now(), not_before_);
}

bool LeaseRequests::must_wait() const { return loop().now() < not_before_; }

void LeaseRequests::report(const char* what, const std::string& member, const Error& error) {
  if (error.code == ErrorCode::kCancelled || error.message == last_trouble_) return;
  last_trouble_ = error.message;
  Log::Fields fields = {{"member", member}, {"error", error.message}};
  if (error.code == ErrorCode::kNotFound) {
    fields.emplace_back("what_to_do", "create the namespace " + config_.namespace_ +
                                          ", or name another by --namespace");
  }
  log_.warn(what, fields);
}

}  // namespace holdfast::membership
