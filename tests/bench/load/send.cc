#include <iostream>
#include <map>
#include <memory>
#include <vector>

#include "tests/bench/load/ends.h"
#include "tests/bench/load/load.h"

namespace holdfast::bench {
namespace {

struct Step {
  std::string method;
  std::string path;
  std::string type;
  std::string body;
};

using Values = std::map<std::string, std::string>;

struct Run {
  Run(kube::Client& the_client, SendOptions the_options)
      : client(the_client),
        options(std::move(the_options)),
        ends(the_client, options.until_ended) {}

  kube::Client& client;
  const SendOptions options;
  Ends ends;
  std::vector<Step> steps;
  std::vector<Values> values;  // of each chain
  std::size_t first_step = 0;  // those that are sent now
  std::size_t end_step = 0;
  std::size_t next = 0;  // chain
  int workers = 0;
  int chains = 0;    // that were sent to their end
  int requests = 0;  // that were accepted
  std::string error;
  Callback<Unit>::Done ended;
};

std::string filled(std::string text, const Values& values) {
  for (const auto& [name, value] : values) {
    for (std::size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + value.size())) {
      text.replace(at, name.size(), value);
    }
  }
  return text;
}

Task<Result<JsonDocument>> request(kube::Client& client, Step step) {
  kube::CallOptions options;
  options.content_type = step.type;
  options.answer_with_metadata = true;
  if (step.method == "POST") return client.post(step.path, step.body, options);
  if (step.method == "PUT") return client.put(step.path, step.body, options);
  if (step.method == "PATCH") return client.patch(step.path, step.body, options);
  if (step.method == "DELETE") return client.del(step.path, step.body, options);
  return client.get(step.path, options);
}

// The current steps of one chain after the other, until none is left.
Task<void> work(std::shared_ptr<Run> run) {
  while (run->next < run->values.size() && run->error.empty()) {
    Values& values = run->values[run->next++];
    for (std::size_t i = run->first_step; i < run->end_step && run->error.empty(); ++i) {
      const Step& step = run->steps[i];
      auto call = request(run->client, {step.method, filled(step.path, values), step.type,
                                        filled(step.body, values)});
      const Result<JsonDocument> answer = co_await call;
      if (!answer) {
        run->error = step.method + " " + step.path + ": " + answer.error().message;
        break;
      }
      ++run->requests;
      const JsonView metadata = at(*answer, "metadata");
      values.emplace("$UID", string_at(metadata, "uid"));
      if (string_at(metadata, "uid") == values["$UID"]) {
        values["$VERSION"] = string_at(metadata, "resourceVersion");
      }
    }
    if (!run->error.empty() || run->end_step < run->steps.size()) continue;
    if (!run->options.until_ended.empty()) {
      auto end = run->ends.of("job-" + values["$N"]);
      const bool has_ended = co_await end;
      if (!has_ended) run->error = run->ends.error();
    }
    ++run->chains;
  }
  if (--run->workers == 0) run->ended(Unit{});
}

// These steps of all chains.
Task<void> send_steps(std::shared_ptr<Run> run, std::size_t first, std::size_t end) {
  run->first_step = first;
  run->end_step = end;
  run->next = 0;
  Callback<Unit> ended([&](Callback<Unit>::Done done) {
    run->ended = std::move(done);
    run->workers = run->options.in_flight;
    for (int i = 0; i < run->options.in_flight; ++i) spawn(work(run));
  });
  co_await ended;
}

// Whoever measures says by a line when the next step may begin.
Task<void> send_by_step(std::shared_ptr<Run> run) {
  std::string line;
  for (std::size_t i = 0; i < run->steps.size() && run->error.empty(); ++i) {
    std::cout << "ready" << std::endl;
    std::getline(std::cin, line);
    auto task = send_steps(run, i, i + 1);
    co_await task;
  }
}

Result<std::vector<Step>> parse_chain(const std::string& text) {
  const Result<Json> chain = parse_json(text);
  if (!chain) return chain.error();
  std::vector<Step> steps;
  for (const Json& item : *chain) {
    const Json& body = at(item, "body");
    steps.push_back({string_at(item, "method", "POST"), string_at(item, "path"),
                     string_at(item, "type", "application/json"),
                     body.is_null() ? "" : body.dump()});
  }
  return steps;
}

}  // namespace

Task<Result<Json>> send(kube::Client& client, SendOptions options) {
  const auto run = std::make_shared<Run>(client, std::move(options));
  Result<std::vector<Step>> steps = parse_chain(run->options.chain);
  if (!steps) co_return steps.error();
  run->steps = std::move(*steps);
  for (int i = 0; i < run->options.count; ++i) {
    run->values.push_back({{"$N", std::to_string(run->options.first + i)}});
  }
  if (!run->options.until_ended.empty()) {
    auto open = run->ends.open();
    const bool is_open = co_await open;
    if (!is_open) co_return make_error(ErrorCode::kTerminal, run->ends.error());
  }
  const SteadyTime began = client.loop().now();
  auto task = run->options.by_step ? send_by_step(run) : send_steps(run, 0, run->steps.size());
  co_await task;
  if (!run->options.until_ended.empty()) run->ends.close();
  if (!run->error.empty()) co_return make_error(ErrorCode::kTerminal, run->error);
  co_return Json{{"seconds", to_seconds(client.loop().now() - began)},
                 {"chains", run->chains},
                 {"requests", run->requests}};
}

}  // namespace holdfast::bench
