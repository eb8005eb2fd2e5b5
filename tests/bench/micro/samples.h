// A job of one container and its pod, as an API server of 1.34 sends them, with managedFields.
#pragma once

#include <cstdint>
#include <string>

#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"

namespace holdfast::bench {

// The object, without a line break. The number makes names, UIDs and versions differ.
std::string job_text(std::int64_t number);
std::string running_job_text(std::int64_t number);
std::string running_pod_text(std::int64_t number);

std::string watch_line(const std::string& object);
// The answer to a list of so many pods.
std::string pod_list(std::int64_t count);

kube::Kind pods();
kube::Kind jobs();

}  // namespace holdfast::bench
