// The targets of notifications, as the administrator has set them. The chart writes the file from
// its value `notifications`. It is read once, at the start. The secrets are in files beside it,
// which are read for each message, so that they can be changed at any time.
//
//   {"source": "https://cluster-1.example.com",
//    "targets": [{"name": "chat", "url": "https://hooks.example.com/holdfast",
//                 "secretFile": "/etc/holdfast/notifications/chat/secret",
//                 "caFile": "...", "namespaces": ["encode"], "events": ["Failed"],
//                 "allowedCIDRs": ["10.0.0.0/8"]}]}
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "operator/notify/address_rules.h"
#include "reconciler/notify.h"

namespace holdfast::notify {

inline constexpr std::size_t kTargetLimit = 32;

struct Target {
  std::string name;
  std::string host;
  int port = 443;
  std::string path;                     // of the URL, with its query; at least "/"
  std::string secret_file;              // "whsec_" and base64
  std::string ca_file;                  // PEM; empty: the system's authorities
  std::vector<std::string> namespaces;  // that may use it; empty: all
  std::vector<reconciler::NotifyEvent> events;
  std::vector<Range> allowed;  // addresses beside those of the public internet

  bool allows(const std::string& namespace_) const;
};

struct Targets {
  std::string source;  // before the path of each job in `source` of its events; may be empty
  std::map<std::string, Target> by_name;

  // Null: no such target.
  const Target* find(const std::string& name) const;
  std::vector<std::string> names() const;
};

// kInvalid says which part is wrong and what to do.
Result<Targets> parse_targets(std::string_view text);

}  // namespace holdfast::notify
