// Runs the script of operations over the simulated API server and prints each answer, one line of
// JSON each. tests/integration/test_simulated_server.py runs it over a real one and compares.
//
//   simulation-run-script tests/simulation/server/script.json
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/api_server.h"

namespace holdfast::simulation {
namespace {

std::string percent_encode(const std::string& text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return encoded;
}

std::string content_type_of(const Json& step) {
  const std::string type = string_at(step, "type");
  if (type == "merge") return "application/merge-patch+json";
  if (type == "strategic") return "application/strategic-merge-patch+json";
  if (type == "json") return "application/json-patch+json";
  return "application/json";
}

// Null when it is no JSON.
Json parsed(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

class Runner {
 public:
  explicit Runner(Json script) : script_(std::move(script)) {
    for (const auto& [name, value] : script_.at("names").items()) captured_[name] = value;
  }

  // False: an answer was not what the script says that it should be.
  bool run() {
    for (const Json& step : script_.at("steps")) {
      if (bool_at(step, "real_only")) continue;
      Json answer = run(filled(step));
      answer["step"] = step.at("step");
      if (at(step, "status") != at(answer, "status") && step.contains("status")) wrong_ = true;
      if (!bool_at(answer, "met", true) || answer.contains("missing")) wrong_ = true;
      std::printf("%s\n", answer.dump().c_str());
    }
    return !wrong_;
  }

 private:
  using Events = std::vector<Json>;

  // With what earlier answers gave for "${name}".
  Json filled(const Json& step) const {
    std::string text = step.dump();
    for (const auto& [name, value] : captured_) {
      const std::string mark = "${" + name + "}";
      for (std::size_t place = text.find(mark); place != std::string::npos;
           place = text.find(mark, place + value.size())) {
        text.replace(place, mark.size(), value);
      }
    }
    return Json::parse(text);
  }

  Json run(const Json& step) {
    now_ += std::chrono::seconds(1);
    Json answer = step.contains("watch")    ? open(step)
                  : step.contains("events") ? take(step)
                  : step.contains("wait")   ? wait(step)
                                            : request(step);
    server_.advance_watch_cache();
    return answer;
  }

  Json request(const Json& step) {
    ApiRequest request;
    request.method = step.at("method");
    request.target = step.at("path");
    request.content_type = content_type_of(step);
    request.accept = string_at(step, "accept");
    if (step.contains("raw")) {
      request.body = step["raw"];
    } else if (step.contains("body")) {
      request.body = step["body"].dump();
    } else if (step.contains("like")) {
      Json body = script_.at("objects").at(step["like"].get<std::string>());
      body.merge_patch(at(step, "with").is_null() ? Json::object() : at(step, "with"));
      request.body = body.dump();
    }
    const bool watches = request.target.find("watch=1") != std::string::npos;
    const ApiAnswer answer = watches ? watch_once(request) : server_.handle(request);
    const Json body = parsed(answer.body);
    for (const auto& [name, pointer] : at(step, "capture").items()) {
      const Json::json_pointer place(pointer.get<std::string>());
      captured_[name] = body.contains(place) ? body[place].get<std::string>() : "";
    }
    return {{"status", answer.status}, {"body", body}};
  }

  // A watch that is refused, or gets one line.
  ApiAnswer watch_once(const ApiRequest& request) {
    const auto events = std::make_shared<Events>();
    ApiServer::Opened opened = server_.watch(request, sink_of(events));
    if (!events->empty()) opened.answer.body = events->front().dump();
    server_.close_watch(opened.id);
    return opened.answer;
  }

  static WatchSink sink_of(const std::shared_ptr<Events>& events) {
    WatchSink sink;
    sink.on_line = [events](const std::string& line) { events->push_back(Json::parse(line)); };
    sink.on_end = [] {};
    return sink;
  }

  Json open(const Json& step) {
    ApiRequest request;
    request.method = "GET";
    request.target = step.at("path").get<std::string>() + "?watch=true";
    for (const auto& [name, value] : step.at("query").items()) {
      request.target += "&" + name + "=" + percent_encode(value.get<std::string>());
    }
    const auto events = std::make_shared<Events>();
    watches_[step["watch"]] = events;
    return {{"status", server_.watch(request, sink_of(events)).answer.status}};
  }

  // What a watch was sent, up to the event "TYPE name".
  Json take(const Json& step) {
    Events& events = *watches_.at(step["events"]);
    Json taken = Json::array();
    for (std::size_t i = 0; i < events.size(); ++i) {
      taken.push_back(events[i]);
      const std::string name = string_at(at(at(events[i], "object"), "metadata"), "name");
      if (string_at(events[i], "type") + " " + name == step.at("until")) {
        events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return {{"events", taken}};
      }
    }
    return {{"events", taken}, {"missing", step.at("until")}};
  }

  Json wait(const Json& step) {
    while (server_.collect_garbage()) {
    }
    ApiRequest request;
    request.method = "GET";
    request.target = step["wait"];
    const ApiAnswer answer = server_.handle(request);
    const std::string until = string_at(step, "until");
    const Json body = parsed(answer.body);
    if (step.contains("absent")) {
      const Json::json_pointer gone(step["absent"].get<std::string>());
      return {{"met", answer.status == 200 && !body.contains(gone)}};
    }
    if (until.empty()) return {{"met", answer.status == 404}};
    const Json::json_pointer place(until);
    const bool there = body.contains(place);
    return {{"met", there && (!step.contains("value") || body[place] == step["value"])}};
  }

  Json script_;
  bool wrong_ = false;
  Time now_{std::chrono::seconds(1'800'000'000)};
  ApiServer server_{[this] { return now_; }, 1};
  std::map<std::string, std::string> captured_;
  std::map<std::string, std::shared_ptr<Events>> watches_;
};

}  // namespace
}  // namespace holdfast::simulation

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SCRIPT\n", argv[0]);
    return 2;
  }
  std::ifstream file(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return holdfast::simulation::Runner(holdfast::Json::parse(text)).run() ? 0 : 1;
}
