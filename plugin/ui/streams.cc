#include "plugin/ui/streams.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "core/steady_now.h"
#include "core/utf8.h"
#include "plugin/base/installation.h"
#include "plugin/explain/facts_reader.h"
#include "plugin/explain/model.h"
#include "plugin/ui/actions.h"
#include "plugin/ui/screens.h"
#include "plugin/verbs/verb.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

// What is not watched is read again.
constexpr seconds kReadAgain{5};
// A job may become late without a change.
constexpr seconds kLookAgain{5};
constexpr std::size_t kTroubleText = 500;
// The page knows from that that its data are current.
constexpr seconds kSayAgain{10};
constexpr seconds kLookAround{20};

// What is gone or forbidden shows nothing. Of all else the last screen stays.
bool ends_screen(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kForbidden;
}

// Of the table alone: all jobs, or those that need a person.
class TableStream : public ScreenStream {
 public:
  using Screen = std::function<Json(const JobTable& table, Time now)>;
  TableStream(const PageSources& sources, Screen screen)
      : ScreenStream(sources), screen_(std::move(screen)) {}

 protected:
  bool is_of_memory() const override { return true; }
  std::optional<Json> read(Time now) override {
    const std::uint64_t changes = sources_.table.changes();
    const SteadyTime at = steady_now();
    if (looked_ && changes == changes_ && at - *looked_ < kLookAgain) return std::nullopt;
    changes_ = changes;
    looked_ = at;
    return screen_(sources_.table, now);
  }

 private:
  const Screen screen_;
  std::uint64_t changes_ = 0;
  std::optional<SteadyTime> looked_;
};

// The operator's, and whether they are all that there are.
struct OperatorLeases {
  Result<std::vector<Json>> leases;
  bool is_all = true;
};

// Those of the operator: in its namespace, else in all, else where it usually is.
OperatorLeases operator_leases(Api& api, const std::string& namespace_) {
  const Selector selector = {.labels = "holdfast.dev/lease", .fields = ""};
  Result<std::vector<Json>> leases = api.list(kLeases, namespace_, selector);
  const bool is_forbidden = !leases.ok() && leases.error().code == ErrorCode::kForbidden;
  if (is_forbidden && namespace_.empty()) {
    return {api.list(kLeases, kUsualNamespace, selector), false};
  }
  return {std::move(leases)};
}

// What needs a person. Who may not read Leases or pools sees the jobs alone.
class NeedsStream : public TableStream {
 public:
  explicit NeedsStream(const PageSources& sources)
      : TableStream(sources, [this](const JobTable& table, Time now) {
          return needs_screen(table, around(), now);
        }) {}

 private:
  // The jobs are in memory, and are shown before anything is asked for.
  const Surroundings& around() {
    const SteadyTime at = steady_now();
    const bool is_first = !std::exchange(has_shown_, true);
    if (is_first || is_silent_ || (looked_ && at - *looked_ < kLookAround)) return around_;
    looked_ = at;
    const Time now = sources_.api.now();
    auto [leases, is_all] = operator_leases(sources_.api, sources_.operator_namespace);
    if (leases.ok()) {
      // A replica that stops takes its Lease with it.
      around_.leases.reset();
      if (is_all || !leases->empty()) around_.leases = std::move(*leases);
      around_.read_at = now;
    } else if (ends_screen(leases.error())) {
      around_.leases.reset();
    }
    const auto pools = sources_.api.list(kPools, sources_.namespace_, {});
    if (pools.ok()) {
      around_.pools = *pools;
    } else if (ends_screen(pools.error())) {
      around_.pools.clear();
    }
    return around_;
  }

  Surroundings around_;
  bool has_shown_ = false;
  std::optional<SteadyTime> looked_;
};

// One job, as explain reads it.
class JobStream : public ScreenStream {
 public:
  JobStream(const PageSources& sources, std::string in_namespace, std::string name)
      : ScreenStream(sources), namespace_(std::move(in_namespace)), name_(std::move(name)) {}

