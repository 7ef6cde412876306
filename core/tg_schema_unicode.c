/*
 * Names of Unicode properties as ECMA-262 spells them inside \p{...}, and how
 * PCRE2 spells the same. It must not know the rest of a pattern.
 */

#include "tg_schema_internal.h"

#include <stdlib.h>


typedef struct {
    const char  *name;
    const char  *pcre;
} tg_schema_property_t;

/* general categories; sorted by name */
static const tg_schema_property_t  tg_schema_categories[] = {
    { "C", "C" },
    { "Cased_Letter", "LC" },
    { "Cc", "Cc" },
    { "Cf", "Cf" },
    { "Close_Punctuation", "Pe" },
    { "Cn", "Cn" },
    { "Co", "Co" },
    { "Combining_Mark", "M" },
    { "Connector_Punctuation", "Pc" },
    { "Control", "Cc" },
    { "Cs", "Cs" },
    { "Currency_Symbol", "Sc" },
    { "Dash_Punctuation", "Pd" },
    { "Decimal_Number", "Nd" },
    { "Enclosing_Mark", "Me" },
    { "Final_Punctuation", "Pf" },
    { "Format", "Cf" },
    { "Initial_Punctuation", "Pi" },
    { "L", "L" },
    { "LC", "LC" },
    { "Letter", "L" },
    { "Letter_Number", "Nl" },
    { "Line_Separator", "Zl" },
    { "Ll", "Ll" },
    { "Lm", "Lm" },
    { "Lo", "Lo" },
    { "Lowercase_Letter", "Ll" },
    { "Lt", "Lt" },
    { "Lu", "Lu" },
    { "M", "M" },
    { "Mark", "M" },
    { "Math_Symbol", "Sm" },
    { "Mc", "Mc" },
    { "Me", "Me" },
    { "Mn", "Mn" },
    { "Modifier_Letter", "Lm" },
    { "Modifier_Symbol", "Sk" },
    { "N", "N" },
    { "Nd", "Nd" },
    { "Nl", "Nl" },
    { "No", "No" },
    { "Nonspacing_Mark", "Mn" },
    { "Number", "N" },
    { "Open_Punctuation", "Ps" },
    { "Other", "C" },
    { "Other_Letter", "Lo" },
    { "Other_Number", "No" },
    { "Other_Punctuation", "Po" },
    { "Other_Symbol", "So" },
    { "P", "P" },
    { "Paragraph_Separator", "Zp" },
    { "Pc", "Pc" },
    { "Pd", "Pd" },
    { "Pe", "Pe" },
    { "Pf", "Pf" },
    { "Pi", "Pi" },
    { "Po", "Po" },
    { "Private_Use", "Co" },
    { "Ps", "Ps" },
    { "Punctuation", "P" },
    { "S", "S" },
    { "Sc", "Sc" },
    { "Separator", "Z" },
    { "Sk", "Sk" },
    { "Sm", "Sm" },
    { "So", "So" },
    { "Space_Separator", "Zs" },
    { "Spacing_Mark", "Mc" },
    { "Surrogate", "Cs" },
    { "Symbol", "S" },
    { "Titlecase_Letter", "Lt" },
    { "Unassigned", "Cn" },
    { "Uppercase_Letter", "Lu" },
    { "Z", "Z" },
    { "Zl", "Zl" },
    { "Zp", "Zp" },
    { "Zs", "Zs" },
    { "cntrl", "Cc" },
    { "digit", "Nd" },
    { "punct", "P" }
};

