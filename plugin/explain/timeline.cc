#include "plugin/explain/timeline.h"

#include <algorithm>

#include "plugin/terminal/cells.h"
#include "plugin/terminal/moments.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

constexpr std::size_t kIndent = 2;
constexpr std::size_t kMostLabel = 22;
constexpr std::size_t kMostNote = 36;
constexpr std::size_t kLeastBar = 20;
// A bound may be so many times as far away as the shown past is long. Beyond, past attempts could
// not be distinguished.
constexpr int kMostAhead = 3;

struct Scale {
  Time from{};
  Time to{};
  std::size_t columns = 1;

  // The column of a time; those outside are at the edges.
  std::size_t column(Time time) const {
    const double part = to_seconds(time - from) / to_seconds(to - from);
    const double column = part * static_cast<double>(columns);
    if (column <= 0) return 0;
    return std::min(columns - 1, static_cast<std::size_t>(column));
  }
};

// The signs of the drawing: each takes one cell.
struct Signs {
  const char* line;
  const char* first;
  const char* last;
  const char* single;
  const char* going;
  const char* ahead;
  const char* beyond;
};
constexpr Signs kUnicode = {"─", "├", "┤", "│", ">", "┄", "→"};
constexpr Signs kAscii = {"-", "|", "|", "|", ">", ".", "}"};

bool is_old(const TimelineRow& row) { return row.end.has_value(); }

bool has_marks_beyond(const std::vector<TimelineRow>& rows, Time edge) {
  return std::any_of(rows.begin(), rows.end(), [&](const TimelineRow& row) {
    return std::any_of(row.marks.begin(), row.marks.end(),
                       [&](const TimelineMark& mark) { return mark.at > edge; });
  });
}

Scale scale_of(const std::vector<TimelineRow>& rows, Time now, std::size_t columns) {
  Scale scale{rows.front().start, now, columns};
  std::optional<Time> nearest;
  int ended = 0;
  for (const TimelineRow& row : rows) {
    scale.from = std::min(scale.from, row.start);
    scale.to = std::max(scale.to, row.end.value_or(now));
    if (is_old(row)) ++ended;
    for (const TimelineMark& mark : row.marks) {
      if (mark.at > now && (!nearest || mark.at < *nearest)) nearest = mark.at;
    }
  }
  const Duration past = std::max<Duration>(scale.to - scale.from, seconds(1));
  const Time horizon = now + past * kMostAhead;
  // One attempt may well be a dot: there is nothing to distinguish it from.
  if (nearest) scale.to = std::max(scale.to, ended > 1 ? std::min(*nearest, horizon) : *nearest);
  // Other bounds that are little further away stand in the picture, too.
  const Time little_more = scale.to + (scale.to - scale.from) / 2;
  for (const TimelineRow& row : rows) {
    for (const TimelineMark& mark : row.marks) {
      if (mark.at <= little_more) scale.to = std::max(scale.to, mark.at);
    }
  }
  scale.to = std::max(scale.to, scale.from + seconds(1));
  // The last column then has the sign of what is beyond.
  if (has_marks_beyond(rows, scale.to)) --scale.columns;
  return scale;
}

using Cells = std::vector<std::string>;

void draw_marks(const TimelineRow& row, const Scale& scale, const Signs& signs, Cells& bar,
                std::size_t from) {
  std::size_t last = from;
  std::vector<std::pair<std::size_t, char>> places;
  for (const TimelineMark& mark : row.marks) {
    if (mark.at > scale.to) {
      bar.back() = signs.beyond;
      last = bar.size() - 1;
      continue;
    }
    std::size_t place = scale.column(mark.at);
    // Marks of one column stand side by side.
    const auto is_taken = [&](std::size_t column) {
      return std::any_of(places.begin(), places.end(),
                         [&](const auto& one) { return one.first == column; });
    };
    while (is_taken(place) && place > 0) --place;
    places.emplace_back(place, mark.letter);
    last = std::max(last, place);
  }
  for (std::size_t i = from; i < last; ++i) {
    if (bar[i] == " ") bar[i] = signs.ahead;
  }
  for (const auto& [place, letter] : places) bar[place] = std::string(1, letter);
}