 protected:
  std::optional<Json> read(Time) override {
    const JobRowPtr row = sources_.table.find(namespace_, name_);
    const std::uint64_t version = row ? row->version : 0;
    const SteadyTime at = steady_now();
    if (looked_ && version == version_ && at - *looked_ < kReadAgain) return std::nullopt;
    looked_ = at;
    version_ = version;
    return whole();
  }

 private:
  std::optional<Json> whole() {
    Result<> known = Unit{};
    if (reader_) {
      known = reader_->read();
    } else {
      Result<Json> job = sources_.api.get(kJobs, namespace_, name_);
      if (job.ok()) {
        // The queue says the first hundred of its line: all jobs of a namespace may be a gigabyte.
        reader_ = std::make_unique<FactsReader>(
            sources_.api, std::move(*job), sources_.operator_namespace, FactsReader::Line::kHead);
      } else {
        known = job.error();
      }
    }
    problem_.clear();
    if (!known.ok()) {
      const std::string why =
          clean_text(advice(known.error(), {"get", kJobs, namespace_, name_}), kTroubleText);
      if (!reader_ || ends_screen(known.error())) return Json{{"error", why}};
      problem_ = why;
      return std::nullopt;
    }
    const Time now = sources_.api.now();
    Model model = model_of(reader_->facts(), now);
    for (std::string& command : model.advice.commands) {
      command = in_cluster(command, sources_.where);
    }
    return job_screen(model, reader_->facts(), now);
  }

  const std::string namespace_;
  const std::string name_;
  std::unique_ptr<FactsReader> reader_;
  std::uint64_t version_ = 0;
  std::optional<SteadyTime> looked_;
};

// A list of few objects, beside the table.
class PlacesStream : public ScreenStream {
 public:
  using Screen = std::function<Json(const std::vector<Json>&, const JobTable&, Time)>;
  using List = std::function<Result<std::vector<Json>>(Api& api)>;
  PlacesStream(const PageSources& sources, const Resource& resource, List list, Screen screen,
               std::string in_namespace)
      : ScreenStream(sources),
        resource_(resource),
        namespace_(std::move(in_namespace)),
        list_(std::move(list)),
        screen_(std::move(screen)) {}

 protected:
  std::optional<Json> read(Time now) override {
    const SteadyTime at = steady_now();
    const bool is_due = !looked_ || at - *looked_ >= kReadAgain;
    const std::uint64_t changes = sources_.table.changes();
    if (!is_due && changes == changes_) return std::nullopt;
    changes_ = changes;
    if (is_due) {
      looked_ = at;
      Result<std::vector<Json>> list = list_(sources_.api);
      problem_.clear();
      if (!list.ok()) {
        const std::string why =
            clean_text(advice(list.error(), {"list", resource_, namespace_, ""}), kTroubleText);
        if (!has_objects_ || ends_screen(list.error())) return Json{{"error", why}};
        problem_ = why;
        return std::nullopt;
      }
      has_objects_ = true;
      objects_ = std::move(*list);
    }
    return screen_(objects_, sources_.table, now);
  }

 private:
  const Resource resource_;
  const std::string namespace_;
  const List list_;
  const Screen screen_;
  std::vector<Json> objects_;
  bool has_objects_ = false;
  std::uint64_t changes_ = 0;
  std::optional<SteadyTime> looked_;
};

Result<JobQuery> job_query(const WebRequest& request) {
  JobQuery query;
  Result<JobFilter> filter = parse_job_filter(query_of(request, "filter"));
  if (!filter.ok()) return filter.error();
  query.filter = std::move(*filter);
  const std::string sort = query_of(request, "sort");
  const auto known = parse_job_sort(sort.empty() ? "worst" : sort);
  if (!known) return make_error(ErrorCode::kInvalid, "there is no such column to sort by");
  query.sort = *known;
  query.reverse = query_of(request, "reverse") == "true";
  const std::string offset = query_of(request, "offset");
  std::from_chars(offset.data(), offset.data() + offset.size(), query.offset);
  return query;
}

}  // namespace

