// One post on its way. libcurl calls back from within its C code: no callback may throw, nor call anything of
// PostgreSQL.

#include "http/message.h"
#include "http/transfer.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace onerepl::http {

namespace {

constexpr long buffer_size = 256 * 1024;
// Connections that have been unused for longer are not used again: the server may be about to close them.
constexpr long longest_rest_of_connection = 50;
// While an answer is waited for, which may take long, a host that has vanished shows within 35 s: seconds,
// seconds, probes.
constexpr long probe_after = 15;
constexpr long probe_interval = 5;
constexpr int probe_count = 4;
// What is kept of an answer that is none of ours, to quote its first line.
constexpr std::size_t quoted_bytes = 200;
// Of such an answer no more than this is read.
constexpr std::size_t useless_bytes = 64 * 1024;
constexpr std::size_t longest_cause = 20;
constexpr Time shortest_check_interval = 20 * millisecond;

/// The URL without user and password, for messages.
std::string shown_url(const std::string& url) {
    const auto scheme = url.find("://");
    if (scheme == std::string::npos) return url;
    const auto begin = scheme + 3;
    const auto at = url.substr(0, url.find('/', begin)).rfind('@');
    if (at == std::string::npos || at < begin) return url;
    return url.substr(0, begin) + url.substr(at + 1);
}

bool equals_ignoring_case(std::string_view left, std::string_view right) {
    return left.size() == right.size() && strncasecmp(left.data(), right.data(), left.size()) == 0;
}

std::string seconds_text(Time time) {
    if (time % second == 0) return std::to_string(time / second) + " s";
    return std::to_string(time / millisecond) + " ms";
}

/// The first line of a text, if it can be shown; else nothing.
std::string quotable_line(const Bytes& text) {
    std::string line;
    for (std::uint8_t byte : text) {
        if (byte == '\r' || byte == '\n') break;
        if (byte < 0x20 || byte > 0x7e) return {};
        line.push_back(static_cast<char>(byte));
    }
    return line;
}

long number(CURL* easy, CURLINFO which) {
    long value = 0;
    curl_easy_getinfo(easy, which, &value);
    return value;
}

curl_off_t count(CURL* easy, CURLINFO which) {
    curl_off_t value = 0;
    curl_easy_getinfo(easy, which, &value);
    return value;
}

int on_socket_opened(void*, curl_socket_t socket, curlsocktype) noexcept {
    // A command that the worker starts must not inherit it.
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probe_count, sizeof probe_count);
    return CURL_SOCKOPT_OK;
}

}  // namespace

HeaderLines::~HeaderLines() {
    curl_slist_free_all(list_);
}

void HeaderLines::add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list_ = longer;
}

// ---- options ----

Transfer::Transfer(Post post, const ClientConfig& config, const HeaderLines& headers, void* easy, Time now)
    : post_(std::move(post)),
      config_(config),
      easy_(easy),
      started_(now),
      last_progress_(now),
      next_check_(now + std::min(post_.stall_timeout, post_.answer_timeout) / 4) {
    static_assert(sizeof error_buffer_ >= CURL_ERROR_SIZE);
    set_general_options(config, headers);
    set_body_options();
    set_limits();
}

void Transfer::set_general_options(const ClientConfig& config, const HeaderLines& headers) {
    curl_easy_setopt(easy_, CURLOPT_URL, post_.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(easy_, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy_, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPIDLE, probe_after);
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPINTVL, probe_interval);
    curl_easy_setopt(easy_, CURLOPT_MAXAGE_CONN, longest_rest_of_connection);
    curl_easy_setopt(easy_, CURLOPT_USERAGENT, config.user_agent.c_str());
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers.list());
    curl_easy_setopt(easy_, CURLOPT_SOCKOPTFUNCTION, &on_socket_opened);
    curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_buffer_.data());
    curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
#if LIBCURL_VERSION_NUM >= 0x075700
    // A cancelled transfer does not wait for its resolver thread: it may hang for as long as the name server
    // does.
    curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);
