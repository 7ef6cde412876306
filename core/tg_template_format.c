/*
 * The formats of arguments: what a token is, what counts as blank, digits. It
 * judges values and knows nothing of requests.
 */

#define PCRE2_CODE_UNIT_WIDTH 8

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>

#include "tg_clean.h"
#include "tg_template_parts.h"
#include "tg_utf8.h"


#define TG_FORMAT_DEPTH  128     /* of an argument; the loader's bound too */

/*
 * Letters that Unicode's compatibility forms turn into plain ASCII or that are
 * only another drawing of a letter: full-width, ligatures, presentation forms,
 * mathematical. A receiver that normalises would read them as something else.
 */
#define TG_FORMAT_LOOKALIKE                                                            \
    "\\x{aa}-\\x{ba}\\x{132}-\\x{133}\\x{13f}-\\x{140}\\x{149}\\x{17f}"                \
    "\\x{1c4}-\\x{1cc}\\x{1f1}-\\x{1f3}\\x{2b0}-\\x{2b8}\\x{2e1}-\\x{2e3}\\x{37a}"     \
    "\\x{1d2c}-\\x{1d2e}\\x{1d30}-\\x{1d3a}\\x{1d3c}-\\x{1d4d}\\x{1d4f}-\\x{1d65}"     \
    "\\x{1d9c}-\\x{1dbb}\\x{1e9a}\\x{2071}-\\x{2131}\\x{2133}-\\x{2149}"               \
    "\\x{2c7c}-\\x{2c7d}\\x{a7f2}-\\x{a7f4}\\x{fb00}-\\x{ff5a}\\x{107a5}"              \
    "\\x{1d400}-\\x{1d7ff}\\x{1fbf0}-\\x{1fbf9}"

#define TG_FORMAT_TOKEN                                                                \
    "\\A(?:(?![" TG_FORMAT_LOOKALIKE "])[\\p{L}\\p{Nd} ._@:+\\-])*+\\z"

static const char  tg_format_not_token[] =
    "only letters, digits, spaces and ._@:+- are allowed, at most 64 characters";
static const char  tg_format_too_long[] = "the text is over 1000 characters";
static const char  tg_format_key[] = "a key holds characters that are not allowed";
static const char  tg_format_deep[] = "nested too deeply";
static const char  tg_format_memory[] = "out of memory";

typedef struct {
    bool         text;
    char        *pointer;
    size_t       cap;
} tg_format_check_t;

/* Compiled at the first text that is not plain ASCII, given back at the end. */
static struct {
    pcre2_code        *pattern;
    pcre2_match_data  *match;
} tg_token;


__attribute__((destructor)) static void
tg_token_forget(void)
{
    pcre2_match_data_free(tg_token.match);
    pcre2_code_free(tg_token.pattern);
}


static bool
tg_token_ascii(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
           || (c != '\0' && strchr(" ._@:+-", c) != NULL);
}


static bool
tg_token_unicode(tg_str_t text)
{
    int         rc, code;
    PCRE2_SIZE  offset;

    if (tg_token.pattern == NULL) {
        tg_token.pattern = pcre2_compile((PCRE2_SPTR) TG_FORMAT_TOKEN, PCRE2_ZERO_TERMINATED,
            PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &offset, NULL);
    }

    if (tg_token.pattern != NULL && tg_token.match == NULL) {
        tg_token.match = pcre2_match_data_create(1, NULL);
    }

    if (tg_token.match == NULL) {
        return false;
    }

    /* text that is not UTF-8 gives an error, which is no match */
    rc = pcre2_match(tg_token.pattern, (PCRE2_SPTR) text.data, text.len, 0, 0,
        tg_token.match, NULL);

    return rc >= 0;
}


bool
tg_template_is_token(tg_str_t text)
{
    size_t  i;

    if (text.len > TG_TEMPLATE_TOKEN_CHARS * 4
        || tg_clean_length(text) > TG_TEMPLATE_TOKEN_CHARS)
    {
        return false;
    }

    for (i = 0; i < text.len; i++) {

        if ((unsigned char) text.data[i] >= 0x80) {
            return tg_token_unicode(text);
        }

        if (!tg_token_ascii(text.data[i])) {
            return false;
        }
    }

    return true;
}


