// Which process of a remote speaks (P9).
#include "core/speakers.h"

#include <algorithm>

namespace onerepl {

bool speak_in_turn(Speakers& speakers, const Nonce& process, std::uint64_t heard, std::uint64_t fresh) {
    if (is_zero(process) || process == speakers.current) return false;
    if (is_zero(speakers.current)) {
        speakers.current = process;
        speakers.hearing = fresh;
        return false;
    }
    if (heard != speakers.hearing) return false;
    if (std::find(std::begin(speakers.former), std::end(speakers.former), process) !=
        std::end(speakers.former))
        return true;
    std::move_backward(std::begin(speakers.former), std::end(speakers.former) - 1, std::end(speakers.former));
    speakers.former[0] = speakers.current;
    speakers.current = process;
    speakers.hearing = fresh;
    return false;
}

}  // namespace onerepl
