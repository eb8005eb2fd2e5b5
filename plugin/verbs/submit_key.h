// What makes a submit idempotent: a name and a hash that only depend on what was submitted. Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"

namespace holdfast::plugin {

// Annotations of a job that was submitted with a key.
inline constexpr const char* kKeyAnnotation = "holdfast.dev/submit-key";
inline constexpr const char* kHashAnnotation = "holdfast.dev/submit-hash";

inline constexpr std::size_t kMaxKeyBytes = 1024;

// A DNS label of at most 51 characters: the part of the key that a name may contain, and a hash of
// all of it. So two keys have two names, and an Indexed job has room for the longest index in its
// pods' hostnames.
std::string name_of_key(std::string_view key);

// A name of the same length that no key has: for a dry run beside the job of that name.
std::string trial_name(const std::string& name, const std::string& hash);

// "sha256:<64 hexadecimal digits>" of the spec: members in alphabetical order, those that are null
// left out, and numbers by their value. The caller takes spelled-out defaults away.
std::string spec_hash(const Json& spec);

}  // namespace holdfast::plugin