/* Spaces of all widths and the joiners, which are nothing by themselves. */
static bool
tg_is_space(int32_t cp)
{
    return cp <= 0x20 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200d)
           || cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f
           || cp == 0x2800 || cp == 0x3000;
}


bool
tg_template_is_blank(tg_str_t text)
{
    size_t   i, n;
    int32_t  cp;

    for (i = 0; i < text.len; i += n) {
        n = tg_utf8_next(text.data + i, text.len - i, &cp);

        if (cp < 0 || !tg_is_space(cp)) {
            return false;
        }
    }

    return true;
}


/* The text as format text sends it, as a new string; NULL over its length. */
static json_t *
tg_cleaned_string(tg_str_t text)
{
    json_t    *copy = NULL;
    tg_buf_t   clean;

    tg_buf_init(&clean, (TG_CLEAN_TEXT_CHARS + 1) * 4);

    if (tg_clean_argument(text, &clean) == TG_OK) {
        copy = json_stringn(clean.len == 0 ? "" : clean.data, clean.len);
    }

    tg_buf_free(&clean);

    return copy;
}


json_t *
tg_template_cleaned(const json_t *value, unsigned depth)
{
    size_t       i;
    json_t      *copy, *item;
    const char  *key;

    if (depth > TG_FORMAT_DEPTH) {
        return NULL;
    }

    if (json_is_string(value)) {
        return tg_cleaned_string((tg_str_t) { json_string_length(value),
            json_string_value(value) });
    }

    if (json_is_array(value)) {
        copy = json_array();

        json_array_foreach(value, i, item) {

            if (json_array_append_new(copy, tg_template_cleaned(item, depth + 1)) != 0) {
                json_decref(copy);
                return NULL;
            }
        }

        return copy;
    }

    if (json_is_object(value)) {
        copy = json_object();

        json_object_foreach((json_t *) (uintptr_t) value, key, item) {

            if (json_object_set_new(copy, key, tg_template_cleaned(item, depth + 1)) != 0)
            {
                json_decref(copy);
                return NULL;
            }
        }

        return copy;
    }

    return json_deep_copy(value);
}


bool
tg_template_tokens(const json_t *value, unsigned depth)
{
    size_t       i;
    json_t      *item;
    const char  *key;

    if (depth > TG_FORMAT_DEPTH) {
        return false;
    }

    if (json_is_string(value)) {
        return tg_template_is_token((tg_str_t) { json_string_length(value),
            json_string_value(value) });
    }

    json_array_foreach(value, i, item) {

        if (!tg_template_tokens(item, depth + 1)) {
            return false;
        }
    }

    json_object_foreach((json_t *) (uintptr_t) value, key, item) {

        if (!tg_template_is_token(tg_str_of(key)) || !tg_template_tokens(item, depth + 1)) {
            return false;
        }
    }

    return true;
}


static tg_rc_e
tg_fold_string(json_t *value)
{
    int       set = 0;
    tg_rc_e   rc;
    tg_buf_t  folded;
    tg_str_t  text = { json_string_length(value), json_string_value(value) };

    if (text.len == 0
        || (memchr(text.data, 0xd9, text.len) == NULL
            && memchr(text.data, 0xdb, text.len) == NULL))
    {
        return TG_OK;
    }

    tg_buf_init(&folded, text.len);

    rc = tg_clean_digits(text, &folded);
    if (rc == TG_OK) {
        set = json_string_setn(value, folded.data, folded.len);
    }

    tg_buf_free(&folded);

    return set != 0 ? TG_E_NOMEM : rc;
}


static tg_rc_e
tg_fold_value(json_t *value, unsigned depth)
{
    size_t       i;
    json_t      *item;
    tg_rc_e      rc;
    const char  *key;

    if (depth > TG_FORMAT_DEPTH) {
        return TG_E_LIMIT;
    }

    if (json_is_string(value)) {
        return tg_fold_string(value);
    }

    if (json_is_array(value)) {

        json_array_foreach(value, i, item) {
            rc = tg_fold_value(item, depth + 1);

            if (rc != TG_OK) {
                return rc;
            }
        }

        return TG_OK;
    }

    json_object_foreach(value, key, item) {
        rc = tg_fold_value(item, depth + 1);

        if (rc != TG_OK) {
            return rc;
        }
    }

    return TG_OK;
}


