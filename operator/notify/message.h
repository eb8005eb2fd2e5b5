// An event as a message: a CloudEvent in the structured JSON form, signed as Standard Webhooks
// says. Pure. The same event always has the same body and id, however often it is sent.
// https://github.com/cloudevents/spec, https://github.com/standard-webhooks/standard-webhooks
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "reconciler/notify.h"

namespace holdfast::notify {

struct JobName {
  std::string namespace_;
  std::string name;
  std::string uid;
};

// `<job UID>/<number>`: of two messages with the same id, a receiver ignores the second.
std::string message_id(const JobName& job, const reconciler::OutboxEntry& entry);

// `source`: see Targets.
std::string message_body(const std::string& source, const JobName& job,
                         const reconciler::OutboxEntry& entry);
inline constexpr const char* kContentType = "application/cloudevents+json; charset=utf-8";

// The key in a secret like "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw". White space around it is
// ignored. kInvalid: it is no such secret, or too short to be one.
Result<std::string> parse_secret(std::string_view text);

// The header webhook-signature.
std::string sign(const std::string& key, const std::string& id, std::int64_t timestamp,
                 const std::string& body);

}  // namespace holdfast::notify
