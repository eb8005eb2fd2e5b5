#include "agent/wire/lease_body.h"

#include <utility>

#include "core/utf8.h"

namespace holdfast::agent {
namespace {

// Part of the message of the fence in the API server (a ValidatingAdmissionPolicy).
constexpr std::string_view kFenceMark = "fenced:";
constexpr std::size_t kMaxWhyBytes = 512;

LeaseRefusal read_refusal(std::string_view name, int status, std::string_view body) {
  using Kind = LeaseRefusal::Kind;
  const auto refusal = [](Kind kind, std::string_view why) {
    return LeaseRefusal{kind, clean_text(why, kMaxWhyBytes)};
  };
  const Result<Json> parsed = parse_json(body);
  const Json& reason = parsed.ok() ? parsed.value() : at(Json(), "");
  const std::string message = string_at(reason, "message");
  if (status == 409) return refusal(Kind::kConflict, message);
  // A proxy, or a server that does not serve Leases (yet), also answers 404. That says nothing
  // about the Lease.
  if (status == 404 && string_at(at(reason, "details"), "name") == name) {
    return refusal(Kind::kGone, "the Lease was deleted");
  }
  const std::size_t mark = message.find(kFenceMark);
  if (status == 403 && mark != std::string::npos) {
    return refusal(Kind::kFenced, "the API server refused the renewal:" +
                                      message.substr(mark + kFenceMark.size()));
  }
  std::string why = "the API server answered " + std::to_string(status);
  if (!message.empty()) why += ": " + message;
  return refusal(Kind::kNone, why);
}

}  // namespace

std::string lease_path(const std::string& lease_namespace, const std::string& name) {
  return "/apis/coordination.k8s.io/v1/namespaces/" + lease_namespace + "/leases/" + name;
}

// One empty entry in managedFields makes the API server drop its record of field owners, until
// somebody applies the Lease. That makes each renewal cheaper.
Json as_lease(Json object, std::string_view name) {
  const Json& meta = at(object, "metadata");
  if (!object.is_object() || !meta.is_object()) return Json();
  if (!at(object, "spec").is_null() && !at(object, "spec").is_object()) return Json();
  if (string_at(meta, "uid").empty() || string_at(meta, "name") != name) return Json();
  object["metadata"]["managedFields"] = Json::array({Json::object()});
  return object;
}

std::variant<Json, LeaseRefusal> read_lease(std::string_view name, int status,
                                            std::string_view body) {
  if (status != 200) return read_refusal(name, status, body);
  Result<Json> parsed = parse_json(body);
  Json lease = parsed ? as_lease(std::move(*parsed), name) : Json();
  if (!lease.is_null()) return lease;
  return no_lease();
}

LeaseRefusal no_lease() {
  return {.why = "the API server answered with something else than a Lease"};
}

std::string annotation(const Json& lease, const char* key) {
  return string_at(at(at(lease, "metadata"), "annotations"), key);
}

}  // namespace holdfast::agent