tg_rc_e
tg_template_fold_digits(json_t *args)
{
    return args == NULL ? TG_OK : tg_fold_value(args, 0);
}


static void
tg_pointer_put(const tg_format_check_t *check, const char *text, size_t len)
{
    size_t  n = strlen(check->pointer);

    if (n + len < check->cap) {
        memcpy(check->pointer + n, text, len);
        check->pointer[n + len] = '\0';
    }
}


/* Adds "/key" with the escapes of RFC 6901; what does not fit is left out. */
static void
tg_pointer_push(const tg_format_check_t *check, const char *key)
{
    tg_pointer_put(check, "/", 1);

    for (; *key != '\0'; key++) {

        if (*key == '~' || *key == '/') {
            tg_pointer_put(check, *key == '~' ? "~0" : "~1", 2);

        } else {
            tg_pointer_put(check, key, 1);
        }
    }
}


static const char *
tg_check_string(bool text_format, tg_str_t text)
{
    tg_rc_e   rc;
    tg_buf_t  clean;

    if (!text_format) {
        return tg_template_is_token(text) ? NULL : tg_format_not_token;
    }

    if (tg_clean_length(text) <= TG_CLEAN_TEXT_CHARS) {
        return NULL;
    }

    /* over the length, but perhaps not when cleaned */
    tg_buf_init(&clean, (TG_CLEAN_TEXT_CHARS + 1) * 4);
    rc = tg_clean_argument(text, &clean);
    tg_buf_free(&clean);

    return rc == TG_OK ? NULL : rc == TG_E_NOMEM ? tg_format_memory : tg_format_too_long;
}


/* A key is sent as it is, so it must be clean as it is. */
static const char *
tg_check_key(bool text_format, const char *key)
{
    bool      same;
    tg_buf_t  clean;
    tg_str_t  text = tg_str_of(key);

    if (!text_format) {
        return tg_template_is_token(text) ? NULL : tg_format_key;
    }

    tg_buf_init(&clean, (TG_CLEAN_TEXT_CHARS + 1) * 4);
    same = tg_clean_argument(text, &clean) == TG_OK
           && tg_str_eq(tg_buf_get(&clean), text);
    tg_buf_free(&clean);

    return same ? NULL : tg_format_key;
}


static const char *
tg_check_value(const tg_format_check_t *check, const json_t *value, unsigned depth)
{
    char         index[24];
    size_t       i, mark = strlen(check->pointer);
    json_t      *item;
    const char  *key, *reason = NULL;

    if (depth > TG_FORMAT_DEPTH) {
        return tg_format_deep;
    }

    if (json_is_string(value)) {
        return tg_check_string(check->text, (tg_str_t) { json_string_length(value),
            json_string_value(value) });
    }

    if (json_is_array(value)) {

        json_array_foreach(value, i, item) {
            (void) snprintf(index, sizeof(index), "%zu", i);
            tg_pointer_push(check, index);
            reason = tg_check_value(check, item, depth + 1);

            if (reason != NULL) {
                return reason;
            }

            check->pointer[mark] = '\0';
        }

        return NULL;
    }

    json_object_foreach((json_t *) (uintptr_t) value, key, item) {
        tg_pointer_push(check, key);
        reason = tg_check_key(check->text, key);

        if (reason == NULL) {
            reason = tg_check_value(check, item, depth + 1);
        }

        if (reason != NULL) {
            return reason;
        }

        check->pointer[mark] = '\0';
    }

    return NULL;
}


const char *
tg_template_check_formats(const tg_template_t *template, const json_t *args,
    char *pointer, size_t cap)
{
    size_t                 i;
    const char            *reason;
    const json_t          *value;
    tg_format_check_t      check = { .pointer = pointer, .cap = cap };
    const tg_parameter_t  *parameter;

    pointer[0] = '\0';

    for (i = 0; i < template->parameter_count; i++) {
        parameter = &template->parameter[i];
        value = json_object_getn(args, parameter->name, parameter->len);

        if (value == NULL) {
            continue;
        }

        check.text = parameter->text;
        tg_pointer_push(&check, parameter->name);
        reason = tg_check_value(&check, value, 0);

        if (reason != NULL) {
            return reason;
        }

        pointer[0] = '\0';
    }

    return NULL;
}
