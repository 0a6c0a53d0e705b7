// The remote's side of refreshes (Part III): chunks of tables get their numbers in the numbering step whose
// snapshot they are read in, after all changes that this snapshot sees. So what a chunk holds relative to
// the changes round it is exact, and everything else is the protocol's.
#pragma once

#include "log/numbering.h"
#include "refresh/chunk_content.h"

#include <map>
#include <memory>
#include <optional>

namespace onerepl::refresh {

class ChunkMaker : public log::NumberingGuest {
  public:
    bool is_expected() const override;
    /// Although nothing was invalidated: the next numbering step looks.
    void check_again() { check_ = true; }
    bool begin() override;
    std::vector<log::NumberedTransaction> before(Number first, bool changes) override;
    std::vector<log::NumberedTransaction> after(Number first) override;
    void rolled_back() override;
    void failed(const pg::ErrorReport& report) override;

    /// A link's S_a: what waits for the confirmation of chunks may go on.
    void note_confirmed(int link, Number confirmed);
    /// Microseconds until the next numbering step may have something to do here if nothing else happens; 0:
    /// now.
    Time time_to_wait() const;

  private:
    /// A row of onerepl.refresh that is not at its end.
    struct Work : Task {
        Oid relation = InvalidOid;
        bool verify = false;
        bool throttled = false;  // by a speed that the administrator gave
        bool cancelling = false;
        bool opened = false;
        bool runs = false;              // not paused
        Time due = 0;                   // microseconds until its next step
        std::uint64_t description = 0;  // that its table had last; 0: never read
        std::uint64_t filter = 0;       // of the chunks made before; 0: none
        std::unique_ptr<CopiedTable> table;
    };
    void load();
    void load_chunks_in_flight();
    void settle();
    void plan(Work& work, bool& link_has_one);
    bool read_table(Work& work);
    bool has_kept_shape(const Work& work) const;
    void begin_anew(Work& work);
    void lose_table(Work& work);
    log::NumberedTransaction mark(Work& work, Number n);
    void note_opened(const Work& work, Number n);
    void note_cancelled(const Work& work, Number n);
    static Time note_made(const Work& work, const Made& made, Number first, Number last);
    void wait_at_most(Time wait);

    log::Layouts layouts_;
    std::vector<Work> work_;
    /// Chunks of a link that are not confirmed.
    struct InFlight {
        std::uint64_t count = 0;
        Number oldest = 0;
    };
    std::map<int, InFlight> in_flight_;  // by link
    std::vector<Work*> marks_;
    std::vector<Work*> copies_;
    std::uint64_t current_ = 0;  // the refresh at work, for `failed`
    Time due_at_ = 0;            // when there may be something to do next
    bool busy_ = false;          // a refresh is not at its end
    bool check_ = true;
    std::uint32_t generation_ = 0;  // shared::sender_generation when it looked
};

}  // namespace onerepl::refresh
