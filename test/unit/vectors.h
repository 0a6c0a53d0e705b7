// The test vectors in test/vectors: sections of named values.
#pragma once

#include "core/body.h"

#include <map>

namespace onerepl::test {

/// One section of a vector file. Asking for a value that is not there fails the test and gives an empty one.
class Section {
  public:
    std::string title;

    void add(std::string name, std::string value) { values_[std::move(name)].push_back(std::move(value)); }
    void extend(const std::string& name, std::string_view more) { values_[name].back() += more; }

    bool has(const std::string& name) const { return values_.contains(name); }
    std::string text(const std::string& name) const;
    /// Values that may be repeated.
    std::vector<std::string> all(const std::string& name) const;
    Number number(const std::string& name) const { return std::stoull(text(name)); }
    bool flag(const std::string& name) const { return number(name) != 0; }
    Bytes bytes(const std::string& name) const;
    std::array<std::uint8_t, 16> id(const std::string& name) const;

  private:
    std::map<std::string, std::vector<std::string>> values_;
};

/// All sections of test/vectors/`file`; fails the test if there are none.
std::vector<Section> read_vectors(const std::string& file);

Bytes from_hex(std::string_view digits);
std::array<std::uint8_t, 16> id_from_hex(std::string_view digits);
/// Words between spaces.
std::vector<std::string> words(const std::string& text);
/// "40..44"
Range range_from(const std::string& text);
/// "41..43 before random"
Batch batch_from(const std::string& text);

}  // namespace onerepl::test
