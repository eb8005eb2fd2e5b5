#include "client/controller/writer.h"

#include <algorithm>
#include <utility>

#include "core/json.h"

namespace holdfast::controller {

std::optional<Error> Gate::may_write(const Claim& claim) const {
  if (holds(claim)) return std::nullopt;
  return make_error(ErrorCode::kCancelled, "this replica no longer holds the shard");
}

kube::CallOptions Gate::in_time(kube::CallOptions options) const {
  options.timeout = std::min(options.timeout, time_left());
  return options;
}

std::optional<Error> Gate::may_write(const Claim& claim, kube::CallOptions& options) const {
  const std::optional<Error> refused = may_write(claim);
  if (!refused) options = in_time(std::move(options));
  return refused;
}

Writer::Answer Writer::send(Call call, Gate::Claim claim, std::string path, std::string body,
                            kube::CallOptions options) {
  if (const auto refused = gate_.may_write(claim, options)) co_return *refused;
  auto request = (client_.*call)(std::move(path), std::move(body), options);
  co_return co_await request;
}

Writer::Answer Writer::post(Gate::Claim claim, std::string path, std::string body,
                            kube::CallOptions options) {
  return send(&kube::Client::post, claim, std::move(path), std::move(body), std::move(options));
}

Writer::Answer Writer::put(Gate::Claim claim, std::string path, std::string body,
                           kube::CallOptions options) {
  return send(&kube::Client::put, claim, std::move(path), std::move(body), std::move(options));
}

Writer::Answer Writer::patch(Gate::Claim claim, std::string path, std::string body,
                             kube::CallOptions options) {
  return send(&kube::Client::patch, claim, std::move(path), std::move(body), std::move(options));
}

Writer::Answer Writer::del(Gate::Claim claim, std::string path, std::string body,
                           kube::CallOptions options) {
  return send(&kube::Client::del, claim, std::move(path), std::move(body), std::move(options));
}

std::string preconditions(const std::string& uid, std::optional<std::uint64_t> version,
                          std::optional<int> grace) {
  Json conditions = {{"uid", uid}};
  if (version) conditions["resourceVersion"] = std::to_string(*version);
  Json body = {{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", "Background"},
               {"preconditions", std::move(conditions)}};
  if (grace) body["gracePeriodSeconds"] = *grace;
  return body.dump();
}

}  // namespace holdfast::controller
