#include "operator/events/series_writer.h"

#include <algorithm>

#include "core/json.h"

namespace holdfast::events {
namespace {

constexpr const char* kGroupPath = "/apis/events.k8s.io/v1";
constexpr Duration kWriteTimeout = std::chrono::seconds(10);

}  // namespace

Task<Result<>> SeriesWriter::write(SeriesPtr one) {
  const std::string& namespace_ = one->regarding.namespace_;
  const std::string path = kube::object_path(kGroupPath, "events", namespace_, one->name);
  if (one->exists) {
    auto update = patch(one, path);
    const Result<> updated = co_await update;
    if (updated.ok() || updated.error().code != ErrorCode::kNotFound) co_return updated;
    // Events live for an hour: begin a new one.
    one->exists = false;
    one->count = std::max<std::int64_t>(1, one->count - one->written);
    one->written = 0;
    one->first = one->last;
  }
  const std::int64_t sending = one->count;
  auto call = client_.post(kube::collection_path(kGroupPath, "events", namespace_),
                           event_json(*one, instance_), {kWriteTimeout});
  const Result<JsonDocument> answer = co_await call;
  if (answer.ok()) {
    one->exists = true;
    one->written = sending;
    co_return Unit{};
  }
  if (answer.error().code != ErrorCode::kAlreadyExists) co_return answer.error();
  auto joined = join(one, path);
  co_return co_await joined;
}

// Another replica, or this one before a restart, has begun the series.
Task<Result<>> SeriesWriter::join(SeriesPtr one, std::string path) {
  auto read = client_.get(path, {kWriteTimeout});
  const Result<JsonDocument> found = co_await read;
  if (!found.ok()) co_return found.error();
  const std::int64_t before = std::max<std::int64_t>(1, int_at(at(*found, "series"), "count", 1));
  one->count += before;
  one->written = before;  // the server's part
  one->exists = true;
  auto update = patch(one, path);
  co_return co_await update;
}

Task<Result<>> SeriesWriter::patch(SeriesPtr one, std::string path) {
  const std::int64_t sending = one->count;
  auto call = client_.patch(path, Json{{"series", series_json(*one)}}.dump(),
                            {kWriteTimeout, "application/merge-patch+json"});
  const Result<JsonDocument> answer = co_await call;
  if (!answer.ok()) co_return answer.error();
  one->exists = true;
  one->written = sending;
  co_return Unit{};
}

}  // namespace holdfast::events
