#include "operator/notify/message.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cctype>

#include "client/kube/base64.h"
#include "core/json.h"
#include "core/json_time.h"
#include "reconciler/names.h"

namespace holdfast::notify {
namespace {

constexpr std::string_view kSecretPrefix = "whsec_";
// Standard Webhooks: 24 to 64 bytes.
constexpr std::size_t kShortestKey = 24;
constexpr std::size_t kLongestKey = 64;

// "StageEnded" is dev.holdfast.job.stageended.
std::string type_of(reconciler::NotifyEvent event) {
  std::string type = std::string("dev.holdfast.job.") + to_string(event);
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type;
}

}  // namespace

std::string message_id(const JobName& job, const reconciler::OutboxEntry& entry) {
  return job.uid + "/" + std::to_string(entry.number);
}

std::string message_body(const std::string& source, const JobName& job,
                         const reconciler::OutboxEntry& entry) {
  Json data = {{"namespace", job.namespace_},
               {"name", job.name},
               {"uid", job.uid},
               {"number", entry.number},
               {"event", to_string(entry.event)},
               {"reason", entry.reason},
               {"message", entry.message}};
  if (!entry.stage.empty()) data["stage"] = entry.stage;
  const std::string path = std::string(reconciler::kJobGroupPath) + "/namespaces/" +
                           job.namespace_ + "/" + reconciler::kJobPlural + "/" + job.name;
  const Json body = {{"specversion", "1.0"},
                     {"id", message_id(job, entry)},
                     {"source", source + path},
                     {"type", type_of(entry.event)},
                     {"subject", job.namespace_ + "/" + job.name},
                     {"time", format_time(entry.time)},
                     {"datacontenttype", "application/json"},
                     {"data", std::move(data)}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> parse_secret(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  const auto advice = [](const char* why) {
    return make_error(ErrorCode::kInvalid,
                      std::string("the secret ") + why +
                          ": make one with: echo whsec_$(openssl rand -base64 32)");
  };
  if (text.substr(0, kSecretPrefix.size()) != kSecretPrefix) {
    return advice("does not begin with whsec_");
  }
  const auto key = kube::base64_decode(text.substr(kSecretPrefix.size()));
  if (!key) return advice("is not base64 after whsec_");
  if (key->size() < kShortestKey || key->size() > kLongestKey) {
    return advice("does not have 24 to 64 bytes");
  }
  return *key;
}

std::string sign(const std::string& key, const std::string& id, std::int64_t timestamp,
                 const std::string& body) {
  const std::string signed_text = id + "." + std::to_string(timestamp) + "." + body;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(signed_text.data()), signed_text.size(),
       digest.data(), &size);
  return "v1," +
         kube::base64_encode(std::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

}  // namespace holdfast::notify
