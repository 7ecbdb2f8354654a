// The text of a series program: statements separated by "; ", each a name, operands %i and numbers; and what holds for
// every program, whatever runs it.
#pragma once
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace commodity::series {

constexpr int kMaxInputs = 8;

enum class Result { kFloat, kInt8, kInt16, kInt64 };

struct Words {
  int number;
  std::string text, name, type;  // the type follows `return`
  std::vector<int> operands;
  std::vector<double> attributes;

  void check(bool valid, const char* expected) const {
    STD_TORCH_CHECK(valid, "series_program: statement ", number, " \"", text, "\": ", expected);
  }
  bool has_value() const { return name != "panels" && name != "assign" && name != "return"; }
};

inline double parse_number(const std::string& word, const Words& statement) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  statement.check(error != std::errc::invalid_argument && end == word.data() + word.size(),
                  "expected numbers and operands %i");
  return value;
}

inline int parse_operand(const std::string& word, const Words& statement) {
  const double index = parse_number(word.substr(1), statement);
  statement.check(index >= 0 && index < statement.number && index == std::floor(index),
                  "operands are earlier statements");
  return int(index);
}

inline Words read_statement(int number, const std::string& text) {
  Words statement{number, text, {}, {}, {}, {}};
  for (size_t begin = text.find_first_not_of(' '), end; begin < text.size(); begin = text.find_first_not_of(' ', end)) {
    end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (statement.name.empty())
      statement.name = word;
    else if (word[0] == '%')
      statement.operands.push_back(parse_operand(word, statement));
    else if (statement.name == "return" && statement.type.empty())
      statement.type = word;
    else
      statement.attributes.push_back(parse_number(word, statement));
  }
  return statement;
}

inline Result parse_result(const Words& statement) {
  const std::pair<const char*, Result> results[] = {
      {"float", Result::kFloat}, {"int8", Result::kInt8}, {"int16", Result::kInt16}, {"int64", Result::kInt64}};
  for (const auto& [name, result] : results)
    if (statement.type == name) return result;
  statement.check(false, "the type must be float, int8, int16 or int64");
  return Result::kFloat;
}

inline void check_statement(const std::vector<Words>& earlier, const Words& statement) {
  const std::string& name = statement.name;
  const std::vector<int>& operands = statement.operands;
  const std::vector<double>& attributes = statement.attributes;
  for (int operand : operands) statement.check(earlier[operand].has_value(), "operands must have a value");
  statement.check(earlier.empty() || earlier.back().name != "return", "nothing may follow return");
  statement.check(earlier.empty() == (name == "panels"), "the first statement, and no other, must be panels n");
  if (name == "return") statement.check(!operands.empty() && attributes.empty(), "expected return <type> %a ...");
  if (name == "panels" || name == "input" || name == "constant")
    statement.check(operands.empty() && attributes.size() == 1, "expected one number");
  if (name == "panels" || name == "input")
    statement.check(attributes[0] >= 0 && attributes[0] < kMaxInputs + (name == "panels"), "there are up to 8 inputs");
}

inline std::vector<Words> read_statements(const std::string& text) {
  std::vector<Words> statements;
  for (size_t begin = 0, end; begin < text.size(); begin = text.find_first_not_of("; ", end)) {
    end = std::min(text.find(';', begin), text.size());
    const Words statement = read_statement(int(statements.size()), text.substr(begin, end - begin));
    check_statement(statements, statement);
    statements.push_back(statement);
  }
  STD_TORCH_CHECK(!statements.empty() && statements.back().name == "return",
                  "series_program: the last statement must be return; got \"", text, "\"");
  return statements;
}

}  // namespace commodity::series