#endif
}

void Transfer::set_body_options() {
    curl_easy_setopt(easy_, CURLOPT_POST, 1L);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post_.body.size()));
    // Not copied by libcurl: it stays where it is until the transfer ends.
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, reinterpret_cast<const char*>(post_.body.data()));
    curl_easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE, buffer_size);
    curl_easy_setopt(easy_, CURLOPT_BUFFERSIZE, buffer_size);
    curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &Transfer::on_field);
    curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &Transfer::on_answer);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
}

void Transfer::set_limits() {
    const Time connect_milliseconds = std::max<Time>(post_.connect_timeout / millisecond, 1);
    curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect_milliseconds));
    curl_easy_setopt(easy_, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(post_.max_answer));
}

// ---- the answer ----

std::size_t Transfer::on_answer(char* data, std::size_t, std::size_t size, void* context) noexcept {
    auto& self = *static_cast<Transfer*>(context);
    try {
        return self.take_answer({data, size}) ? size : 0;
    } catch (const std::bad_alloc&) {
        self.own_error_ = "out of memory";  // short enough to need none
        return 0;
    }
}

std::size_t Transfer::on_field(char* data, std::size_t, std::size_t size, void* context) noexcept {
    try {
        static_cast<Transfer*>(context)->take_field({data, size});
    } catch (const std::bad_alloc&) {
        return 0;
    }
    return size;
}

/// A line of the answer's head; only what can be shown is taken from it.
void Transfer::take_field(std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || config_.cause_field.empty()) return;
    if (!equals_ignoring_case(line.substr(0, colon), config_.cause_field)) return;
    std::string value;
    for (const char c : line.substr(colon + 1)) {
        if (c == ' ' || c == '\r' || c == '\n') continue;
        if (!isalnum(static_cast<unsigned char>(c)) || value.size() >= longest_cause) return;
        value.push_back(c);
    }
    cause_ = value;
}

