/*
 * Names of the temporary files that new content lies in before it is put in place.
 */

#ifndef TGD_STAGE_H
#define TGD_STAGE_H

#include <sys/stat.h>

#include "tgd.h"


/* True for such a name. Tools neither show files of such names nor take the names. */
bool tgd_stage_is_temp(const char *name);

/* Removes one that a worker has left which was killed. False: it may be in use. */
bool tgd_stage_sweep(int dir, const char *name, const struct stat *st);

#endif /* TGD_STAGE_H */
