#include "plugin/explain/moments_text.h"
#include "plugin/base/rank.h"

#include "plugin/terminal/moments.h"

namespace holdfast::plugin {
namespace {

// What is later than an operator that lives is not called being done.
std::string due_text(Time time, Time now) {
  const std::string text = moment_text(time, now);
  if (time > now) return text;
  return "due " + text + (now - time <= kGrace ? ", being done now" : "");
}

std::string rendered(const Text::Piece& piece, Time now) {
  if (!piece.moment) return piece.words;
  switch (piece.form) {
    case MomentForm::kMoment:
      return moment_text(*piece.moment, now);
    case MomentForm::kDue:
      return due_text(*piece.moment, now);
    case MomentForm::kAgo:
      return span_text(now - *piece.moment) + " ago";
    case MomentForm::kFor:
      return span_text(now - *piece.moment);
    case MomentForm::kClock:
      return clock_text(*piece.moment, now);
  }
  return "";
}

}  // namespace

std::string to_string(MomentForm form) {
  switch (form) {
    case MomentForm::kMoment:
      return "moment";
    case MomentForm::kDue:
      return "due";
    case MomentForm::kAgo:
      return "ago";
    case MomentForm::kFor:
      return "for";
    case MomentForm::kClock:
      return "clock";
  }
  return "";
}

Text::Text(std::string words) {
  if (!words.empty()) pieces_.push_back({std::move(words), std::nullopt, MomentForm::kMoment});
}
Text::Text(std::string_view words) : Text(std::string(words)) {}
Text::Text(const char* words) : Text(std::string(words)) {}

Text& Text::operator+=(const Text& more) {
  for (const Piece& piece : more.pieces_) {
    const bool joins = !piece.moment && !pieces_.empty() && !pieces_.back().moment;
    if (joins) {
      pieces_.back().words += piece.words;
    } else {
      pieces_.push_back(piece);
    }
  }
  return *this;
}

std::string Text::at(Time now) const {
  std::string text;
  for (const Piece& piece : pieces_) text += rendered(piece, now);
  return text;
}

Text Text::with_words(const std::function<std::string(std::string)>& change) const {
  Text changed;
  for (const Piece& piece : pieces_) {
    changed += piece.moment ? Text(*piece.moment, piece.form) : Text(change(piece.words));
  }
  return changed;
}

}  // namespace holdfast::plugin
