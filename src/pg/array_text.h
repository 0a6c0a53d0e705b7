// Lists of strings as PostgreSQL's text of a text[].
#pragma once

#include <string>
#include <vector>

namespace onerepl::pg {

/// As {"a","b"}: to be given as a parameter and cast to text[].
inline std::string array_text(const std::vector<std::string>& values) {
    std::string text = "{";
    for (const std::string& value : values) {
        text += text.size() > 1 ? ",\"" : "\"";
        for (const char c : value) {
            if (c == '"' || c == '\\') text += '\\';
            text += c;
        }
        text += '"';
    }
    return text + "}";
}

}  // namespace onerepl::pg
