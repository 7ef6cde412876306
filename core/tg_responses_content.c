/*
 * Content parts of a Responses request as those of chat: texts, images, files and
 * sounds go on as they are, under the names that chat has for them.
 */

#include "tg_responses_internal.h"


typedef struct {
    tg_str_t         whole;
    tg_walk_value_t  type;
    tg_walk_value_t  text;
    tg_walk_value_t  refusal;
    tg_walk_value_t  image_url;
    tg_walk_value_t  detail;
    tg_walk_value_t  file_id;
    tg_walk_value_t  file_data;
    tg_walk_value_t  file_name;
    tg_walk_value_t  audio;
} tg_responses_part_t;


static tg_rc_e tg_responses_part(tg_responses_request_t *t,
    const tg_responses_part_t *part, size_t n);
static tg_rc_e tg_responses_image(tg_responses_request_t *t,
    const tg_responses_part_t *part, size_t n);
static tg_rc_e tg_responses_file(tg_responses_request_t *t,
    const tg_responses_part_t *part, size_t n);


static tg_rc_e
tg_responses_wrong_part(tg_responses_request_t *t, const char *code,
    const char *message, const char *list, size_t n)
{
    char  member[32];

    snprintf(member, sizeof(member), "%s[%zu]", list, n);

    return tg_responses_wrong_item(t, code, message, member);
}


/* Reads the part at the walk's place, once: it may be as long as the body. */
static void
tg_responses_part_read(tg_walk_t *walk, tg_responses_part_t *part)
{
    size_t           i;
    tg_str_t         key;
    const char      *start;
    tg_walk_value_t  value;

    const struct {
        const char       *name;
        tg_walk_value_t  *value;
    } members[] = {
        { "type", &part->type }, { "text", &part->text },
        { "refusal", &part->refusal }, { "image_url", &part->image_url },
        { "detail", &part->detail }, { "file_id", &part->file_id },
        { "file_data", &part->file_data }, { "filename", &part->file_name },
        { "input_audio", &part->audio }
    };

    memset(part, 0, sizeof(*part));

    start = walk->p;
    (void) tg_walk_enter(walk);

    while (tg_walk_member(walk, &key, &value)) {
        for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
            if (value.type != TG_SCAN_NULL && tg_walk_is(key, members[i].name)) {
                *members[i].value = value;
                break;
            }
        }
    }

    part->whole = (tg_str_t) { (size_t) (walk->p - start), start };
}


static bool
tg_responses_part_is_text(const tg_responses_part_t *part)
{
    tg_str_t  type;

    type = tg_walk_inside(part->type);

    return part->text.type == TG_SCAN_STRING
           && (tg_walk_is(type, "input_text") || tg_walk_is(type, "output_text")
               || tg_walk_is(type, "text"));
}


tg_rc_e
tg_responses_content(tg_responses_request_t *t, tg_walk_value_t content)
{
    size_t               n;
    tg_walk_t            walk;
    tg_scan_type_e       kind;
    tg_responses_part_t  part;

    if (content.type == TG_SCAN_STRING) {
        return tg_responses_put(t, content.text);
    }

    if (content.type != TG_SCAN_ARRAY) {
        return tg_responses_wrong_item(t, "invalid_type",
                                       "\"content\" is a string or a list of "
                                       "parts.", "content");
    }

    walk = tg_walk_over(content.text);
    (void) tg_walk_enter(&walk);
    kind = tg_walk_at_element(&walk);

    if (kind == TG_SCAN_NONE) {
        return tg_responses_lit(t, "\"\"");
    }

    for (n = 0; kind != TG_SCAN_NONE; n++) {

        if (kind != TG_SCAN_OBJECT) {
            return tg_responses_wrong_part(t, "invalid_type",
                                           "A content part is an object.",
                                           "content", n);
        }

        if (n == TG_RESPONSES_PARTS_MAX) {
            return tg_responses_wrong_item(t, "invalid_value",
                                           "The list has too many parts.",
                                           "content");
        }

        tg_responses_part_read(&walk, &part);
        kind = tg_walk_at_element(&walk);

        /* many chat models take nothing but a string: one text needs no list */

        if (n == 0 && kind == TG_SCAN_NONE && tg_responses_part_is_text(&part)) {
            return tg_responses_put(t, part.text.text);
        }

        tg_responses_put(t, n ? tg_str(",") : tg_str("["));

        if (tg_responses_part(t, &part, n) != TG_OK) {
            return t->fault.code ? TG_E_INVALID : t->rc;
        }
    }

    return tg_responses_lit(t, "]");
}


static tg_rc_e
tg_responses_part(tg_responses_request_t *t, const tg_responses_part_t *part,
    size_t n)
{
    tg_str_t  type;

    type = tg_walk_inside(part->type);

    if (tg_responses_part_is_text(part)) {
        tg_responses_lit(t, "{\"type\":\"text\",\"text\":");
        tg_responses_put(t, part->text.text);
        return tg_responses_lit(t, "}");
    }

    if (tg_walk_is(type, "input_image")) {
        return tg_responses_image(t, part, n);
    }

    if (tg_walk_is(type, "input_file")) {
        return tg_responses_file(t, part, n);
    }

    /* chat's own parts, and what the model may know better than we do */

    return tg_responses_put(t, part->whole);
}


