#include "operator/jobs/gone_namespace.h"

#include "client/kube/percent_encode.h"

namespace holdfast::jobs {

Task<bool> is_of_gone_namespace(kube::Client& client, Error error, std::string namespace_) {
  if (namespace_.empty() || error.code != ErrorCode::kForbidden) co_return false;
  auto get = client.get("/api/v1/namespaces/" + kube::percent_encode(namespace_));
  const Result<JsonDocument> found = co_await get;
  co_return !found && found.error().code == ErrorCode::kNotFound;
}

}  // namespace holdfast::jobs
