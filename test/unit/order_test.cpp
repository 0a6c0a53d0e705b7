// P4: order inside a transaction. Random nested executions, logged as PostgreSQL fires AFTER ROW triggers,
// must come out in an order that never clashes and ends the same.
#include "core/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace onerepl {
namespace {

/// What a row holds: the key and a second unique value; 0 for the latter is null.
struct Content {
    int key = 0;
    int extra = 0;
    bool operator==(const Content&) const = default;
};

struct Version {
    std::uint32_t block = 0;
    std::uint16_t offset = 0;
    auto operator<=>(const Version&) const = default;
};

/// One logged change, with all that a replay needs.
struct Change {
    std::uint32_t relation = 0;
    bool truncate = false;
    Version old_version, new_version;  // offset 0: none
    Content before, after;
};

/// The tables as B would have them; refuses what a unique index would refuse.
class Replay {
  public:
    using Table = std::map<Version, Content>;

    /// Why the change cannot be made; empty: it was made.
    std::string apply(const Change& change) {
        Table& table = tables_[change.relation];
        if (change.truncate) {
            table.clear();
            return {};
        }
        if (change.old_version.offset != 0) {
            const auto old = table.find(change.old_version);
            if (old == table.end()) return "the old version is not there";
            if (old->second != change.before) return "the old version is another row";
            table.erase(old);
        }
        if (change.new_version.offset == 0) return {};
        for (const auto& [version, content] : table) {
            if (content.key == change.after.key)
                return "key " + std::to_string(content.key) + " is there already";
            if (content.extra != 0 && content.extra == change.after.extra)
                return "extra value is there already";
        }
        if (!table.emplace(change.new_version, change.after).second)
            return "the new version is there already";
        return {};
    }
    std::map<std::uint32_t, Table>& tables() { return tables_; }

  private:
    std::map<std::uint32_t, Table> tables_;
};

/// Executes random statements with triggers and keeps the log.
class Execution {
  public:
    explicit Execution(unsigned seed) : random_(seed) {
        for (std::uint32_t relation = 0; relation < relations; ++relation)
            for (int i = 0; i < 4; ++i) {
                const Content content{pick(values) + 1, pick(values)};
                Change change;
                change.relation = relation;
                change.new_version = new_version(relation);
                change.after = content;
                if (truth_.apply(change).empty()) command_of_[{relation, change.new_version}] = 0;
            }
        begin_ = truth_;
    }

    void run() {
        for (int i = 0; i < 3; ++i) statement(0, nullptr);
    }

    std::vector<OrderRecord> records;
    std::vector<UniqueValue> values_of_records;
    std::vector<Change> changes;

    Replay begin() const { return begin_; }
    Replay end() const { return truth_; }

  private:
    static constexpr std::uint32_t relations = 2;
    static constexpr int values = 6;
    static constexpr int deepest = 3;

    struct Event {
        Change change;
        std::uint32_t command;
    };
    using Events = std::vector<Event>;

    int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
    bool chance(int percent) { return pick(100) < percent; }

    Version new_version(std::uint32_t relation) {
        const std::uint16_t next = ++last_offset_[relation];
        return {next / 10u, static_cast<std::uint16_t>(next % 10 + 1)};
    }

    /// `outer`: its events are put after these instead of fired by itself (a foreign key's cascade); else
    /// null.
    void statement(int depth, Events* outer) {
        if (depth > deepest) return;
        if (chance(5)) return truncate();
        const auto relation = static_cast<std::uint32_t>(pick(relations));
        const std::uint32_t command = ++command_;
        const int kind = pick(4);  // insert, update, delete, merge
        Events own;
        Events& events = outer ? *outer : own;
        ++busy_[relation];
        for (int rows = pick(4); rows >= 0; --rows) {
            if (chance(20)) statement(depth + 1, nullptr);  // BEFORE ROW trigger
            row(relation, command, kind == 3 ? pick(3) : kind, events);
        }
        if (!outer)
            for (std::size_t i = 0; i < own.size(); ++i) fire(depth, own, i);
        --busy_[relation];
    }

