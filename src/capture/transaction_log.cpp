// The packs of the running transaction: one under construction for each subtransaction level, flushed when
// full.
#include "capture/transaction_log.h"

#include "capture/captured_table.h"
#include "shared/memory.h"
#include "store/log_tables.h"

extern "C" {
#include "access/xlog.h"
}

#include <algorithm>

namespace onerepl::capture {

namespace {

/// A pack up to this size, varlena header included, makes a tuple of a log table that fills a page and needs
/// no TOAST.
constexpr std::size_t pack_limit = MaxHeapTupleSize - MAXALIGN(SizeofHeapTupleHeader) - 40;
/// What a level's pack begins with; it grows. Most transactions write a row or two.
constexpr std::size_t first_pack_size = 1024 - VARHDRSZ;

/// Bit 0 of onerepl.change_N.flags.
constexpr std::int32_t flag_out_of_order = 1;

/// What one subtransaction level has recorded. Only levels with records have one.
struct Level {
    int nesting = 0;
    log::Pack pack;                  // under construction; empty: none
    std::uint64_t pack_records = 0;  // in `pack`
    /// Position of `pack` in the transaction, drawn when its first record came: packs are put in this order
    /// again.
    std::int32_t seq = 0;
    std::int32_t flushed_seq = 0;  // the largest of this level that is in the log table; 0: none
    std::uint64_t records = 0;     // of the level, flushed or not
    /// `pack` was flushed by the level below, which is about to commit; it counts as flushed if that
    /// succeeds.
    bool lent = false;
};

struct TransactionState {
    bool begun = false;
    bool stopped = false;   // capture does not run
    bool finished = false;  // the last pack is written
    int log_table = -1;     // chosen at the first flush
    std::int32_t flags = 0;
    std::int32_t last_seq = 0;
    std::uint32_t last_command = 0;
    Level* levels = nullptr;  // in TopTransactionContext, outermost first
    int level_count = 0;
    int level_capacity = 0;
};

TransactionState state;

Level* top_level() {
    return state.level_count > 0 ? &state.levels[state.level_count - 1] : nullptr;
}

Level* push_level(int nesting) {
    if (!state.levels || state.level_count == state.level_capacity) {
        const int capacity = state.level_capacity > 0 ? state.level_capacity * 2 : 4;
        const Size size = sizeof(Level) * static_cast<Size>(capacity);
        state.levels = static_cast<Level*>(state.levels ? repalloc(state.levels, size)
                                                        : MemoryContextAlloc(TopTransactionContext, size));
        state.level_capacity = capacity;
    }
    Level* level = &state.levels[state.level_count++];
    *level = Level{};
    level->nesting = nesting;
    return level;
}

Level* current_level() {
    const int nesting = GetCurrentTransactionNestLevel();
    Level* top = top_level();
    return top && top->nesting == nesting ? top : push_level(nesting);
}

void pop_level() {
    state.level_count--;
    log::pack_free(state.levels[state.level_count].pack);
}

void write_pack(Level& level, const store::PackRow& ending) {
    if (state.log_table < 0) state.log_table = std::max(0, shared::active_log_table());
    SET_VARSIZE(level.pack.data, level.pack.used);
    store::PackRow row = ending;
    row.xid = GetTopFullTransactionId();
    row.seq = level.seq;
    row.data = level.pack.data;
    store::insert_pack(state.log_table, row);
}

/// Writes a pack that is not the transaction's last.
void flush(Level& level) {
    store::PackRow row;
    row.count = level.pack_records;
    write_pack(level, row);
}

void empty_pack(Level& level) {
    pack_clear(level.pack);
    level.pack_records = 0;
}

void begin_pack(Level& level) {
    if (!level.pack.data) pack_begin(level.pack, TopTransactionContext, first_pack_size);
    level.seq = ++state.last_seq;
}

/// The level's pack, with room for a record of at most `size` bytes. The last record of the transaction is
/// never flushed here: a full pack is written when the next record comes.
Level& level_for(std::size_t size) {
    if (state.finished)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("a tracked table cannot be changed after the transaction's end has begun")));
    Level& level = *current_level();
    if (!log::pack_is_empty(level.pack) && level.pack.used + size > pack_limit) {
        flush(level);
        level.flushed_seq = level.seq;
        empty_pack(level);
    }
    if (log::pack_is_empty(level.pack)) begin_pack(level);
    return level;
}

void count_record(Level& level, std::uint32_t command) {
    level.pack_records++;
    level.records++;
    if (command < state.last_command) state.flags |= flag_out_of_order;
    state.last_command = command;
}

/// P4: the end of the transaction's records. Its commit_lsn is the WAL position: a transaction that has seen
/// another's change draws it after that one's commit record was written.
void finish() {
    Level* level = top_level();
    if (!level || state.finished) return;
    state.finished = true;
    if (level->records == 0) return;
    if (log::pack_is_empty(level->pack)) begin_pack(*level);
    store::PackRow row;
    row.last = true;
    row.flags = state.flags;
    row.commit_lsn = GetXLogInsertRecPtr();
    row.count = level->records;
    write_pack(*level, row);
}

