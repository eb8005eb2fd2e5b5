// The page of `explain` in a terminal: all that the model has, or as much as fits.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "plugin/explain/model.h"
#include "plugin/explain/parts.h"
#include "plugin/explain/timeline.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/moments.h"

namespace holdfast::plugin {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kLabel = 11;  // with the indent
constexpr std::size_t kAdviceLines = 8;

// How much the page says, so that it fits onto the screen.
struct Detail {
  std::size_t attempts = 10;
  std::size_t stages = 17;
  std::size_t text_lines = 5;  // of one fact
};

constexpr Detail kEverything = {1000, 1000, 1000};
// From all that there is to the least.
constexpr std::array kDetails = {Detail{10, 17, 5}, Detail{8, 17, 5}, Detail{6, 17, 4},
                                 Detail{5, 12, 4},  Detail{4, 8, 4},  Detail{3, 6, 3},
                                 Detail{2, 5, 3},   Detail{2, 5, 2},  Detail{1, 4, 2},
                                 Detail{0, 4, 3},   Detail{0, 3, 2},  Detail{0, 1, 1}};

// What all parts of the drawing know.
struct Drawing {
  const Model& model;
  Time now;
  const Page& page;
  Detail detail;
};

// The name, the phase and the age. A long name has a line of its own.
Lines title(const Drawing& drawing) {
  const Model& model = drawing.model;
  const std::string name = model.namespace_ + "/" + model.name;
  const std::string left = name + "  " + model.state;
  std::string right;
  if (model.ended) {
    right = "ended " + span_text(drawing.now - *model.ended) + " ago";
  } else if (model.created) {
    right = "created " + span_text(drawing.now - *model.created) + " ago";
  }
  const std::size_t width = drawing.page.width;
  if (cells(left) + 2 + cells(right) <= width) {
    return {left + std::string(width - cells(left) - cells(right), ' ') + right};
  }
  if (cells(left) <= width) return {left};
  Lines lines = wrap(name, width, 4, drawing.page.unicode);
  lines.push_back(cut(model.state + "  " + right, width, drawing.page.unicode));
  return lines;
}

// "  Why      text", and further lines of the text below it. No text: nothing.
void add_text(const Page& page, std::string_view label, std::string_view text, std::size_t most,
              Lines& lines) {
  const std::size_t room = page.width > kLabel ? page.width - kLabel : 1;
  const Lines wrapped = wrap(text, room, most, page.unicode);
  for (std::size_t i = 0; i < wrapped.size(); ++i) {
    const std::string head = i == 0 ? "  " + std::string(label) : "";
    lines.push_back(fit(head, kLabel - 1, page.unicode) + " " + wrapped[i]);
  }
}

// Of what a program said: the first line, which says how it ended, and the last ones, which say
// why.
void add_words(const Drawing& drawing, std::string_view label, std::string_view words,
               Lines& lines) {
  const std::size_t most = drawing.detail.text_lines;
  const std::size_t first_end = words.find('\n');
  if (first_end == std::string_view::npos) {
    return add_text(drawing.page, label, words, most, lines);
  }
  add_text(drawing.page, label, words.substr(0, first_end), 2, lines);
  std::vector<std::string_view> rest;
  for (std::string_view left = words.substr(first_end + 1); !left.empty();) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    rest.push_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  // A page without a limit has all of them.
  const bool is_whole = most > Detail{}.text_lines;
  const std::size_t shown = is_whole ? rest.size() : most > 3 ? 3 : 1;
  const std::size_t first = rest.size() - std::min(rest.size(), shown);
  for (std::size_t i = first; i < rest.size(); ++i) {
    const std::size_t rows = i + 1 == rest.size() ? 2 : 1;
    add_text(drawing.page, "", rest[i], is_whole ? most : rows, lines);
  }
}

// "[######........]  41 %"; what runs is lighter than what is done.
std::string progress_bar(const RunsModel& runs, bool unicode) {
  constexpr std::size_t kBar = 40;
  const std::int64_t whole = std::max<std::int64_t>(runs.wanted, 1);
  const auto part = [&](std::int64_t count) {
    const double share = static_cast<double>(count) / static_cast<double>(whole);
    return static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(kBar));
  };
  const std::size_t done = part(runs.succeeded);
  const std::size_t bad = part(runs.succeeded + runs.failed);
  const std::size_t open = part(runs.succeeded + runs.failed + runs.open);
  std::string bar = "[";
  for (std::size_t i = 0; i < kBar; ++i) {
    if (i < done) {
      bar += unicode ? "█" : "#";
    } else if (i < bad) {
      bar += unicode ? "╳" : "x";
    } else if (i < open) {
      bar += unicode ? "▒" : "+";
    } else {
      bar += unicode ? "░" : ".";
    }
  }
  const std::int64_t percent = 100 * std::clamp<std::int64_t>(runs.succeeded, 0, whole) / whole;
  return bar + "] " + std::to_string(percent) + " %";
}

Lines fact_lines(const Drawing& drawing) {
  const std::size_t most = drawing.detail.text_lines;
  Lines lines;
  for (const Fact& fact : drawing.model.facts) {
    add_text(drawing.page, fact.label, fact.text.at(drawing.now), most, lines);
    for (const Text& more : fact.more) {
      add_text(drawing.page, "", more.at(drawing.now), most, lines);
    }
    add_words(drawing, fact.text.empty() ? fact.label : "", fact.words, lines);
    if (fact.name == "runs") {
      add_text(drawing.page, "", progress_bar(drawing.model.runs, drawing.page.unicode), most,
               lines);
    }
  }
  add_text(drawing.page, "You can", drawing.model.advice.text, kAdviceLines, lines);
  const std::size_t width = drawing.page.width;
  const std::size_t room = width > kLabel + 2 ? width - kLabel - 2 : 1;
  for (const std::string& command : drawing.model.advice.commands) {
    for (const std::string& line : wrap_command(command, room)) {
      lines.push_back(std::string(kLabel + 2, ' ') + line);
    }
  }
  return lines;
}

