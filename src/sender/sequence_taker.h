// Where the remote's sequences stand, for the centrals (P17): in a numbering step, in front of its changes.
#pragma once

#include "pg/pg.h"

#include "core/record.h"
#include "core/types.h"
#include "pg/error.h"

#include <map>
#include <string>
#include <vector>

namespace onerepl::sender {

/// A step's record is read after its snapshot was taken and stands in front of the changes that the snapshot
/// sees: whatever number B stops at, its sequences are past every value that a row there has. One for each
/// process.
class SequenceTaker {
  public:
    SequenceTaker();

    /// In a numbering step's transaction. Stores a record under `n` if sequences have moved since the last
    /// one that was committed; false: there is none. `changes`: the step numbers changes, and the record
    /// tells how far the sequences may come before they write WAL again; without, sequences are looked at
    /// once a second, and told as they are.
    bool take(Number n, bool changes);
    /// The step of the last `take` was committed.
    void committed();
    /// All are to be told again.
    void forget() {
        recorded_.clear();
        maybe_all_gone_ = true;
    }
    /// `take` threw this; the step was rolled back. It rests a while. Outside of a transaction.
    void failed(const pg::ErrorReport& report);

  private:
    struct Sequence {
        Oid relation;
        std::string schema;
        std::string name;
        std::int64_t increment;
    };
    struct State {
        std::string schema;  // it may be renamed
        std::string name;
        std::int64_t last_value = 0;
        bool is_called = false;
        bool operator==(const State&) const = default;
    };

    void load();
    /// False: nothing is to be told.
    bool check(bool ahead);
    bool is_list_other() const;
    bool have_all_gone();
    void purge();

    std::vector<Sequence> sequences_;
    std::map<Oid, State> recorded_;  // committed
    std::map<Oid, State> moved_;     // in this step
    bool complete_ = false;          // those are all
    bool maybe_all_gone_ = true;     // an earlier process may have told some that are not there any more
    Time checked_ = 0;
    Time purged_ = 0;
    Time rests_until_ = 0;
};

}  // namespace onerepl::sender
