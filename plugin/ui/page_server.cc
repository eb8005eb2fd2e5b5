#include "plugin/ui/page_server.h"

#include <algorithm>
#include <utility>

#include "core/steady_now.h"
#include "core/utf8.h"
#include "plugin/terminal/print.h"
#include "plugin/ui/actions.h"

namespace holdfast::plugin {
namespace {

constexpr const char* kJson = "application/json";
// The end of a log, in lines, and in bytes.
constexpr const char* kTail = "500";
constexpr std::size_t kLogBytes = 256 * 1024;
// What is read of a log, whose lines may be as long as a tenant likes.
constexpr const char* kReadBytes = "4194304";

// Scripts, styles and calls of the page itself, and nothing else: names and messages that are
// markup can do nothing even if a screen were to show them as such.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

WebReply with_headers(WebReply reply) {
  reply.headers.insert(reply.headers.end(), {{"Cache-Control", "no-store"},
                                             {"X-Content-Type-Options", "nosniff"},
                                             {"Referrer-Policy", "no-referrer"},
                                             {"Cross-Origin-Opener-Policy", "same-origin"},
                                             {"Cross-Origin-Resource-Policy", "same-origin"},
                                             {"Content-Security-Policy", kPolicy}});
  return reply;
}

WebReply as_json(const Json& json) { return {200, kJson, json.dump()}; }

WebReply wrong(int status, const std::string& why) {
  return {status, kJson, Json{{"error", why}}.dump()};
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 9 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// The words of a verb about the job of the query; empty: it names none.
std::vector<std::string> words_of(const char* verb, const WebRequest& request) {
  const std::string namespace_ = query_of(request, "ns");
  const std::string name = query_of(request, "name");
  if (!is_object_name(namespace_) || !is_object_name(name)) return {};
  return {verb, name, "-n", namespace_};
}

WebReply log_of(const WebRequest& request, Api& api) {
  std::vector<std::string> words = words_of("logs", request);
  if (words.empty()) return wrong(400, "a job has a namespace and a name");
  words.insert(words.end(), {"--tail", kTail, "--limit-bytes", kReadBytes});
  for (const char* const flag : {"attempt", "index"}) {
    if (const std::string given = query_of(request, flag); is_number(given)) {
      words.insert(words.end(), {std::string("--") + flag, given});
    }
  }
  const Printed log = run_verb(words, api);
  if (!log.ok) return wrong(404, log.text);
  // A log may have any bytes.
  const std::size_t first = log.text.size() - std::min(log.text.size(), kLogBytes);
  return as_json({{"log", as_utf8(log.text.substr(first))}});
}

WebReply yaml_of(const WebRequest& request, Api& api) {
  std::vector<std::string> words = words_of("explain", request);
  if (words.empty()) return wrong(400, "a job has a namespace and a name");
  words.insert(words.end(), {"-o", "yaml"});
  const Printed text = run_verb(words, api);
  return text.ok ? WebReply{200, "text/plain; charset=utf-8", text.text} : wrong(404, text.text);
}

// What the person may do to the jobs of a namespace: {"patch": true, "create": false}.
WebReply rights_in(const std::string& namespace_, Api& api) {
  constexpr Resource kReviews{"/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews",
                              "SelfSubjectAccessReview", "selfsubjectaccessreview"};
  if (!is_object_name(namespace_)) return wrong(400, "there is no such namespace");
  Json rights = Json::object();
  for (const char* const verb : {"patch", "create"}) {
    const Json review = {{"apiVersion", "authorization.k8s.io/v1"},
                         {"kind", "SelfSubjectAccessReview"},
                         {"spec",
                          {{"resourceAttributes",
                            {{"namespace", namespace_},
                             {"verb", verb},
                             {"group", "holdfast.dev"},
                             {"resource", "durablejobs"}}}}}};
    const Result<Json> answer = api.create(kReviews, "", review, false);
    // Who may not even ask finds out by trying.
    rights[verb] = !answer.ok() || bool_at(at(*answer, "status"), "allowed");
  }
  return as_json(rights);
}

}  // namespace

PageServer::PageServer(Api& api, Options options) : api_(api), options_(std::move(options)) {}

PageServer::~PageServer() {
  if (server_) server_->stop();
}

Result<std::string> PageServer::start(std::uint16_t port) {
  const std::string token = random_token();
  if (token.empty())
    return make_error(ErrorCode::kTerminal, "there is no source of random numbers");
  scope_ = options_.namespace_.empty() ? "all namespaces" : "namespace " + options_.namespace_;
  const std::string cluster = options_.context.empty() ? api_.server() : options_.context;
  if (!cluster.empty()) scope_ += ", " + clean_text(cluster, kRowText);
  // A list of 100,000 jobs takes seconds: some are shown at once. And without a request before it,
  // nobody hears of missing rights.
  const auto first = api_.first_page(kJobs, options_.namespace_, decode_job_row);
  if (!first.ok()) return first.error();
  std::vector<JobRowPtr> rows;
  for (const kube::ObjectPtr& one : *first) rows.push_back(kube::as<JobRow>(one));
  table_.begin(rows);
  Result<std::unique_ptr<Watch>> watch =
      api_.watch(kJobs, options_.namespace_, decode_job_row,
                 [this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
                   if (!before && !after) return table_.settle();
                   table_.put(kube::as<JobRow>(before), kube::as<JobRow>(after));
                 });
  if (!watch.ok()) return watch.error();
  watch_ = std::move(*watch);
  pulse_ = std::make_unique<Pulse>(
      [this](Duration at_most) { return watch_->look(at_most); },
      Pulse::Clocks{[this] { return api_.now(); }, [] { return steady_now(); }});
  server_ =
      std::make_unique<WebServer>([this](const WebRequest& request) { return answer(request); });
  const Result<> listens = server_->listen(port);
  if (!listens.ok()) return listens.error();
  guard_ = std::make_unique<Guard>(token, server_->port());
  server_->serve();
  return "http://127.0.0.1:" + std::to_string(server_->port()) + "/#token=" + token;
}

WebReply PageServer::answer(const WebRequest& request) {
  const bool is_call = request.path.starts_with("/api/");
  auto refusal = is_call ? guard_->refuse_call(request) : guard_->refuse_file(request);
  if (refusal) return with_headers(std::move(*refusal));
  if (is_call) return with_headers(call(request));
  auto known = file(request);
  return with_headers(known ? std::move(*known) : wrong(404, "there is no such page"));
}

std::optional<WebReply> PageServer::file(const WebRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  for (const Asset& asset : options_.assets) {
    if (asset.path != request.path) continue;
    return WebReply{
        200, std::string(asset.type), std::string(asset.gzip), {{"Content-Encoding", "gzip"}}};
  }
  return std::nullopt;
}

WebReply PageServer::call(const WebRequest& request) {
  if (request.method == "POST") {
    return request.path == "/api/action" ? action(request) : wrong(404, "there is no such call");
  }
  if (request.method != "GET") return wrong(405, "only GET and POST are answered");
  if (request.path == "/api/events") return events(request);
  if (request.path == "/api/log") return log_of(request, api_);
  if (request.path == "/api/yaml") return yaml_of(request, api_);
  if (request.path == "/api/rights") return rights_in(query_of(request, "ns"), api_);
  return wrong(404, "there is no such call");
}

PageSources PageServer::sources() {
  return {api_,
          table_,
          watch_.get(),
          pulse_.get(),
          options_.namespace_,
          options_.operator_namespace,
          options_.where,
          scope_};
}

WebReply PageServer::events(const WebRequest& request) {
  const auto stream = open_stream(sources(), request);
  if (!stream.ok()) return wrong(400, stream.error().message);
  WebReply reply;
  reply.type = "text/event-stream";
  reply.events = [stream = *stream]() -> std::optional<std::string> { return stream->next(); };
  return reply;
}

WebReply PageServer::action(const WebRequest& request) {
  const Result<Action> action = parse_action(request.body);
  if (!action.ok()) return wrong(400, action.error().message);
  Json commands = Json::array();
  for (const ChosenJob& job : action->jobs)
    commands.push_back(in_cluster(command_of(*action, job), options_.where));
  // What it would do, for the confirmation.
  if (query_of(request, "ask") == "true") return as_json({{"commands", commands}});
  return as_json({{"results", act(*action, api_)}, {"commands", commands}});
}

}  // namespace holdfast::plugin
