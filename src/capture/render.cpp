// Which types' text depends on settings.
#include "capture/render.h"

extern "C" {
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
}

namespace onerepl::capture {

bool text_depends_on_settings(Oid type) {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(type, &output, &is_varlena);
    switch (output) {
        case F_TEXTOUT:
        case F_VARCHAROUT:
        case F_BPCHAROUT:
        case F_NAMEOUT:
        case F_ENUM_OUT:
            return false;
        case F_ARRAY_OUT: {
            const Oid element = get_element_type(getBaseType(type));
            return !OidIsValid(element) || text_depends_on_settings(element);
        }
        default:
            return true;
    }
}

}  // namespace onerepl::capture
