/*
 * What is kept of one output stream of a job, and how it is shown in a result.
 */

#ifndef TGD_OUTPUT_H
#define TGD_OUTPUT_H

#include "tgd.h"


#define TGD_CAPTURE_MAX    (1024 * 1024)        /* bytes kept of a stream */
#define TGD_OUTPUT_MAX     (16 * 1024 * 1024)   /* bytes of both: then the job ends */
#define TGD_SHOWN_MAX      50000                /* code points shown whole */
#define TGD_PREVIEW_CHARS  8000                 /* shown of what is longer */

typedef struct {
    tg_buf_t  kept;
    uint64_t  bytes;         /* all that came */
    uint64_t  lost_chars;    /* of what was not kept */
} tgd_output_t;


void tgd_output_init(tgd_output_t *output);
void tgd_output_free(tgd_output_t *output);

/* Takes bytes: keeps what fits, counts all. */
void tgd_output_add(tgd_output_t *output, const char *data, size_t len);

/* Appends ,"NAME":"…","NAME_truncated":…,"NAME_original_chars":…,
 * "NAME_preview_chars":… (and "NAME_invalid_utf8":true). Longer than shown_max code
 * points: only the first TGD_PREVIEW_CHARS. */
void tgd_output_json(const tgd_output_t *output, const char *name, size_t shown_max,
    tg_buf_t *out);

#endif /* TGD_OUTPUT_H */