static tg_rc_e
tg_responses_image(tg_responses_request_t *t, const tg_responses_part_t *part,
    size_t n)
{
    if (part->image_url.type != TG_SCAN_STRING) {
        return tg_responses_wrong_part(t, "unsupported_item",
                                       "An image is given as \"image_url\": files "
                                       "are not kept here.", "content", n);
    }

    tg_responses_lit(t, "{\"type\":\"image_url\",\"image_url\":{\"url\":");
    tg_responses_put(t, part->image_url.text);

    if (part->detail.type == TG_SCAN_STRING) {
        tg_responses_lit(t, ",\"detail\":");
        tg_responses_put(t, part->detail.text);
    }

    return tg_responses_lit(t, "}}");
}


static tg_rc_e
tg_responses_file(tg_responses_request_t *t, const tg_responses_part_t *part,
    size_t n)
{
    size_t  i;
    bool    any;

    const struct {
        tg_str_t                name;
        const tg_walk_value_t  *value;
    } members[] = {
        { tg_str("\"file_id\":"), &part->file_id },
        { tg_str("\"file_data\":"), &part->file_data },
        { tg_str("\"filename\":"), &part->file_name }
    };

    if (part->file_id.type != TG_SCAN_STRING
        && part->file_data.type != TG_SCAN_STRING)
    {
        return tg_responses_wrong_part(t, "unsupported_item",
                                       "A file is given as \"file_data\": nothing "
                                       "is fetched from a URL here.", "content", n);
    }

    any = false;
    tg_responses_lit(t, "{\"type\":\"file\",\"file\":{");

    for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (members[i].value->type != TG_SCAN_STRING) {
            continue;
        }

        if (any) {
            tg_responses_lit(t, ",");
        }

        any = true;
        tg_responses_put(t, members[i].name);
        tg_responses_put(t, members[i].value->text);
    }

    return tg_responses_lit(t, "}}");
}


/* The strings of one kind of a list of parts, put together between one pair of
 * quotes: escapes stay what they are. Returns how many there were. */
static size_t
tg_responses_join(tg_responses_request_t *t, tg_str_t list, bool refusals)
{
    size_t               n;
    tg_walk_t            walk;
    tg_scan_type_e       kind;
    tg_walk_value_t      value;
    tg_responses_part_t  part;

    n = 0;
    walk = tg_walk_over(list);
    (void) tg_walk_enter(&walk);

    while ((kind = tg_walk_at_element(&walk)) != TG_SCAN_NONE) {
        if (kind != TG_SCAN_OBJECT) {
            (void) tg_walk_value(&walk);
            continue;
        }

        tg_responses_part_read(&walk, &part);
        value = refusals ? part.refusal : part.text;

        if (value.type != TG_SCAN_STRING) {
            continue;
        }

        if (n++ == 0) {
            tg_responses_put(t, refusals ? tg_str(",\"refusal\":\"") : tg_str("\""));
        }

        tg_responses_put(t, tg_walk_inside(value));
    }

    if (n) {
        tg_responses_lit(t, "\"");
    }

    return n;
}


tg_rc_e
tg_responses_assistant_content(tg_responses_request_t *t, tg_walk_value_t content)
{
    tg_responses_lit(t, ",\"content\":");

    if (content.type == TG_SCAN_STRING) {
        return tg_responses_put(t, content.text);
    }

    if (content.type == TG_SCAN_NONE) {
        return tg_responses_lit(t, "\"\"");
    }

    if (content.type != TG_SCAN_ARRAY) {
        return tg_responses_wrong_item(t, "invalid_type",
                                       "\"content\" is a string or a list of "
                                       "parts.", "content");
    }

    if (tg_responses_join(t, content.text, false) == 0) {
        tg_responses_lit(t, "\"\"");
    }

    (void) tg_responses_join(t, content.text, true);

    return t->rc;
}


tg_rc_e
tg_responses_joined(tg_responses_request_t *t, tg_walk_value_t value,
    const char *member)
{
    size_t               n;
    tg_walk_t            walk;
    tg_scan_type_e       kind;
    tg_responses_part_t  part;

    switch (value.type) {

    case TG_SCAN_NONE:
        return tg_responses_lit(t, "\"\"");

    case TG_SCAN_STRING:
        return tg_responses_put(t, value.text);

    case TG_SCAN_ARRAY:
        break;

    default:
        return tg_responses_wrong_item(t, "invalid_type",
                                       "An output is a string or a list of parts.",
                                       member);
    }

    walk = tg_walk_over(value.text);
    (void) tg_walk_enter(&walk);

    for (n = 0; (kind = tg_walk_at_element(&walk)) != TG_SCAN_NONE; n++) {
        if (kind == TG_SCAN_OBJECT) {
            tg_responses_part_read(&walk, &part);
        }

        if (kind != TG_SCAN_OBJECT || !tg_responses_part_is_text(&part)) {
            return tg_responses_wrong_part(t, "unsupported_item",
                                           "The output of a tool is text here.",
                                           member, n);
        }
    }

    if (tg_responses_join(t, value.text, false) == 0) {
        tg_responses_lit(t, "\"\"");
    }

    return t->rc;
}
