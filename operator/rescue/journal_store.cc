#include "operator/rescue/journal_store.h"

#include <utility>

#include "core/json.h"

namespace holdfast::rescue {
namespace {

constexpr std::chrono::minutes kSaveEvery{1};
constexpr std::chrono::seconds kRetry{10};

}  // namespace

void JournalStore::tick() {
  if (busy_ || loop_.now() < again_) return;
  if (!read_once_ || stale_) return static_cast<void>(spawn(load()));
  // A journal without entries says, too, that somebody observes, and since when.
  const bool is_new = journal_.changes() != changes_ || version_ == 0;
  if (is_new && loop_.now() - written_ >= kSaveEvery) spawn(save());
}

Task<void> JournalStore::load() {
  busy_ = true;
  auto get =
      client_.get(kube::object_path("/api/v1", "configmaps", namespace_, reconciler::kJournalName));
  const Result<JsonDocument> found = co_await get;
  busy_ = false;
  if (!found && found.error().code != ErrorCode::kNotFound) co_return refused(found.error());
  kube::Object meta;
  const bool is_there = found && kube::decode_meta(*found, meta);
  // Nobody else has written it, so what is not written yet counts. While this replica observes it
  // alone does: then the change was somebody's edit, or our own write whose answer was lost. Who
  // deletes it begins anew.
  const bool goes_on = is_there && (read_once_ || meta.version == version_);
  uid_ = is_there ? meta.uid : "";
  version_ = is_there ? meta.version : 0;
  stale_ = false;
  const bool is_first = !std::exchange(read_once_, true);
  if (!goes_on) {
    const JsonView data = is_there ? at(*found, "data") : JsonView();
    journal_ = reconciler::decode_journal(string_at(data, reconciler::kJournalKey));
    changes_ = journal_.changes();
    since_ = string_at(data, reconciler::kSinceKey);
    if (since_.empty()) since_ = format_time(client_.server_clock().now(loop_.now()));
    written_ = is_there ? loop_.now() : SteadyTime{};
  }
  if (is_first) read_();
}

Task<void> JournalStore::save() {
  busy_ = true;
  written_ = loop_.now();
  const std::uint64_t changes = journal_.changes();
  Json meta = {{"name", reconciler::kJournalName}, {"namespace", namespace_}};
  if (version_ != 0) {
    meta["uid"] = uid_;
    meta["resourceVersion"] = std::to_string(version_);
  }
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", std::move(meta)},
                     {"data",
                      {{reconciler::kJournalKey, reconciler::encode_journal(journal_)},
                       {reconciler::kSinceKey, since_}}}};
  kube::CallOptions options;
  options.answer_with_metadata = true;
  auto call = version_ == 0
                  ? client_.post(kube::collection_path("/api/v1", "configmaps", namespace_),
                                 body.dump(), options)
                  : client_.put(kube::object_path("/api/v1", "configmaps", namespace_,
                                                  reconciler::kJournalName),
                                body.dump(), options);
  const Result<JsonDocument> answer = co_await call;
  busy_ = false;
  kube::Object written;
  if (answer && kube::decode_meta(*answer, written)) {
    uid_ = written.uid;
    version_ = written.version;
    changes_ = changes;
  } else {
    const Error error = answer ? make_error(ErrorCode::kInvalid, "no ConfigMap") : answer.error();
    stale_ = error.code == ErrorCode::kConflict || error.code == ErrorCode::kNotFound ||
             error.code == ErrorCode::kAlreadyExists;
    if (!stale_) refused(error);
  }
}

void JournalStore::refused(const Error& error) {
  again_ = loop_.now() + kRetry;
  if (error.code == ErrorCode::kCancelled) return;
  log_.warn("the observer's ConfigMap cannot be read or written; it is tried again",
            {{"error", error.message}});
}

}  // namespace holdfast::rescue
