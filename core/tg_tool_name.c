/*
 * Names of tools, for all that define one.
 */

#include "tg_tool_name.h"


bool
tg_tool_name_valid(tg_str_t name, size_t max)
{
    char    c;
    size_t  i;

    if (name.len == 0 || name.len > max || name.data[0] < 'a' || name.data[0] > 'z') {
        return false;
    }

    for (i = 1; i < name.len; i++) {
        c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }

    return true;
}


bool
tg_tool_name_builtin(tg_str_t name)
{
    size_t  i;

    static const char *const  builtin[] = {
        "transfer_to_human", "create_ticket", "flag_conversation", "search_knowledge"
    };

    for (i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++) {
        if (tg_str_eq(name, tg_str_of(builtin[i]))) {
            return true;
        }
    }

    return false;
}
