#include "plugin/verbs/top.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plugin/base/job_text.h"
#include "plugin/base/rank.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/moments.h"

namespace holdfast::plugin {
namespace {

struct Row {
  JobText job;
  Rank rank = Rank::kRunning;
  std::optional<Time> since;
};

Rank rank_of(const Json& json, const JobText& job, Time now) {
  RankOf of{job.phase, holds(json, "Stalled"), "", {}};
  if (job.waiting) {
    of.waiting = job.waiting->reason;
    of.deadline = job.waiting->deadline;
  }
  return rank_of(of, now);
}

Row row_of(const Json& json, Time now) {
  Row row;
  row.job = read_job(json);
  row.rank = rank_of(json, row.job, now);
  row.since = row.job.waiting ? row.job.waiting->since : row.job.completed;
  return row;
}

// Among equals, what has waited longest; of ended jobs, what has ended last.
bool is_before(const Row& a, const Row& b) {
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.since != b.since) {
    if (!a.since || !b.since) return a.since.has_value();
    return a.job.has_ended() ? *a.since > *b.since : *a.since < *b.since;
  }
  return std::tie(a.job.namespace_, a.job.name) < std::tie(b.job.namespace_, b.job.name);
}

struct Column {
  std::string title;
  std::size_t least = 0;  // width that it can shrink to; 0: it does not shrink
  std::vector<std::string> texts = {};
  std::size_t width = 0;

  void add(std::string text) {
    width = std::max({width, cells(text), cells(title)});
    texts.push_back(std::move(text));
  }
};

std::string since_text(const std::optional<Time>& time, Time now) {
  return time ? span_text(now - *time) : "-";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string place_of(const JobText& job) {
  if (job.runs.empty()) return "-";
  const RunText& run = job.runs.front();
  return or_dash(run.worker.empty() ? run.node : run.worker);
}

std::vector<Column> columns_of(const std::vector<Row>& rows, Time now, const TopLook& look) {
  enum {
    kNamespace,
    kName,
    kPhase,
    kWaiting,
    kSince,
    kOpen,
    kDone,
    kAttempt,
    kAge,
    kPlace,
    kSpent,
    kMessage
  };
  std::vector<Column> columns = {{"NAMESPACE", 6}, {"NAME", 10}, {"PHASE", 7},    {"WAITING", 8},
                                 {"SINCE"},        {"OPEN"},     {"DONE"},        {"ATTEMPT"},
                                 {"AGE"},          {"NODE", 6},  {"FAILED/LOST"}, {"MESSAGE", 8}};
  for (const Row& row : rows) {
    const JobText& job = row.job;
    columns[kNamespace].add(job.namespace_);
    columns[kName].add(job.name);
    columns[kPhase].add(or_dash(job.phase));
    columns[kWaiting].add(job.waiting ? or_dash(job.waiting->reason) : "-");
    columns[kSince].add(since_text(row.since, now));
    columns[kOpen].add(std::to_string(job.open_runs()));
    columns[kDone].add(std::to_string(job.succeeded) + "/" + std::to_string(job.wanted));
    columns[kAttempt].add(std::to_string(job.attempt));
    columns[kAge].add(since_text(job.created, now));
    columns[kPlace].add(place_of(job));
    columns[kSpent].add(std::to_string(job.failures) + "/" + std::to_string(job.disruptions));
    columns[kMessage].add(job.waiting ? job.waiting->message : "");
  }
  if (!look.wide) columns.erase(columns.begin() + kPlace, columns.end());
  if (!look.with_namespace) columns.erase(columns.begin());
  return columns;
}

constexpr std::size_t kGap = 2;

std::size_t width_of(const std::vector<Column>& columns) {
  std::size_t width = 0;
  for (const Column& column : columns) width += column.width + kGap;
  return width - kGap;
}

// The column that has most to give becomes narrower, one cell at a time.
void shrink(std::vector<Column>& columns, std::size_t width) {
  while (width_of(columns) > width) {
    Column* widest = nullptr;
    for (Column& column : columns) {
      const bool can = column.least > 0 && column.width > column.least;
      if (can && (!widest || column.width > widest->width)) widest = &column;
    }
    if (!widest) return;
    --widest->width;
  }
}

std::string line_of(const std::vector<Column>& columns, std::size_t row, const TopLook& look) {
  std::string line;
  for (const Column& column : columns) {
    const std::string& text = row == 0 ? column.title : column.texts[row - 1];
    line += fit(text, column.width, look.unicode) + std::string(kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return look.live ? cut(line, look.width, look.unicode) : line;
}

// "12 jobs: 1 needs a person, 3 Backoff, 8 Running".
std::string summary_of(const std::vector<Row>& rows) {
  std::size_t stalled = 0;
  std::map<std::string, std::size_t> phases;
  for (const Row& row : rows) {
    if (row.rank == Rank::kStalled) ++stalled;
    ++phases[row.job.phase.empty() ? "new" : row.job.phase];
  }
  std::string text = std::to_string(rows.size()) + (rows.size() == 1 ? " job" : " jobs");
  std::string list;
  if (stalled > 0) {
    list += ", " + std::to_string(stalled) + (stalled == 1 ? " needs a person" : " need a person");
  }
  for (const auto& [phase, count] : phases) list += ", " + std::to_string(count) + " " + phase;
  return list.empty() ? text : text + ": " + list.substr(2);
}

}  // namespace

std::vector<std::string> top_table(const std::vector<const Json*>& jobs, Time now,
                                   const TopLook& look) {
  std::vector<Row> rows;
  rows.reserve(jobs.size());
  for (const Json* const job : jobs) rows.push_back(row_of(*job, now));
  std::sort(rows.begin(), rows.end(), is_before);
  std::vector<std::string> lines;
  std::size_t more = 0;
  if (look.live) {
    lines.push_back(cut(summary_of(rows), look.width, look.unicode));
    // The summary, the titles, and the line about the rest.
    const std::size_t room = look.height > 3 ? look.height - 3 : 1;
    if (rows.size() > room) {
      more = rows.size() - room;
      rows.resize(room);
    }
  }
  if (rows.empty()) return lines;
  std::vector<Column> columns = columns_of(rows, now, look);
  if (look.live) shrink(columns, look.width);
  for (std::size_t row = 0; row <= rows.size(); ++row) lines.push_back(line_of(columns, row, look));
  if (more > 0) lines.push_back("and " + std::to_string(more) + " more, which are better off");
  return lines;
}

}  // namespace holdfast::plugin
