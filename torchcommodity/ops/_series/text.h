// The text of a series program: statements separated by "; ", each a name, operands %i and numbers.
#pragma once
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace commodity::series {

struct Words {
  int number;
  std::string text, name, type;  // the type follows `return`
  std::vector<int> operands;
  std::vector<double> attributes;

  void check(bool valid, const char* expected) const {
    STD_TORCH_CHECK(valid, "series_program: statement ", number, " \"", text, "\": ", expected);
  }
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

inline std::vector<Words> read_statements(const std::string& text) {
  std::vector<Words> statements;
  for (size_t begin = 0, end; begin < text.size(); begin = text.find_first_not_of("; ", end)) {
    end = std::min(text.find(';', begin), text.size());
    statements.push_back(read_statement(int(statements.size()), text.substr(begin, end - begin)));
  }
  return statements;
}

}  // namespace commodity::series
