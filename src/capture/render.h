// Values as text, for the types that travel so. Under fixed settings (pg/fixed_settings.h) the text does not
// depend on the session.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "fmgr.h"
}

namespace onerepl::capture {

/// How values of a type become text.
struct TextForm {
    Oid type;
    FmgrInfo output;
    bool depends_on_settings;
    /// xml may be among what its values are made of; whether it is must be looked up for each value, since
    /// attributes can be added to a composite type.
    bool may_hold_xml;
};

/// Plain, may ereport. What the form refers to is in `memory`.
void fill_text_form(TextForm& form, Oid type, MemoryContext memory);

/// Plain, may ereport: the value as the input function of its type reads it again, in the current memory
/// context. That is what the output function gives, except that xml keeps its declaration: xml's own output
/// function changes it.
char* text_of(TextForm& form, Datum value);

}  // namespace onerepl::capture