// ------------------------------------------------------------------------------------------------------
// subtransactions

/// A level that has records, and the level above it that has some too.
bool has_parent(int nesting) {
    return state.level_count > 1 && state.levels[state.level_count - 2].nesting == nesting - 1;
}

bool can_join(const Level& parent, const Level& child) {
    return child.flushed_seq == 0 && parent.pack.used + child.pack.used <= pack_limit;
}

/// All that can fail when a level commits is done before: either the level's pack will fit after its
/// parent's, or the parent's pack is written now.
void before_level_commits(int nesting) {
    Level* child = top_level();
    if (!child || child->nesting != nesting || child->records == 0 || !has_parent(nesting)) return;
    Level& parent = child[-1];
    if (log::pack_is_empty(parent.pack)) return;
    if (can_join(parent, *child)) {
        log::pack_reserve(parent.pack, child->pack.used);
        return;
    }
    flush(parent);
    parent.lent = true;
}

void take_pack(Level& parent, Level& child) {
    std::swap(parent.pack, child.pack);
    parent.pack_records = child.pack_records;
    parent.seq = child.seq;
}

void hand_to_parent(Level& parent, Level& child) {
    if (parent.lent) {
        parent.flushed_seq = parent.seq;
        parent.lent = false;
        empty_pack(parent);
    }
    if (child.flushed_seq > 0) parent.flushed_seq = child.flushed_seq;
    parent.records += child.records;
    if (log::pack_is_empty(child.pack)) return;
    if (log::pack_is_empty(parent.pack)) {
        take_pack(parent, child);
    } else {
        log::pack_join(parent.pack, child.pack);
        parent.pack_records += child.pack_records;
    }
}

void level_commits(int nesting) {
    Level* child = top_level();
    if (!child || child->nesting != nesting) return;
    if (!has_parent(nesting)) {
        child->nesting--;
        return;
    }
    hand_to_parent(child[-1], *child);
    pop_level();
}

void level_aborts(int nesting) {
    while (top_level() && top_level()->nesting >= nesting) pop_level();
    if (Level* parent = top_level()) parent->lent = false;
    forget_uncommitted_tables();
}

void subtransaction_event(SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
    if (!state.begun) return;
    const int nesting = GetCurrentTransactionNestLevel();
    if (event == SUBXACT_EVENT_PRE_COMMIT_SUB)
        before_level_commits(nesting);
    else if (event == SUBXACT_EVENT_COMMIT_SUB)
        level_commits(nesting);
    else if (event == SUBXACT_EVENT_ABORT_SUB)
        level_aborts(nesting);
}

void transaction_event(XactEvent event, void*) {
    if (!state.begun) return;
    switch (event) {
        case XACT_EVENT_PRE_COMMIT:
        case XACT_EVENT_PRE_PREPARE:
            finish();
            return;
        case XACT_EVENT_COMMIT:
            if (state.log_table >= 0) shared::wake_sender();
            keep_uncommitted_tables();
            break;
        case XACT_EVENT_ABORT:
        case XACT_EVENT_PREPARE:  // what it described is not there until COMMIT PREPARED
            forget_uncommitted_tables();
            break;
        default:
            return;
    }
    state = TransactionState{};
}

void register_callbacks() {
    static bool registered = false;
    if (registered) return;
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
    registered = true;
}

}  // namespace

bool begin_capture() {
    if (!state.begun) {
        register_callbacks();
        state.stopped = shared::capture_stopped();
        state.begun = true;
    }
    return !state.stopped;
}

void record_change(const log::RowChange& change) {
    Level& level = level_for(log::packed_size_limit(change));
    log::pack_append(level.pack, change);
    count_record(level, change.command);
}

void record_description(std::uint64_t description) {
    constexpr std::size_t size_limit = 32;
    Level& level = level_for(size_limit);
    const std::uint32_t command = GetCurrentCommandId(false);
    log::pack_append_describe(level.pack, description, command);
    // Not counted as a step back in command ids: a description's own place is where it stands.
    level.pack_records++;
    level.records++;
}

void record_statement(std::uint64_t description, bool captured, bool dropped, const char* statement,
                      std::size_t size) {
    Level& level = level_for(size + 64);
    log::pack_append_statement(level.pack, description, GetCurrentCommandId(false), captured, dropped,
                               statement, size);
    level.pack_records++;
    level.records++;
}

void record_truncate(std::uint64_t description, bool cascade, bool restart_identity) {
    constexpr std::size_t size_limit = 32;
    Level& level = level_for(size_limit);
    const std::uint32_t command = GetCurrentCommandId(false);
    log::pack_append_truncate(level.pack, description, command, cascade, restart_identity);
    count_record(level, command);
}

}  // namespace onerepl::capture
