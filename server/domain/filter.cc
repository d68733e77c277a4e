#include "server/domain/filter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/base/strings.h"
#include "server/domain/filter_values.h"
#include "server/domain/utf8.h"
#include "server/domain/violations.h"

namespace normlab::domain {
namespace {

constexpr size_t kShownText = 40;  // bytes of the filter in a message

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsOperator(char c) { return c == '=' || c == '<' || c == '>' || c == ':'; }

bool Orders(FilterOperator op) {
  return op == FilterOperator::kLess || op == FilterOperator::kLessEqual ||
         op == FilterOperator::kGreater || op == FilterOperator::kGreaterEqual;
}

// "loss" as part of a message: short, and never cut inside a character.
std::string Shown(std::string_view text) {
  if (text.size() <= kShownText) return StrCat("\"", text, "\"");
  size_t end = kShownText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return StrCat("\"", text.substr(0, end), "...\"");
}

// By recursive descent:
//   expression = factor { ["AND"] factor }      factor = term { "OR" term }
//   term = ("NOT" | "-") term | "(" expression ")" | field operator value | word | quoted
// OR binds tighter than AND, as in AIP-160.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Filter> Parse() {
    if (text_.size() > kLongestFilter) {
      return InvalidFields({{"filter", StrCat("is ", text_.size(), " bytes long; at most ",
                                              kLongestFilter, " are read")}});
    }
    CheckCharacters();
    SkipSpace();
    Filter filter;
    if (ok() && !AtEnd()) filter = Expression();
    if (ok() && !AtEnd()) Fail(at_, "there is a \")\" too many");
    if (!ok()) return InvalidFields({{"filter", fault_}});
    return filter;
  }

 private:
  bool ok() const { return fault_.empty(); }
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void SkipSpace() {
    while (!AtEnd() && IsSpace(text_[at_])) ++at_;
  }

