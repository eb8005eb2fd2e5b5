// Writes one series of Events to the API server: begins it, or adds to it if it exists. It counts
// in the series what the server has. Loop only.
#pragma once

#include <string>
#include <utility>

#include "client/kube/client.h"
#include "core/result.h"
#include "core/task.h"
#include "operator/events/event_series.h"

namespace holdfast::events {

class SeriesWriter {
 public:
  // `instance`: reportingInstance, kMaxWord bytes at most.
  SeriesWriter(kube::Client& client, std::string instance)
      : client_(client), instance_(std::move(instance)) {}

  Task<Result<>> write(SeriesPtr one);

 private:
  Task<Result<>> join(SeriesPtr one, std::string path);
  Task<Result<>> patch(SeriesPtr one, std::string path);

  kube::Client& client_;
  const std::string instance_;
};

}  // namespace holdfast::events
