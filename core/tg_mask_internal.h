/*
 * Inside of tg_mask: one secret in one form. Nobody else includes this.
 */

#ifndef TG_MASK_INTERNAL_H
#define TG_MASK_INTERNAL_H

#include "tg_mask.h"


typedef struct tg_mask_pattern_s  tg_mask_pattern_t;

struct tg_mask_pattern_s {
    tg_mask_pattern_t  *next;
    tg_mask_pattern_t  *same;      /* the next with this first byte */
    size_t              len;       /* at least 1 */
    bool                alone;     /* only where no letter or digit touches it */
    bool                base64;    /* + is -, / is _ */
    char                data[];
};


#define TG_MASK_FIRSTS_MAX  4

/* The bytes with which a pattern may begin that begins here in text (len > 0), each
 * once; none: it may be any. */
size_t tg_mask_firsts(const char *text, size_t len, uint8_t firsts[TG_MASK_FIRSTS_MAX]);

/* Bytes of text that are the pattern, escaped in whatever way; 0 when they are not
 * it. With open, a text that ends within the pattern is it too, from
 * TG_MASK_OPEN_MIN bytes on. */
size_t tg_mask_match(const tg_mask_pattern_t *pattern, const char *text, size_t len,
    bool open);

#endif /* TG_MASK_INTERNAL_H */
