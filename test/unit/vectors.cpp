// Reads the vector files.
#include "vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace onerepl::test {

std::string Section::text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
        ADD_FAILURE() << "no \"" << name << "\" in [" << title << "]";
        return {};
    }
    return found->second.front();
}

std::vector<std::string> Section::all(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Bytes Section::bytes(const std::string& name) const {
    return from_hex(text(name));
}

std::array<std::uint8_t, 16> Section::id(const std::string& name) const {
    return id_from_hex(text(name));
}

std::vector<Section> read_vectors(const std::string& file) {
    std::ifstream in(std::string(ONEREPL_VECTORS) + "/" + file);
    std::vector<Section> sections;
    std::string line;
    std::string name;
    while (std::getline(in, line)) {
        if (line.empty() || line.front() == '#') continue;
        if (line.front() == '[') {
            sections.emplace_back().title = line.substr(1, line.size() - 2);
        } else if (line.front() == ' ') {
            sections.back().extend(name, line.substr(4));
        } else {
            name = line.substr(0, line.find(" ="));
            const std::size_t value = name.size() + 3;
            sections.back().add(name, value < line.size() ? line.substr(value) : "");
        }
    }
    if (sections.empty()) ADD_FAILURE() << "no vectors in " << file;
    return sections;
}

Bytes from_hex(std::string_view digits) {
    Bytes bytes;
    for (std::size_t at = 0; at + 1 < digits.size(); at += 2)
        bytes.push_back(static_cast<std::uint8_t>(std::stoi(std::string(digits.substr(at, 2)), nullptr, 16)));
    return bytes;
}

std::array<std::uint8_t, 16> id_from_hex(std::string_view digits) {
    std::array<std::uint8_t, 16> id{};
    const Bytes bytes = from_hex(digits);
    EXPECT_EQ(bytes.size(), id.size());
    std::copy_n(bytes.begin(), std::min(bytes.size(), id.size()), id.begin());
    return id;
}

std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> all;
    for (std::string word; in >> word;) all.push_back(word);
    return all;
}

Range range_from(const std::string& text) {
    const std::size_t dots = text.find("..");
    return {std::stoull(text.substr(0, dots)), std::stoull(text.substr(dots + 2))};
}

Batch batch_from(const std::string& text) {
    const auto fields = words(text);
    return {range_from(fields.at(0)), id_from_hex(fields.at(1)), id_from_hex(fields.at(2))};
}

}  // namespace onerepl::test