/* binary properties of ECMA-262, which PCRE2 knows by the same names; sorted */
static const char  *tg_schema_binaries[] = {
    "AHex", "ASCII", "ASCII_Hex_Digit", "Alpha", "Alphabetic", "Any", "Bidi_C",
    "Bidi_Control", "Bidi_M", "Bidi_Mirrored", "CI", "CWCF", "CWCM", "CWL", "CWT", "CWU",
    "Case_Ignorable", "Cased", "Changes_When_Casefolded", "Changes_When_Casemapped",
    "Changes_When_Lowercased", "Changes_When_Titlecased", "Changes_When_Uppercased", "DI",
    "Dash", "Default_Ignorable_Code_Point", "Dep", "Deprecated", "Dia", "Diacritic",
    "EBase", "EComp", "EMod", "EPres", "Emoji", "Emoji_Component", "Emoji_Modifier",
    "Emoji_Modifier_Base", "Emoji_Presentation", "Ext", "ExtPict",
    "Extended_Pictographic", "Extender", "Gr_Base", "Gr_Ext", "Grapheme_Base",
    "Grapheme_Extend", "Hex", "Hex_Digit", "IDC", "IDS", "IDSB", "IDST",
    "IDS_Binary_Operator", "IDS_Trinary_Operator", "ID_Continue", "ID_Start", "Ideo",
    "Ideographic", "Join_C", "Join_Control", "LOE", "Logical_Order_Exception", "Lower",
    "Lowercase", "Math", "NChar", "Noncharacter_Code_Point", "Pat_Syn", "Pat_WS",
    "Pattern_Syntax", "Pattern_White_Space", "QMark", "Quotation_Mark", "RI", "Radical",
    "Regional_Indicator", "SD", "STerm", "Sentence_Terminal", "Soft_Dotted", "Term",
    "Terminal_Punctuation", "UIdeo", "Unified_Ideograph", "Upper", "Uppercase", "VS",
    "Variation_Selector", "White_Space", "XIDC", "XIDS", "XID_Continue", "XID_Start",
    "space"
};

static int tg_schema_property_cmp(const void *key, const void *entry);
static int tg_schema_binary_cmp(const void *key, const void *entry);
static const char *tg_schema_category(const char *name);


/*
 * Appends \p{...} or \P{...} for the text between the braces. False when the name
 * is none of ECMA-262.
 */
bool
tg_schema_unicode_property(tg_str_t text, bool negated, tg_buf_t *out)
{
    char                name[64];
    char               *value;
    const char         *pcre;
    const char        **binary;
    const char         *prefix;

    if (text.len == 0 || text.len >= sizeof(name)) {
        return false;
    }

    memcpy(name, text.data, text.len);
    name[text.len] = '\0';

    if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_=")
        != text.len)
    {
        return false;
    }

    value = strchr(name, '=');
    prefix = "";

    if (value == NULL) {

        if (strcmp(name, "Assigned") == 0) {
            /* PCRE2 has only the opposite */
            pcre = "Cn";
            negated = !negated;

        } else {
            pcre = tg_schema_category(name);
        }

        if (pcre == NULL) {
            binary = bsearch(name, tg_schema_binaries,
                             sizeof(tg_schema_binaries) / sizeof(tg_schema_binaries[0]),
                             sizeof(tg_schema_binaries[0]), tg_schema_binary_cmp);
            pcre = binary == NULL ? NULL : *binary;
        }

    } else {
        *value++ = '\0';

        if (strcmp(name, "General_Category") == 0 || strcmp(name, "gc") == 0) {
            pcre = tg_schema_category(value);

        } else if (strcmp(name, "Script") == 0 || strcmp(name, "sc") == 0) {
            prefix = "sc:";
            pcre = value;

        } else if (strcmp(name, "Script_Extensions") == 0 || strcmp(name, "scx") == 0) {
            prefix = "scx:";
            pcre = value;

        } else {
            pcre = NULL;
        }
    }

    if (pcre == NULL || *pcre == '\0' || strchr(pcre, '=') != NULL) {
        return false;
    }

    return tg_buf_printf(out, "\\%c{%s%s}", negated ? 'P' : 'p', prefix, pcre) == TG_OK;
}


static const char *
tg_schema_category(const char *name)
{
    const tg_schema_property_t  *p;

    p = bsearch(name, tg_schema_categories,
                sizeof(tg_schema_categories) / sizeof(tg_schema_categories[0]),
                sizeof(tg_schema_categories[0]), tg_schema_property_cmp);

    return p == NULL ? NULL : p->pcre;
}


static int
tg_schema_property_cmp(const void *key, const void *entry)
{
    return strcmp(key, ((const tg_schema_property_t *) entry)->name);
}


static int
tg_schema_binary_cmp(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *) entry);
}