std::string mark_of(const std::string& phase, bool unicode) {
  if (phase == "Succeeded") return unicode ? "✓" : "+";
  if (phase == "Failed") return unicode ? "✗" : "x";
  if (phase == "Running") return ">";
  return phase == "Skipped" ? "-" : unicode ? "·" : ".";
}

std::string stage_line(const Drawing& drawing, const StageModel& stage, std::size_t name_width) {
  const Page& page = drawing.page;
  std::string line = "  " + mark_of(stage.phase, page.unicode) + " " +
                     fit(stage.name, name_width, page.unicode) + "  " +
                     fit(stage.phase, 9, page.unicode);
  std::string took;
  if (stage.start) took = span_text(stage.end.value_or(drawing.now) - *stage.start);
  line += "  " + fit(took, 8, page.unicode);
  if (!stage.note.empty()) line += "  " + stage.note;
  line = cut(line, page.width, page.unicode);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// One line for each stage; nothing for a job without stages.
Lines stage_lines(const Drawing& drawing) {
  const std::vector<StageModel>& stages = drawing.model.stages;
  if (stages.empty()) return {};
  std::size_t name_width = 4;
  for (const StageModel& stage : stages) name_width = std::max(name_width, cells(stage.name));
  name_width = std::min<std::size_t>(name_width, 20);
  const auto current = static_cast<std::size_t>(
      std::find_if(stages.begin(), stages.end(),
                   [](const StageModel& stage) { return stage.is_current; }) -
      stages.begin());
  // The current stage, what was just before it, and what comes.
  const std::size_t most = std::max<std::size_t>(drawing.detail.stages, 1);
  std::size_t first = 0;
  if (stages.size() > most) {
    first = std::min(current > 0 ? current - 1 : 0, stages.size() - most);
  }
  const std::size_t end = std::min(stages.size(), first + most);
  Lines lines = {"Stages"};
  if (first > 0) {
    lines.front() += " (" + plural(static_cast<std::int64_t>(first), "earlier one") + " not shown)";
  }
  for (std::size_t i = first; i < end; ++i) {
    lines.push_back(stage_line(drawing, stages[i], name_width));
  }
  if (end < stages.size()) {
    lines.push_back("  " + count_text(static_cast<std::int64_t>(stages.size() - end)) +
                    " more to come");
  }
  return lines;
}

TimelineRow row_of(const AttemptModel& attempt, Time now) {
  TimelineRow row;
  row.label = std::to_string(attempt.attempt);
  if (attempt.index) row.label += " run " + std::to_string(*attempt.index);
  row.label += " " + attempt.state;
  row.start = attempt.start;
  row.end = attempt.end;
  row.waits = attempt.waits;
  if (!attempt.waits) row.duration = span_text(attempt.end.value_or(now) - attempt.start);
  row.note = attempt.note;
  for (const BoundModel& bound : attempt.bounds) {
    row.marks.push_back({bound.letter, bound.name, bound.at});
  }
  return row;
}

// The drawing of the last attempts.
Lines attempt_lines(const Drawing& drawing) {
  const Model& model = drawing.model;
  std::vector<TimelineRow> rows;
  const std::size_t count = std::min(model.attempts.size(), drawing.detail.attempts);
  for (std::size_t i = model.attempts.size() - count; i < model.attempts.size(); ++i) {
    rows.push_back(row_of(model.attempts[i], drawing.now));
  }
  if (rows.empty()) return {};
  Lines lines = {model.has_many_runs ? "Last ends of attempts" : "Attempts"};
  const auto earlier = model.attempt - static_cast<std::int64_t>(rows.size());
  if (!model.has_many_runs && earlier > 0 && model.stages.empty() && !rows.back().waits) {
    lines.front() += " (" + plural(earlier, "earlier one") + " not shown)";
  }
  const Lines drawn = draw_timeline(rows, {drawing.now, drawing.page.width, drawing.page.unicode});
  lines.insert(lines.end(), drawn.begin(), drawn.end());
  return lines;
}

void add_part(const Lines& part, Lines& lines) {
  if (part.empty()) return;
  lines.emplace_back();
  lines.insert(lines.end(), part.begin(), part.end());
}

Lines page_of(const Drawing& drawing) {
  Lines lines = title(drawing);
  add_part(fact_lines(drawing), lines);
  add_part(stage_lines(drawing), lines);
  add_part(attempt_lines(drawing), lines);
  // Neither cut nor wrapped, so that it can be pasted: a page that is too narrow has none. Nor has
  // a reason that the manual does not know.
  const std::string link = "More:   " + drawing.model.link;
  if (!drawing.model.link.empty() && cells(link) <= drawing.page.width) lines.push_back(link);
  return lines;
}

}  // namespace

std::vector<std::string> draw(const Model& model, Time now, const Page& page) {
  if (page.height == 0) return page_of({model, now, page, kEverything});
  Lines lines;
  for (const Detail& detail : kDetails) {
    lines = page_of({model, now, page, detail});
    if (lines.size() <= page.height) break;
  }
  return lines;
}

}  // namespace holdfast::plugin