std::string bar_of(const TimelineRow& row, const Scale& scale, Time now, std::size_t columns,
                   const Signs& signs) {
  Cells bar(columns, " ");
  const std::size_t first = scale.column(row.start);
  if (row.waits) {
    const std::size_t last = scale.column(now);
    for (std::size_t i = first; i < last; ++i) bar[i] = signs.ahead;
    draw_marks(row, scale, signs, bar, first);
  } else {
    const std::size_t last = scale.column(row.end.value_or(now));
    std::fill(bar.begin() + static_cast<std::ptrdiff_t>(first),
              bar.begin() + static_cast<std::ptrdiff_t>(last), signs.line);
    bar[first] = signs.first;
    bar[last] = first == last && row.end ? signs.single : row.end ? signs.last : signs.going;
    if (!row.end) draw_marks(row, scale, signs, bar, last + 1);
  }
  std::string text;
  for (const std::string& cell : bar) text += cell;
  return text;
}

// The times of the left edge, of now and of the right edge, as far as they fit beside each other.
std::string axis_of(const Scale& scale, Time now) {
  std::string axis(scale.columns, ' ');
  const auto put = [&](std::size_t column, const std::string& text) {
    if (text.size() > axis.size()) return;
    const std::size_t start = std::min(column, axis.size() - text.size());
    const std::size_t before = start == 0 ? 0 : start - 1;
    const std::size_t end = std::min(axis.size(), start + text.size() + 1);
    if (axis.substr(before, end - before).find_first_not_of(' ') != std::string::npos) return;
    axis.replace(start, text.size(), text);
  };
  put(0, clock_text(scale.from, now));
  const bool has_future = scale.to > now && scale.column(now) + 1 < scale.columns;
  if (now >= scale.from && now <= scale.to) put(scale.column(now), has_future ? "^now" : "now");
  if (has_future) put(scale.columns - 1, clock_text(scale.to, now));
  if (!has_future && now > scale.to) put(scale.columns - 1, clock_text(scale.to, now));
  axis.erase(axis.find_last_not_of(' ') + 1);
  return axis;
}

void add_legend(const std::vector<TimelineRow>& rows, const Scale& scale, const TimelineLook& look,
                std::vector<std::string>& lines) {
  for (const TimelineRow& row : rows) {
    for (const TimelineMark& mark : row.marks) {
      std::string text = std::string(1, mark.letter) + " " + mark.name +
                         (mark.at > look.now ? " " : ", due ") + moment_text(mark.at, look.now);
      if (mark.at > scale.to) text += ", beyond the right edge";
      const bool joins = !lines.empty() && cells(lines.back()) + 3 + cells(text) <= look.width;
      if (joins) {
        lines.back() += "   " + text;
      } else {
        lines.push_back(cut("  " + text, look.width, look.unicode));
      }
    }
  }
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::string> draw_timeline(const std::vector<TimelineRow>& rows,
                                       const TimelineLook& look) {
  if (rows.empty()) return {};
  std::size_t label = 1;
  std::size_t duration = 0;
  for (const TimelineRow& row : rows) {
    label = std::max(label, std::min(kMostLabel, cells(row.label)));
    duration = std::max(duration, cells(row.duration));
  }
  const auto note_of = [&](const TimelineRow& row) {
    return without_trailing_spaces(fit(row.duration, duration, look.unicode) + "  " + row.note);
  };
  std::size_t note = 0;
  for (const TimelineRow& row : rows) {
    note = std::max(note, std::min(kMostNote, cells(note_of(row))));
  }
  const std::size_t others = kIndent + label + 1 + 1;
  const std::size_t room = look.width > others ? look.width - others : 0;
  note = std::min(note, room > kLeastBar ? room - kLeastBar : 0);
  const std::size_t columns = std::max(kLeastBar, room - note);
  const Scale scale = scale_of(rows, look.now, columns);
  const Signs& signs = look.unicode ? kUnicode : kAscii;
  const std::string indent(kIndent, ' ');

  std::vector<std::string> lines;
  for (const TimelineRow& row : rows) {
    lines.push_back(without_trailing_spaces(indent + fit(row.label, label, look.unicode) + " " +
                                            bar_of(row, scale, look.now, columns, signs) + " " +
                                            cut(note_of(row), note, look.unicode)));
  }
  lines.push_back(indent + std::string(label + 1, ' ') + axis_of(scale, look.now));
  std::vector<std::string> legend;
  add_legend(rows, scale, look, legend);
  lines.insert(lines.end(), legend.begin(), legend.end());
  return lines;
}

}  // namespace holdfast::plugin
