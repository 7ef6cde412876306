/*
 * Names of the temporary files that new content lies in before it is put in place.
 */

#ifndef TGD_STAGE_H
#define TGD_STAGE_H

#include "tgd.h"


/* True for such a name. Tools neither show these files nor take their names. */
bool tgd_stage_is_temp(const char *name);

#endif /* TGD_STAGE_H */
