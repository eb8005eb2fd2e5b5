#include "plugin/explain/html.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/index_set.h"
#include "plugin/explain/parts.h"
#include "plugin/terminal/moments.h"

namespace holdfast::plugin {
namespace {

using api::IndexSet;

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--line:#8885;--good:#1a7f37;--bad:#cf222e;--open:#0969da;--wait:#9a6700}
@media(prefers-color-scheme:dark){:root{--good:#3fb950;--bad:#ff7b72;--open:#58a6ff;--wait:#d29922}}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1rem}dt{font-weight:600}
dd{margin:0;overflow-wrap:anywhere}pre{border:1px solid var(--line);padding:.5rem;white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
svg{width:100%;height:auto}svg text{fill:currentColor;font-size:12px}.wide{overflow-x:auto}
.good{fill:var(--good)}.bad{fill:var(--bad)}.open{fill:var(--open)}.wait{fill:var(--wait)}.rest{fill:var(--line)}
.mark{stroke:var(--bad);stroke-dasharray:3}.now{stroke:currentColor}
)";

std::string escaped(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string element(std::string_view name, std::string_view text) {
  return "<" + std::string(name) + ">" + escaped(text) + "</" + std::string(name) + ">";
}

std::string facts_of(const Model& model, Time now) {
  std::string html = "<dl>\n";
  for (const Fact& fact : model.facts) {
    html += element("dt", fact.label) + "<dd>" + escaped(fact.text.at(now));
    for (const Text& more : fact.more) html += "<br>" + escaped(more.at(now));
    if (!fact.words.empty()) html += element("pre", fact.words);
    html += "</dd>\n";
  }
  return html + "</dl>\n";
}

std::string advice_of(const AdviceModel& advice) {
  if (advice.text.empty() && advice.commands.empty()) return "";
  std::string html = "<h2>You can</h2>\n" + element("p", advice.text) + "\n";
  for (const std::string& command : advice.commands) html += element("pre", command) + "\n";
  return html;
}

// ---- Runs as a map of squares.

constexpr std::int64_t kSquares = 1000;
constexpr std::int64_t kInRow = 50;

// What a square says of its runs: the state that a reader looks for first.
const char* state_of(std::int64_t first, std::int64_t end, const IndexSet& done,
                     const IndexSet& failed, const std::vector<RunText>& begun) {
  const IndexSet none;
  const auto has = [&](const IndexSet& set) {
    const auto found = set.next(first, none);
    return found && *found < end;
  };
  if (has(failed)) return "bad";
  const RunText* waits = nullptr;
  for (const RunText& run : begun) {
    if (run.index < first || run.index >= end) continue;
    if (!run.next_attempt) return "open";
    waits = &run;
  }
  if (waits) return "wait";
  const auto missing = IndexSet::first(end).next(first, done);
  return missing ? "rest" : "good";
}

std::string runs_of(const Model& model) {
  const RunsModel& runs = model.runs;
  if (!model.has_many_runs || runs.wanted < 1) return "";
  const IndexSet done =
      IndexSet::parse(runs.completed_indexes, IndexSet::kMost).value_or(IndexSet());
  const IndexSet failed =
      IndexSet::parse(runs.failed_indexes, IndexSet::kMost).value_or(IndexSet());
  const std::int64_t each = (runs.wanted + kSquares - 1) / kSquares;
  const std::int64_t count = (runs.wanted + each - 1) / each;
  const std::int64_t rows = (count + kInRow - 1) / kInRow;
  std::string html =
      "<h2>Runs</h2>\n<svg role=\"img\" aria-label=\"" +
      escaped(count_text(runs.succeeded) + " of " + plural(runs.wanted, "run") + " succeeded, " +
              count_text(runs.failed) + " failed, " + count_text(runs.open) + " open") +
      "\" viewBox=\"0 0 " + std::to_string(kInRow * 12) + " " + std::to_string(rows * 12) + "\">\n";
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t end = std::min((i + 1) * each, runs.wanted);
    html += "<rect class=\"" + std::string(state_of(i * each, end, done, failed, runs.begun)) +
            "\" x=\"" + std::to_string(i % kInRow * 12) + "\" y=\"" +
            std::to_string(i / kInRow * 12) + "\" width=\"10\" height=\"10\"/>";
  }
  html += "\n</svg>\n<p>Each square is " + plural(each, "run") +
          ": green succeeded, red failed, blue is open, yellow waits, grey has not begun.</p>\n";
  if (!runs.failed_indexes.empty()) html += element("p", "Failed: " + runs.failed_indexes) + "\n";
  return html;
}

// ---- Attempts: a picture to scale, and the same as a table.

constexpr double kWidth = 900;
constexpr double kLabels = 150;
constexpr double kRow = 22;

struct Axis {
  Time from{};
  Time to{};
  double x(Time time) const {
    const double part = to_seconds(time - from) / std::max(1.0, to_seconds(to - from));
    return kLabels + std::clamp(part, 0.0, 1.0) * (kWidth - kLabels);
  }
};

std::string number(double value) { return std::to_string(static_cast<std::int64_t>(value)); }

std::string label_of(const AttemptModel& attempt) {
  std::string label = std::to_string(attempt.attempt);
  if (attempt.index) label += " run " + std::to_string(*attempt.index);
  return label + " " + attempt.state;
}

const char* class_of(const AttemptModel& attempt) {
  if (attempt.waits) return "wait";
  if (!attempt.end) return "open";
  return attempt.state == "Succeeded" ? "good" : "bad";
}

Axis axis_of(const std::vector<AttemptModel>& attempts, Time now) {
  Axis axis{attempts.front().start, now};
  for (const AttemptModel& attempt : attempts) {
    axis.from = std::min(axis.from, attempt.start);
    for (const BoundModel& bound : attempt.bounds) {
      // A bound that is far away would leave no room for what has been.
      if (bound.at - now <= 3 * (now - axis.from)) axis.to = std::max(axis.to, bound.at);
    }
  }
  return axis;
}

std::string picture_of(const std::vector<AttemptModel>& attempts, Time now) {
  const Axis axis = axis_of(attempts, now);
  const double height = kRow * static_cast<double>(attempts.size()) + 20;
  std::string svg = "<div class=\"wide\"><svg aria-hidden=\"true\" viewBox=\"0 0 " +
                    number(kWidth) + " " + number(height) + "\">\n";
  double y = 0;
  for (const AttemptModel& attempt : attempts) {
    const double x = axis.x(attempt.start);
    const double width = std::max(2.0, axis.x(attempt.end.value_or(now)) - x);
    svg += "<text x=\"0\" y=\"" + number(y + 15) + "\">" + escaped(label_of(attempt)) + "</text>";
    svg += "<rect class=\"" + std::string(class_of(attempt)) + "\" x=\"" + number(x) + "\" y=\"" +
           number(y + 4) + "\" width=\"" + number(width) + "\" height=\"" + number(kRow - 8) +
           "\"/>\n";
    for (const BoundModel& bound : attempt.bounds) {
      if (bound.at > axis.to) continue;
      const std::string at = number(axis.x(bound.at));
      svg += "<line class=\"mark\" x1=\"" + at + "\" x2=\"" + at + "\" y1=\"" + number(y) +
             "\" y2=\"" + number(y + kRow) + "\"/><text x=\"" + at + "\" y=\"" +
             number(y + kRow + 12) + "\">" + std::string(1, bound.letter) + "</text>";
    }
    y += kRow;
  }
  const std::string at = number(axis.x(now));
  return svg + "<line class=\"now\" x1=\"" + at + "\" x2=\"" + at + "\" y1=\"0\" y2=\"" +
         number(y) + "\"/>\n</svg></div>\n";
}

std::string attempts_of(const Model& model, Time now) {
  if (model.attempts.empty()) return "";
  std::string html =
      model.has_many_runs ? "<h2>Last ends of attempts</h2>\n" : "<h2>Attempts</h2>\n";
  html += picture_of(model.attempts, now);
  html +=
      "<div class=\"wide\"><table><tr><th>Attempt</th><th>From</th><th>To</th><th>Took</th>"
      "<th>How</th></tr>\n";
  for (const AttemptModel& attempt : model.attempts) {
    html += "<tr>" + element("td", label_of(attempt)) +
            element("td", clock_text(attempt.start, now)) +
            element("td", attempt.end ? clock_text(*attempt.end, now) : "now") +
            element("td", span_text(attempt.end.value_or(now) - attempt.start)) + "<td>" +
            escaped(attempt.note);
    if (!attempt.words.empty()) html += element("pre", attempt.words);
    html += "</td></tr>\n";
  }
  html += "</table></div>\n";
  for (const BoundModel& bound : model.attempts.back().bounds) {
    html += element("p", std::string(1, bound.letter) + ": " + bound.name + " " +
                             moment_text(bound.at, now)) +
            "\n";
  }
  return html;
}

std::string stages_of(const Model& model, Time now) {
  if (model.stages.empty()) return "";
  std::string html =
      "<h2>Stages</h2>\n<div class=\"wide\"><table><tr><th>Stage</th><th>Phase</th>"
      "<th>Took</th><th></th></tr>\n";
  for (const StageModel& stage : model.stages) {
    html += "<tr>" + element("td", stage.name) + element("td", stage.phase) +
            element("td", stage.start ? span_text(stage.end.value_or(now) - *stage.start) : "") +
            element("td", stage.note) + "</tr>\n";
  }
  return html + "</table></div>\n";
}

// The operator's messages say "container main ended with exit code 1: " and then the words.
std::string without_words(std::string text) {
  constexpr std::string_view kEnded = " ended with exit code ";
  const std::size_t found = text.find(kEnded);
  if (found == std::string::npos) return text;
  const std::size_t code_end = text.find_first_not_of("0123456789", found + kEnded.size());
  if (code_end != std::string::npos) text.resize(code_end);
  return text;
}

}  // namespace

std::string html_of(const Model& model, Time now) {
  const std::string name = model.namespace_ + "/" + model.name;
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n" +
      element("title", name + ": " + model.state) + "\n<style>" + std::string(kStyle) +
      "</style></head>\n<body><main>\n" + element("h1", name) + "\n" + element("p", model.state) +
      "\n" + facts_of(model, now) + advice_of(model.advice) + runs_of(model) +
      stages_of(model, now) + attempts_of(model, now);
  html += "<p>As of " + format_time(now) + ".";
  if (!model.link.empty()) {
    html += " <a href=\"" + escaped(model.link) + "\">More of " + escaped(model.reason) + "</a>.";
  }
  return html + "</p>\n</main></body></html>\n";
}

void leave_words_out(Model& model) {
  model.summary = model.summary.with_words(without_words);
  for (Fact& fact : model.facts) {
    fact.words.clear();
    fact.text = fact.text.with_words(without_words);
    for (Text& more : fact.more) more = more.with_words(without_words);
  }
  std::erase_if(model.facts, [](const Fact& fact) { return fact.text.empty(); });
  for (StageModel& stage : model.stages) stage.note = without_words(stage.note);
  for (AttemptModel& attempt : model.attempts) attempt.words.clear();
}

}  // namespace holdfast::plugin
