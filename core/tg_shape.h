/*
 * What a model sees of an HTTP tool's answer: chosen fields of some rows, cleaned
 * and cut, marked as data, bounded by dropping whole rows. Nothing else of the
 * answer ever reaches the model.
 */

#ifndef TG_SHAPE_H
#define TG_SHAPE_H

#include <jansson.h>

#include "tg.h"
#include "tg_buf.h"


#define TG_SHAPE_MAX_FIELDS     12
#define TG_SHAPE_MAX_ITEMS      20
#define TG_SHAPE_DEFAULT_ITEMS  10
#define TG_SHAPE_RESULT_MAX     4096            /* bytes of the JSON */
#define TG_SHAPE_BODY_MAX       (1024 * 1024)   /* bytes after decoding */
#define TG_SHAPE_PATH_MAX       256             /* bytes */
#define TG_SHAPE_LABEL_CHARS    100
#define TG_SHAPE_MESSAGE_CHARS  500             /* of empty_message */

/*
 * Checks config.response (NULL: none). A path is keys joined by dots, a number for
 * an element of an array, "\." for a dot inside a key. NULL when fine, else a 422
 * code (too_many_fields, invalid_value, unknown_field) with the place in pointer[].
 */
const char *tg_shape_check(const json_t *response, char *pointer, size_t cap);

/*
 * Appends the result for an answer with this status and body. response may be
 * NULL. Returns NULL for {"ok":true,…}, else the code that was written as a
 * refusal: upstream_failed, rate_limited, unreadable.
 */
const char *tg_shape(const json_t *response, unsigned status, tg_str_t body,
    tg_buf_t *out);

#endif /* TG_SHAPE_H */
