#include "operator/lane/fail_batch_jobs.h"

#include "client/kube/percent_encode.h"
#include "lane/mirror.h"
#include "operator/jobs/gone_namespace.h"
#include "operator/lane/batch_job_codec.h"
#include "reconciler/refusals.h"

namespace holdfast::lane_controller {
namespace {

constexpr int kPageSize = 500;
// If somebody creates Jobs all the time, this must end.
constexpr int kMostPasses = 20;

Task<Result<>> fail(kube::Client& client, std::string namespace_, std::string name) {
  const std::string path =
      kube::object_path(lane::kBatchGroupPath, lane::kBatchPlural, namespace_, name);
  auto get = client.get(path);
  const Result<JsonDocument> live = co_await get;
  if (!live) co_return live.error();
  const std::optional<lane::BatchJob> job = decode_whole_batch_job(*live);
  if (!job || lane::is_finished(job->status)) co_return Unit{};
  const Time now = client.server_clock().now(client.loop().now());
  Json status = job->status;
  lane::finish(status,
               {false, "HoldfastUninstalled",
                "Holdfast is being uninstalled, and nothing else runs this Job: create it again "
                "without spec.managedBy"},
               now, now);
  auto put = client.put(path + "/status", batch_status_body(*job, job->metadata, status));
  const Result<JsonDocument> answer = co_await put;
  if (!answer) co_return answer.error();
  co_return Unit{};
}

struct Pass {
  int failed = 0;
  int left = 0;                  // they have changed meanwhile, or the list broke off
  std::optional<Error> refused;  // the first one whose status could not be written
};

Task<Result<Pass>> fail_all_in(kube::Client& client, std::string namespace_) {
  Pass pass;
  std::string token;
  do {
    std::string query = "limit=" + std::to_string(kPageSize);
    if (!token.empty()) query += "&continue=" + kube::percent_encode(token);
    auto list = client.list(batch_job_kind(), namespace_, query);
    const Result<kube::ListPage> page = co_await list;
    if (!page && page.error().code == ErrorCode::kGone) {
      ++pass.left;
      break;
    }
    if (!page) co_return page.error();
    for (const kube::ObjectPtr& object : page->items) {
      const BatchJobPtr job = kube::as<CachedBatchJob>(object);
      if (!job->ours || job->finished) continue;
      auto task = fail(client, object->namespace_, object->name);
      const Result<> done = co_await task;
      if (done) {
        ++pass.failed;
      } else if (done.error().code == ErrorCode::kConflict) {
        ++pass.left;
      } else if (done.error().code != ErrorCode::kNotFound) {
        const Error error =
            make_error(done.error().code, "Job " + object->key() + ": " + done.error().message);
        // A policy that forbids one must not keep the others. What may pass ends this pass.
        if (!reconciler::person_must_help(error.code)) co_return error;
        if (!pass.refused) pass.refused = error;
      }
    }
    token = page->continue_token;
  } while (!token.empty());
  co_return pass;
}

}  // namespace

Task<Result<int>> fail_batch_jobs(kube::Client& client, std::vector<std::string> namespaces,
                                  Log log) {
  if (namespaces.empty()) namespaces.emplace_back();
  int failed = 0;
  std::optional<Error> refused;
  for (const std::string& namespace_ : namespaces) {
    for (int passes = 1;; ++passes) {
      auto task = fail_all_in(client, namespace_);
      const Result<Pass> pass = co_await task;
      if (!pass) {
        auto gone = jobs::is_of_gone_namespace(client, pass.error(), namespace_);
        if (!co_await gone && !refused) refused = pass.error();
        break;
      }
      failed += pass->failed;
      if (pass->refused && !refused) refused = pass->refused;
      if (pass->left == 0) break;
      if (passes == kMostPasses) {
        refused =
            make_error(ErrorCode::kConflict,
                       "Jobs change as fast as they are failed: is an operator still running?");
        break;
      }
    }
  }
  if (refused) co_return *refused;
  log.info("no batch/v1 Job waits for the operator any more", {{"failed", std::to_string(failed)}});
  co_return failed;
}

}  // namespace holdfast::lane_controller
