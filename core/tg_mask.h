/*
 * Masks known secrets in texts that are kept: a secret is found as it is, percent-
 * encoded, escaped for JSON or HTML (also more than once), and inside of base64.
 * It knows nothing of where a text comes from or goes to.
 */

#ifndef TG_MASK_H
#define TG_MASK_H

#include "tg.h"
#include "tg_buf.h"


#define TG_MASK_TEXT          "***"
/* a secret of fewer bytes is masked only where no letter or digit touches it */
#define TG_MASK_SHORT         6
/* characters of base64 that are the secret's alone; fewer are not looked for */
#define TG_MASK_BASE64_MIN    6
/* bytes of a secret at the end of a text that goes on; fewer show nothing */
#define TG_MASK_OPEN_MIN      3
#define TG_MASK_PERCENT_DEPTH 3      /* %2525.. */
#define TG_MASK_SECRET_MAX    (64 * 1024)

typedef struct tg_mask_s  tg_mask_t;


/* Makes an empty one, or NULL. tg_mask_free clears what it held. */
tg_mask_t *tg_mask_new(void);
void tg_mask_free(tg_mask_t *mask);

/* Adds a secret, which is copied; an empty one, or one that is there, adds nothing.
 * TG_E_LIMIT over TG_MASK_SECRET_MAX bytes, TG_E_NOMEM. */
tg_rc_e tg_mask_add(tg_mask_t *mask, tg_str_t secret);

/*
 * Appends text with every secret replaced by TG_MASK_TEXT, at most max bytes and no
 * part of a character; *whole says whether all of it went in. open: text is the
 * beginning of a longer one, so what a secret could begin with at its end is masked
 * too. mask may be NULL. The time is linear in text for secrets that do not repeat
 * themselves. TG_OK or the error of out.
 */
tg_rc_e tg_mask_text(const tg_mask_t *mask, tg_str_t text, bool open, size_t max,
    tg_buf_t *out, bool *whole);

#endif /* TG_MASK_H */
