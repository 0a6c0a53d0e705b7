// Names, by PostgreSQL's parser.
#include "apply/rename.h"

#include "pg/error_boundary.h"
#include "pg/transaction.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "tcop/tcopprot.h"
}

namespace onerepl::apply {

namespace {

/// Null: as it was.
struct PlainName {
    const char* schema;
    const char* table;
    const char* old_schema;
    const char* made;
};

/// Plain.
PlainName plain_rename_of(const char* text) {
    PlainName name{nullptr, nullptr, nullptr, nullptr};
    ListCell* cell;
    foreach (cell, pg_parse_query(text)) {
        const Node* const statement = static_cast<const RawStmt*>(lfirst(cell))->stmt;
        if (IsA(statement, RenameStmt)) {
            const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
            if (rename->renameType == OBJECT_TABLE) name.table = rename->newname;
            if (rename->renameType == OBJECT_SCHEMA) {
                name.schema = rename->newname;
                name.old_schema = rename->subname;
            }
        } else if (IsA(statement, CreateStmt)) {
            // The record of a partition is its root's.
            const auto* create = reinterpret_cast<const CreateStmt*>(statement);
            name.made = create->partbound == nullptr ? create->relation->relname : nullptr;
        } else if (IsA(statement, AlterObjectSchemaStmt)) {
            name.schema = reinterpret_cast<const AlterObjectSchemaStmt*>(statement)->newschema;
        }
    }
    return name;
}

std::string text_or_empty(const char* text) {
    return text == nullptr ? "" : text;
}

}  // namespace

Rename rename_in(const std::string& text) {
    Rename name;
    try {
        pg::in_subtransaction([&] {
            const PlainName plain = pg::call([&] { return plain_rename_of(text.c_str()); });
            name = {text_or_empty(plain.schema), text_or_empty(plain.table), text_or_empty(plain.old_schema),
                    text_or_empty(plain.made)};
        });
    } catch (const pg::Error& error) {
        if (error.sqlstate() != "42601") throw;
    }
    return name;
}

}  // namespace onerepl::apply
