// onerepl.failure: storing and clearing.
#include "pg/pg.h"

#include "receiver/failures.h"

#include "pg/spi.h"

namespace onerepl::receiver {

KnownFailures load_failures(int link) {
    KnownFailures known;
    pg::query(
        "SELECT n, coalesce(resolution, ''), at_commit, transaction_first, transaction_last"
        " FROM onerepl.failure WHERE link = $1 ORDER BY n",
        {link}, [&](const pg::Row& row) {
            known.any = true;
            const std::string resolution = row.text(1);
            if (resolution == "overwrite")
                known.resolutions.records[row.number(0)] = apply::Resolution::overwrite;
            if (resolution == "skip" && row.boolean(2))
                known.resolutions.skipped_transactions.add({row.number(3), row.number(4)});
            else if (resolution == "skip")
                known.resolutions.records[row.number(0)] = apply::Resolution::skip;
            if (resolution.empty() && !known.undecided) known.undecided = row.number(0);
        });
    return known;
}

void store_failures(int link, const apply::Outcome& outcome) {
    pg::execute(
        "DELETE FROM onerepl.failure WHERE link = $1 AND (resolution IS NULL OR resolution = 'retry')",
        {link});
    for (const apply::Failure& failure : outcome.failures)
        pg::execute(
            "INSERT INTO onerepl.failure (link, n, transaction_first, transaction_last, relation, operation, "
            "key, row, sqlstate,"
            "                             message, detail, hint, constraint_name, at_commit)"
            " VALUES ($1, $2, $3, $4, $5, $6, nullif($7, ''), nullif($8, ''), $9, $10, nullif($11, ''), "
            "nullif($12, ''), nullif($13, ''), $14)"
            // What was decided did not help: it is to be decided again.
            " ON CONFLICT (link, n) DO UPDATE SET sqlstate = excluded.sqlstate, message = excluded.message,"
            "    detail = excluded.detail, hint = excluded.hint, constraint_name = excluded.constraint_name, "
            "failed_at = "
            "excluded.failed_at, at_commit = excluded.at_commit,"
            "    resolution = NULL, resolved_by = NULL",
            {link, failure.n, failure.transaction_first, failure.transaction_last, failure.relation,
             failure.operation, failure.key, failure.row, failure.error.sqlstate, failure.error.message,
             failure.error.detail, failure.error.hint, failure.error.constraint, failure.at_commit});
}

void finish_failures(int link, Number written) {
    pg::execute("DELETE FROM onerepl.failure WHERE link = $1 AND n <= $2", {link, written});
}

std::string describe(const apply::Outcome& outcome) {
    if (outcome.failures.empty()) return "its transaction cannot be committed";
    const apply::Failure& first = outcome.failures.front();
    return first.operation + (first.relation.empty() ? "" : " in " + first.relation) + ": " +
           first.error.message + " (SQLSTATE " + first.error.sqlstate + ")";
}

}  // namespace onerepl::receiver