void Transfer::begin_answer() {
    answer_begun_ = true;
    is_ours_ = number(easy_, CURLINFO_RESPONSE_CODE) == 200 &&
               equals_ignoring_case(content_type(), config_.content_type);
    const curl_off_t announced = count(easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    if (is_ours_ && announced > 0)
        answer_.reserve(std::min({static_cast<std::size_t>(announced), post_.max_answer, reserved_at_once}));
}

bool Transfer::take_answer(std::string_view piece) {
    if (!answer_begun_) begin_answer();
    if (!is_ours_) {
        useless_ += piece.size();
        piece = piece.substr(0, quoted_bytes - std::min(quoted_bytes, answer_.size()));
        answer_.insert(answer_.end(), piece.begin(), piece.end());
        return useless_ <= useless_bytes;
    }
    if (answer_.size() + piece.size() > post_.max_answer) {
        own_error_ = "answer is larger than " + std::to_string(post_.max_answer) + " bytes";
        return false;
    }
    const ByteView bytes = view(piece);
    answer_.insert(answer_.end(), bytes.begin(), bytes.end());
    return true;
}

std::string_view Transfer::content_type() const {
    const char* value = nullptr;
    curl_easy_getinfo(easy_, CURLINFO_CONTENT_TYPE, &value);
    return value == nullptr ? std::string_view{} : media_type(value);
}

// ---- progress ----

/// libcurl's low-speed limit would also count the time in which the central works on the body, which may be
/// long: so progress is watched here, with a limit for each of sending, waiting and receiving.
bool Transfer::check_progress(Time now) {
    const curl_off_t sent = count(easy_, CURLINFO_SIZE_UPLOAD_T);
    const curl_off_t received = count(easy_, CURLINFO_SIZE_DOWNLOAD_T);
    const bool connecting = count(easy_, CURLINFO_PRETRANSFER_TIME_T) == 0;  // has its own limit, in libcurl
    if (connecting || sent != sent_ || received != received_) last_progress_ = now;
    sent_ = sent;
    received_ = received;
    const bool all_sent = sent >= static_cast<curl_off_t>(post_.body.size());
    const bool waiting = all_sent && received == 0;
    const Time limit = waiting ? post_.answer_timeout : post_.stall_timeout;
    const Time stood = now - last_progress_;
    // Often enough to notice progress, and exactly when the limit is over.
    const Time interval = std::min(post_.stall_timeout / 4, limit - stood);
    next_check_ = now + std::max(interval, shortest_check_interval);
    if (stood < limit) return true;
    const char* what = waiting    ? "no answer for "
                       : all_sent ? "stalled while receiving for "
                                  : "stalled while sending for ";
    own_error_ = what + seconds_text(limit);
    in_silence_ = all_sent;
    return false;
}

// ---- the end ----

Completion Transfer::give_up(Time now) {
    return finish(CURLE_OPERATION_TIMEDOUT, now);
}

Completion Transfer::finish(int curl_result, Time now) {
    Completion completion;
    completion.id = post_.id;
    completion.duration = now - started_;
    completion.status = static_cast<int>(number(easy_, CURLINFO_RESPONSE_CODE));
    completion.retry_after =
        static_cast<int>(std::clamp<curl_off_t>(count(easy_, CURLINFO_RETRY_AFTER), 0, 24 * 3600));
    completion.answered = curl_result == CURLE_OK && is_ours_ && !answer_.empty();
    if (completion.answered) {
        completion.answer = std::move(answer_);
    } else {
        completion.error = describe(curl_result, completion.status);
        completion.in_silence = in_silence_;
        completion.cause = std::move(cause_);
    }
    return completion;
}

std::string Transfer::describe(int curl_result, int status) const {
    if (!own_error_.empty()) return own_error_ + " from " + shown_url(post_.url);
    // Also when libcurl failed: many a server answers 413 and hangs up before it has read all.
    const bool is_answer_of_another = status != 0 && (status != 200 || (answer_begun_ && !is_ours_));
    if (curl_result == CURLE_OK || is_answer_of_another) return describe_answer(status);
    return describe_failure(curl_result);
}

std::string Transfer::describe_answer(int status) const {
    const std::string from = " from " + shown_url(post_.url);
    const std::string_view type = content_type();
    if (status != 200) {
        const std::string line = equals_ignoring_case(type, "text/plain") ? quotable_line(answer_) : "";
        return "HTTP status " + std::to_string(status) + from + (line.empty() ? "" : ": " + line);
    }
    if (equals_ignoring_case(type, config_.content_type)) return "empty answer" + from;
    const std::string shown = quotable_line(Bytes(type.begin(), type.end()));
    return (shown.empty() ? "answer without a content type" : "answer of content type " + shown) + from;
}

std::string Transfer::describe_failure(int curl_result) const {
    const std::string to = shown_url(post_.url);
    const long system_error = number(easy_, CURLINFO_OS_ERRNO);
    const char* text = curl_easy_strerror(static_cast<CURLcode>(curl_result));
    if (error_buffer_[0] != '\0') text = error_buffer_.data();
    switch (curl_result) {
        case CURLE_COULDNT_CONNECT:
            if (system_error != 0) text = std::strerror(static_cast<int>(system_error));
            return "could not connect to " + to + ": " + text;
        case CURLE_COULDNT_RESOLVE_HOST:
            return "could not resolve the host name of " + to;
        case CURLE_OPERATION_TIMEDOUT:
            return "could not connect to " + to + " in time";
        case CURLE_GOT_NOTHING:
            return "connection closed without an answer by " + to;
        case CURLE_FILESIZE_EXCEEDED:
            return "answer is larger than " + std::to_string(post_.max_answer) + " bytes from " + to;
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR:
            return "connection lost to " + to + ": " + text;
        case CURLE_PARTIAL_FILE:
            return "connection closed within the answer from " + to;
        default:
            return "transfer to " + to + " failed: " + text;
    }
}

}  // namespace onerepl::http
