/*
 * Captured output; see output.h. Text is cut between characters only; bytes that are
 * not UTF-8 become U+FFFD and are told.
 */

#include "output.h"
#include "tg_utf8.h"


typedef struct {
    uint64_t  chars;
    size_t    preview;       /* bytes of the first TGD_PREVIEW_CHARS */
    size_t    whole;         /* bytes up to the last whole character */
    bool      invalid;
    bool      split;         /* the last character is kept in part only */
} tgd_output_measure_t;


void
tgd_output_init(tgd_output_t *output)
{
    tg_buf_init(&output->kept, TGD_CAPTURE_MAX);
    output->bytes = 0;
    output->lost_chars = 0;
}


void
tgd_output_free(tgd_output_t *output)
{
    tg_buf_free(&output->kept);
}


void
tgd_output_add(tgd_output_t *output, const char *data, size_t len)
{
    size_t  i, room;

    output->bytes += len;

    room = TGD_CAPTURE_MAX - output->kept.len;
    if (room > len) {
        room = len;
    }

    if (room != 0 && tg_buf_append(&output->kept, data, room) != TG_OK) {
        room = 0;
    }

    for (i = room; i < len; i++) {
        /* exact for UTF-8: bytes that do not continue a character */
        output->lost_chars += ((uint8_t) data[i] & 0xC0) != 0x80;
    }
}


/* how much a cut may have left of a character */
static bool
is_cut_tail(const tgd_output_t *output, size_t at, size_t len)
{
    tg_utf8_lead_t  lead;

    if (output->bytes == output->kept.len || at + len != output->kept.len) {
        return false;
    }

    lead = tg_utf8_lead((uint8_t) output->kept.data[at]);
    return lead.follow >= len;
}


static void
output_measure(const tgd_output_t *output, tgd_output_measure_t *measure)
{
    size_t       i, n, len;
    int32_t      cp;
    const char  *data;

    memset(measure, 0, sizeof(*measure));
    data = output->kept.data;
    len = output->kept.len;

    for (i = 0; i < len; i += n) {
        n = tg_utf8_next(data + i, len - i, &cp);

        if (cp == -1) {
            if (is_cut_tail(output, i, n)) {
                measure->split = true;
                break;
            }
            measure->invalid = true;
        }

        measure->chars++;
        if (measure->chars == TGD_PREVIEW_CHARS) {
            measure->preview = i + n;
        }
    }

    measure->whole = i;
    if (measure->chars < TGD_PREVIEW_CHARS) {
        measure->preview = i;
    }
}


void
tgd_output_json(const tgd_output_t *output, const char *name, size_t shown_max,
    tg_buf_t *out)
{
    bool                  cut;
    uint64_t              total, shown;
    tg_str_t              text;
    tgd_output_measure_t  measure;

    output_measure(output, &measure);

    total = measure.chars + output->lost_chars + (measure.split ? 1 : 0);
    cut = total > shown_max || output->bytes != output->kept.len;

    text.data = output->kept.data;
    text.len = cut ? measure.preview : measure.whole;
    shown = cut && measure.chars > TGD_PREVIEW_CHARS ? TGD_PREVIEW_CHARS : measure.chars;

    (void) tg_buf_printf(out, ",\"%s\":", name);
    (void) tg_buf_json_string(out, text);
    (void) tg_buf_printf(out, ",\"%s_truncated\":%s,\"%s_original_chars\":%llu"
                         ",\"%s_preview_chars\":%llu", name, cut ? "true" : "false",
                         name, (unsigned long long) total,
                         name, (unsigned long long) shown);

    if (measure.invalid) {
        (void) tg_buf_printf(out, ",\"%s_invalid_utf8\":true", name);
    }
}
