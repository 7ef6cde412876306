/*
 * The frame of tg-probe and the functions that its units export. A unit gets one
 * input line as a JSON object and answers with one JSON value; it knows nothing
 * of stdin, of stdout or of the other units, and may not open files or sockets.
 */

#ifndef TG_PROBE_H
#define TG_PROBE_H

#include <jansson.h>


/*
 * Returns a new reference that the frame prints, or NULL when the line is not
 * understood (the frame then answers with an error). The frame copies the line's
 * "id" into an object that has none. A unit may keep state between lines.
 */
typedef json_t *(*tg_probe_unit_pt)(const json_t *line);

typedef struct {
    const char        *name;
    tg_probe_unit_pt   run;      /* NULL when the unit was not linked in */
} tg_probe_unit_t;


json_t *tg_probe_netguard(const json_t *line);
json_t *tg_probe_clean(const json_t *line);
json_t *tg_probe_schema(const json_t *line);
json_t *tg_probe_template(const json_t *line);
json_t *tg_probe_sign(const json_t *line);
json_t *tg_probe_jwt(const json_t *line);
json_t *tg_probe_shape(const json_t *line);
json_t *tg_probe_delta(const json_t *line);

/* Makes {"error":reason}, the answer to a line that a unit cannot work with. */
json_t *tg_probe_error(const char *reason);

#endif /* TG_PROBE_H */