std::string ScreenStream::next() {
  std::string silence;
  // The first event waits for nobody.
  if (sources_.pulse) silence = sent_ ? sources_.pulse->trouble() : sources_.pulse->known();
  is_silent_ = !silence.empty();
  // A read of the server would only wait for an answer that does not come.
  std::optional<Json> screen;
  if (!is_silent_ || is_of_memory()) screen = read(sources_.api.now());
  // After the read, which may have taken long.
  const Time now = sources_.api.now();
  std::string trouble = silence;
  if (trouble.empty() && sources_.watch) {
    trouble = clean_text(sources_.watch->trouble(), kTroubleText);
  }
  if (trouble.empty()) trouble = problem_;
  const bool synced = !sources_.watch || sources_.watch->synced();
  std::string text = screen ? screen->dump() : last_;
  const bool is_same = text == last_ && trouble == trouble_ && synced == synced_;
  const SteadyTime at = steady_now();
  if (is_same && sent_ && at - *sent_ < kSayAgain) return "";
  std::string event =
      "{\"now\":\"" + format_time(now) + "\",\"scope\":" + Json(sources_.scope).dump() +
      ",\"synced\":" + (synced ? "true" : "false") + ",\"trouble\":" + Json(trouble).dump();
  if (is_silent_) {
    event += ",\"asOf\":\"" + format_time(sources_.pulse->heard()) + "\"";
  }
  if (!is_same && !text.empty()) event += ",\"screen\":" + text;
  last_ = std::move(text);
  trouble_ = std::move(trouble);
  synced_ = synced;
  sent_ = at;
  return event + "}";
}

Result<std::shared_ptr<ScreenStream>> open_stream(const PageSources& sources,
                                                  const WebRequest& request) {
  using Opened = std::shared_ptr<ScreenStream>;
  const std::string screen = query_of(request, "screen");
  if (screen == "jobs") {
    Result<JobQuery> query = job_query(request);
    if (!query.ok()) return query.error();
    return Opened(std::make_shared<TableStream>(
        sources, [query = std::move(*query)](const JobTable& table, Time now) {
          return jobs_screen(table, query, now);
        }));
  }
  if (screen == "needs") return Opened(std::make_shared<NeedsStream>(sources));
  if (screen == "job") {
    const std::string namespace_ = query_of(request, "ns");
    const std::string name = query_of(request, "name");
    if (!is_object_name(namespace_) || !is_object_name(name)) {
      return make_error(ErrorCode::kInvalid, "a job has a namespace and a name");
    }
    return Opened(std::make_shared<JobStream>(sources, namespace_, name));
  }
  const auto list_of = [namespace_ = sources.namespace_](const Resource& resource) {
    return [resource, namespace_](Api& api) { return api.list(resource, namespace_, {}); };
  };
  if (screen == "queues") {
    const auto screen_of = [where = sources.where](const std::vector<Json>& queues,
                                                   const JobTable& table, Time now) {
      return queues_screen(queues, table, now, where);
    };
    return Opened(std::make_shared<PlacesStream>(sources, kQueues, list_of(kQueues), screen_of,
                                                 sources.namespace_));
  }
  if (screen == "pools") {
    return Opened(std::make_shared<PlacesStream>(sources, kPools, list_of(kPools), pools_screen,
                                                 sources.namespace_));
  }
  if (screen == "operator") {
    return Opened(std::make_shared<PlacesStream>(
        sources, kLeases,
        [where = sources.operator_namespace](Api& api) {
          return operator_leases(api, where).leases;
        },
        operator_screen,
        sources.operator_namespace.empty() ? kUsualNamespace : sources.operator_namespace));
  }
  return make_error(ErrorCode::kInvalid, "there is no such screen");
}

}  // namespace holdfast::plugin