  // Only the first fault is told. The place is in characters, as people count.
  void Fail(size_t place, std::string_view what) {
    if (!ok()) return;
    const std::string_view before = text_.substr(0, place);
    const auto characters = std::count_if(before.begin(), before.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    fault_ = StrCat("at character ", characters + 1, ": ", what);
  }

  void CheckCharacters() {
    std::string spaced(text_);
    std::replace_if(spaced.begin(), spaced.end(), IsSpace, ' ');
    const size_t control = FindControl(spaced);
    if (!IsUtf8(text_)) {
      Fail(0, "the filter is not UTF-8");
    } else if (control != std::string::npos) {
      Fail(control, "a control character; remove it");
    }
  }

  // Whether the word `keyword` stands here by itself.
  bool AtKeyword(std::string_view keyword) const {
    if (text_.substr(at_, keyword.size()) != keyword) return false;
    const char next = Peek(keyword.size());
    return next == '\0' || IsSpace(next) || next == '(' || next == ')';
  }
  bool TakeKeyword(std::string_view keyword) {
    if (!AtKeyword(keyword)) return false;
    at_ += keyword.size();
    SkipSpace();
    return true;
  }

  Filter Combined(Filter::Kind kind, std::vector<Filter> terms) {
    if (terms.size() == 1) return std::move(terms.front());
    Filter filter;
    filter.kind = kind;
    filter.terms = std::move(terms);
    return filter;
  }

  Filter Expression() {
    std::vector<Filter> factors;
    do {
      factors.push_back(Factor());
      const size_t place = at_;
      if (TakeKeyword("AND") && (AtEnd() || Peek() == ')')) Fail(place, "AND has nothing after it");
    } while (ok() && !AtEnd() && Peek() != ')');
    return Combined(Filter::Kind::kAnd, std::move(factors));
  }

  Filter Factor() {
    std::vector<Filter> terms;
    size_t place = at_;
    do {
      if (!terms.empty() && (AtEnd() || Peek() == ')')) Fail(place, "OR has nothing after it");
      if (!ok()) break;
      terms.push_back(Term());
      place = at_;
    } while (ok() && TakeKeyword("OR"));
    return Combined(Filter::Kind::kOr, std::move(terms));
  }

  Filter Term() {
    if (++depth_ > kDeepestFilter) {
      Fail(at_, StrCat("more than ", kDeepestFilter, " parentheses and NOTs inside each other"));
    }
    Filter filter;
    const size_t place = at_;
    const bool minus = Peek() == '-' && Peek(1) != '\0' && !IsSpace(Peek(1)) && Peek(1) != ')';
    if (!ok()) {
      // Said already.
    } else if (AtKeyword("AND") || AtKeyword("OR")) {
      Fail(place, StrCat(AtKeyword("OR") ? "OR" : "AND",
                         " has nothing before it; put quotes around it if it is a text"));
    } else if (minus || AtKeyword("NOT")) {
      filter = Negation(minus);
    } else if (Peek() == '(') {
      filter = Group();
    } else {
      filter = Leaf();
    }
    --depth_;
    SkipSpace();
    return filter;
  }

  Filter Negation(bool minus) {
    const size_t place = at_;
    at_ += minus ? 1 : 3;
    SkipSpace();
    if (AtEnd() || Peek() == ')') Fail(place, "NOT has nothing after it");
    Filter filter;
    filter.kind = Filter::Kind::kNot;
    if (ok()) filter.terms.push_back(Term());
    return filter;
  }

  Filter Group() {
    const size_t place = at_++;
    SkipSpace();
    if (Peek() == ')') Fail(place, "there is nothing between the parentheses");
    if (AtEnd()) Fail(place, "this \"(\" has no \")\"");
    Filter filter;
    if (ok()) filter = Expression();
    if (ok() && Peek() != ')') Fail(place, "this \"(\" has no \")\"");
    if (ok()) {
      ++at_;
      CheckApart("\")\"");
    }
    return filter;
  }

  // A comparison or a search.
  Filter Leaf() {
    if (++terms_ > kMostTerms) Fail(at_, StrCat("more than ", kMostTerms, " conditions"));
    const size_t place = at_;
    Filter filter;
    if (Peek() == '"' || Peek() == '\'') {
      filter.kind = Filter::Kind::kSearch;
      filter.value.text = Quoted();
      return filter;
    }
    const std::string_view word = Word();
    const size_t end = at_;
    SkipSpace();
    if (AtOperator()) {
      if (word.empty()) {
        Fail(place, StrCat("\"", text_.substr(at_, 1),
                           "\" has no field before it; put quotes around a text to search for"));
      }
      return Comparison(word, place);
    }
    at_ = end;
    filter.kind = Filter::Kind::kSearch;
    filter.value.text = std::string(word);
    return filter;
  }

  bool AtOperator() const { return IsOperator(Peek()) || (Peek() == '!' && Peek(1) == '='); }

  // Up to a space, a parenthesis or an operator.
  std::string_view Word() {
    const size_t begin = at_;
    while (!AtEnd() && !IsSpace(Peek()) && !AtOperator() && Peek() != '(' && Peek() != ')') ++at_;
    if (Peek() == '(') Fail(at_, "put a space before \"(\", or quotes around the text");
    return text_.substr(begin, at_ - begin);
  }

  FilterOperator Operator() {
    const char first = Peek();
    const bool equal = Peek(1) == '=';
    at_ += first == '!' || ((first == '<' || first == '>') && equal) ? 2 : 1;
    switch (first) {
      case '!':
        return FilterOperator::kNotEqual;
      case '<':
        return equal ? FilterOperator::kLessEqual : FilterOperator::kLess;
      case '>':
        return equal ? FilterOperator::kGreaterEqual : FilterOperator::kGreater;
      case ':':
        return FilterOperator::kHas;
      default:
        return FilterOperator::kEqual;
    }
  }

  // After the quote: a backslash takes the next character as it is.
  std::string Quoted() {
    const size_t place = at_;
    const char quote = text_[at_++];
    std::string text;
    while (!AtEnd() && Peek() != quote) {
      if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      text += text_[at_++];
    }
    if (AtEnd()) {
      Fail(place, "this quote is not closed");
      return text;
    }
    ++at_;
    CheckApart("the closing quote");
    return text;
  }

  // What stands behind something closed must be apart from it, so that "a"b is not two conditions.
  void CheckApart(std::string_view what) {
    if (!AtEnd() && !IsSpace(Peek()) && Peek() != ')') {
      Fail(at_, StrCat("put a space after ", what));
    }
  }

  Filter Comparison(std::string_view name, size_t place) {
    Filter filter;
    filter.kind = Filter::Kind::kComparison;
    filter.field = FindFilterField(name);
    if (filter.field == nullptr) {
      Fail(place,
           StrCat(NoSuchField(name),
                  name.size() > kShownText ? "" : "; put quotes around a text to search for"));
      return filter;
    }
    const size_t operator_place = at_;
    filter.op = Operator();
    const std::string_view written = text_.substr(operator_place, at_ - operator_place);
    SkipSpace();
    const size_t value_place = at_;
    const bool quoted = Peek() == '"' || Peek() == '\'';
    const std::string value = quoted ? Quoted() : std::string(Bare());
    if (!quoted && value.empty()) Fail(operator_place, StrCat(written, " has no value after it"));
    if (ok()) ReadValue(filter, value, quoted, value_place);
    return filter;
  }

  // A value without quotes: up to a space or a parenthesis.
  std::string_view Bare() {
    const size_t begin = at_;
    while (!AtEnd() && !IsSpace(Peek()) && Peek() != '(' && Peek() != ')') ++at_;
    if (Peek() == '(') Fail(at_, "put quotes around a value that has parentheses");
    return text_.substr(begin, at_ - begin);
  }

  void ReadValue(Filter& filter, const std::string& text, bool quoted, size_t place) {
    const FilterField& field = *filter.field;
    if (!quoted && text == "*") {
      filter.value.any = true;
      if (filter.op != FilterOperator::kHas) {
        Fail(place, StrCat("* stands for any value only after \":\"; write ", field.name, ":*"));
      }
      return;
    }
    const std::string fault = ReadFilterValue(field, text, filter.value);
    if (!fault.empty()) return Fail(place, StrCat(Shown(text), " ", fault));
    const bool ordered = field.type == FilterType::kNumber || field.type == FilterType::kTime;
    if (!ordered && Orders(filter.op)) {
      return Fail(place, StrCat(field.name, " has no order; use =, != or :"));
    }
    if (std::isnan(filter.value.number) && Orders(filter.op)) {
      return Fail(place, "NaN is neither smaller nor larger than anything; use = or !=");
    }
    if (filter.op == FilterOperator::kHas && field.type != FilterType::kText) {
      filter.op = FilterOperator::kEqual;
    }
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  int terms_ = 0;
  std::string fault_;
};

}  // namespace

absl::StatusOr<Filter> ParseFilter(std::string_view text) { return Parser(text).Parse(); }

bool Mentions(const Filter& filter, std::string_view field) {
  if (filter.kind == Filter::Kind::kComparison && filter.field->name == field) return true;
  return std::any_of(filter.terms.begin(), filter.terms.end(),
                     [field](const Filter& term) { return Mentions(term, field); });
}

}  // namespace normlab::domain
