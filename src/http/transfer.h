// One post on its way: libcurl's easy handle, what comes back, and the words for what went wrong. Private to
// the client.
#pragma once

#include "http/client.h"

#include <array>
#include <string>
#include <string_view>

struct curl_slist;

namespace onerepl::http {

/// libcurl's list of header lines.
class HeaderLines {
  public:
    HeaderLines() = default;
    ~HeaderLines();
    HeaderLines(const HeaderLines&) = delete;
    HeaderLines& operator=(const HeaderLines&) = delete;
    void add(const std::string& line);
    curl_slist* list() const { return list_; }

  private:
    curl_slist* list_ = nullptr;
};

class Transfer {
  public:
    /// `easy` is libcurl's easy handle, new or reset; the owner takes it back at the end. `config` and
    /// `headers` must outlive the transfer.
    Transfer(Post post, const ClientConfig& config, const HeaderLines& headers, void* easy, Time now);
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    void* easy() const { return easy_; }
    /// When check_progress() is due.
    Time next_check() const { return next_check_; }
    /// False when the transfer stands still for longer than it may; it is then to be finished as given up.
    bool check_progress(Time now);
    /// How it ended. `curl_result` is libcurl's CURLcode.
    Completion finish(int curl_result, Time now);
    /// It was given up because of check_progress().
    Completion give_up(Time now);

  private:
    void set_general_options(const ClientConfig& config, const HeaderLines& headers);
    void set_body_options();
    void set_limits();

    static std::size_t on_field(char* data, std::size_t, std::size_t size, void* context) noexcept;
    void take_field(std::string_view line);
    static std::size_t on_answer(char* data, std::size_t, std::size_t size, void* context) noexcept;
    void begin_answer();
    bool take_answer(std::string_view piece);

    std::string describe(int curl_result, int status) const;
    std::string describe_answer(int status) const;
    std::string describe_failure(int curl_result) const;
    std::string_view content_type() const;

    Post post_;
    const ClientConfig& config_;
    void* easy_;
    std::array<char, 256> error_buffer_{};  // CURL_ERROR_SIZE
    Bytes answer_;
    bool answer_begun_ = false;
    bool is_ours_ = false;     // 200 and our content type
    std::size_t useless_ = 0;  // bytes of an answer that is not
    std::string own_error_;    // why we made libcurl stop
    bool in_silence_ = false;
    std::string cause_;

    Time started_;
    Time last_progress_;
    Time next_check_;
    std::int64_t sent_ = 0;
    std::int64_t received_ = 0;
};

}  // namespace onerepl::http