    void fire(int depth, Events& events, std::size_t i) {
        log(events[i]);
        --busy_[events[i].change.relation];
        if (chance(15)) statement(depth + 1, &events);  // foreign key's action
        if (chance(25)) statement(depth + 1, nullptr);  // the user's AFTER trigger
    }

    void row(std::uint32_t relation, std::uint32_t command, int operation, Events& events) {
        Change change;
        change.relation = relation;
        if (operation != 0 && !choose_row(command, change)) return;
        if (operation != 2) {
            change.new_version = {0, UINT16_MAX};  // to see whether it would be taken
            change.after = {pick(values) + 1, pick(values)};
            if (operation == 1 && chance(30)) change.after.key = change.before.key;
            if (operation == 1 && chance(30)) change.after.extra = change.before.extra;
            Replay trial = truth_;
            if (!trial.apply(change).empty()) return;
            change.new_version = new_version(relation);
        }
        ASSERT_EQ(truth_.apply(change), "");
        command_of_[{relation, change.new_version}] = command;
        events.push_back({change, command});
        ++busy_[relation];
    }

    /// A row that the command's snapshot sees and nobody has changed since.
    bool choose_row(std::uint32_t command, Change& change) {
        std::vector<std::pair<Version, Content>> candidates;
        for (const auto& [version, content] : truth_.tables()[change.relation])
            if (command_of_[{change.relation, version}] < command) candidates.emplace_back(version, content);
        if (candidates.empty()) return false;
        std::tie(change.old_version, change.before) =
            candidates[static_cast<std::size_t>(pick(static_cast<int>(candidates.size())))];
        return true;
    }

    /// Refused by PostgreSQL while the table is in use.
    void truncate() {
        const auto relation = static_cast<std::uint32_t>(pick(relations));
        if (busy_[relation] > 0) return;
        Change change;
        change.relation = relation;
        change.truncate = true;
        truth_.apply(change);
        last_offset_[relation] = 0;
        std::erase_if(command_of_, [&](const auto& entry) { return entry.first.first == relation; });
        log({change, no_command});
    }

    void log(const Event& event) {
        const Change& change = event.change;
        OrderRecord record;
        record.relation = change.relation & 0xff;
        record.barrier = change.truncate;
        record.command = event.command;
        record.old_block = change.old_version.block;
        record.old_offset = change.old_version.offset;
        record.new_block = change.new_version.block;
        record.new_offset = change.new_version.offset;
        const auto index = static_cast<std::uint32_t>(records.size());
        if (!change.truncate) {
            log_value(index, change, change.before.key, change.after.key, 1);
            log_value(index, change, change.before.extra, change.after.extra, 2);
        }
        records.push_back(record);
        changes.push_back(change);
    }
    void log_value(std::uint32_t index, const Change& change, int before, int after,
                   std::uint64_t constraint) {
        const bool had = change.old_version.offset != 0 && before != 0;
        const bool has = change.new_version.offset != 0 && after != 0;
        if (had && has && before == after) return;
        const auto hash = [&](int value) {
            return constraint << 32 | std::uint64_t{change.relation} << 16 |
                   static_cast<std::uint64_t>(value);
        };
        if (had) values_of_records.push_back({hash(before), index, false});
        if (has) values_of_records.push_back({hash(after), index, true});
    }

    std::mt19937 random_;
    Replay truth_;
    Replay begin_;
    std::map<std::pair<std::uint32_t, Version>, std::uint32_t> command_of_;
    std::map<std::uint32_t, std::uint16_t> last_offset_;
    std::map<std::uint32_t, int> busy_;  // statements under way and events not fired yet
    std::uint32_t command_ = 0;
};

/// Empty if the order replays to what the execution ended with.
std::string replay(const Execution& execution, const std::vector<std::uint32_t>& order) {
    if (order.size() != execution.records.size()) return "records are missing";
    if (std::set<std::uint32_t>(order.begin(), order.end()).size() != order.size())
        return "records are repeated";
    Replay central = execution.begin();
    for (std::uint32_t i : order)
        if (std::string error = central.apply(execution.changes[i]); !error.empty())
            return "record " + std::to_string(i) + ": " + error;
    return central.tables() == execution.end().tables() ? "" : "the end differs";
}

OrderRecord made(std::uint32_t command, std::uint16_t old_version, std::uint16_t new_version) {
    OrderRecord record;
    record.command = command;
    record.old_offset = old_version;
    record.new_offset = new_version;
    return record;
}

using Indexes = std::vector<std::uint32_t>;

/// lessons.md: row 1's AFTER trigger updates row 2 of the same statement before row 2's event fires.
TEST(Order, AfterTriggerChangesARowOfItsStatement) {
    const std::vector<OrderRecord> records{made(1, 1, 3), made(2, 4, 5), made(1, 2, 4)};
    EXPECT_EQ(order_records(records, {}).order, (Indexes{0, 2, 1}));
}

/// lessons.md: the delete runs under a later command than the insert, and comes before it.
TEST(Order, BeforeTriggerDeletesTheHolderOfTheKey) {
    const std::vector<OrderRecord> records{made(2, 1, 0), made(1, 0, 2)};
    EXPECT_EQ(order_records(records, {{.hash = 7, .record = 0, .taken = false},
                                      {.hash = 7, .record = 1, .taken = true}})
                  .order,
              (Indexes{0, 1}));
}

/// The second row's BEFORE trigger takes the value that the first row gave up; it is logged before both.
TEST(Order, BeforeTriggerTakesWhatAnEarlierRowGaveUp) {
    const std::vector<OrderRecord> records{made(2, 0, 3), made(1, 1, 4), made(1, 2, 5)};
    const std::vector<UniqueValue> values{{.hash = 7, .record = 0, .taken = true},
                                          {.hash = 7, .record = 1, .taken = false}};
    EXPECT_EQ(order_records(records, values).order, (Indexes{1, 0, 2}));
}

TEST(Order, NothingOfATablePassesItsTruncate) {
    std::vector<OrderRecord> records{made(1, 0, 1), made(no_command, 0, 0), made(3, 1, 0), made(2, 0, 1)};
    records[1].barrier = 1;
    EXPECT_EQ(order_records(records, {}).order, (Indexes{0, 1, 3, 2}));
}

/// A deferrable constraint lets two rows change values in one statement: no order serves, and none is forced.
TEST(Order, ValuesHandedRoundInACircleAreSeen) {
    const std::vector<OrderRecord> records{made(1, 1, 3), made(1, 2, 4)};
    const std::vector<UniqueValue> values{{.hash = 1, .record = 0, .taken = false},
                                          {.hash = 2, .record = 0, .taken = true},
                                          {.hash = 2, .record = 1, .taken = false},
                                          {.hash = 1, .record = 1, .taken = true}};
    const RecordOrder result = order_records(records, values);
    EXPECT_EQ(result.order, (Indexes{0, 1}));
    EXPECT_TRUE(result.clash);
}

/// Ids that no server would write must not hang or crash it.
TEST(Order, NonsenseIsAPermutation) {
    std::mt19937 random(1);
    const auto pick = [&](unsigned count) { return static_cast<std::uint16_t>(random() % count); };
    for (int run = 0; run < 5000; ++run) {
        std::vector<OrderRecord> records;
        std::vector<UniqueValue> values;
        for (std::uint32_t i = 0; i < 12; ++i) {
            records.push_back(made(pick(5), pick(6), pick(6)));
            if (pick(8) == 0) records.back().barrier = 1;
            if (pick(8) == 0) records.back().command = no_command;
            records.back().relation = pick(2);
            if (pick(2) == 0) values.push_back({.hash = pick(4), .record = i, .taken = pick(2) == 0});
        }
        Indexes order = order_records(records, values).order;
        std::sort(order.begin(), order.end());
        ASSERT_EQ(order, (Indexes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    }
}

TEST(Order, RandomNestedExecutionsReplay) {
    constexpr unsigned executions = 20000;
    for (unsigned seed = 0; seed < executions; ++seed) {
        Execution execution(seed);
        execution.run();
        const RecordOrder result = order_records(execution.records, execution.values_of_records);
        ASSERT_EQ(replay(execution, result.order), "") << "seed " << seed;
        EXPECT_FALSE(result.clash) << "seed " << seed;
    }
}

}  // namespace
}  // namespace onerepl
