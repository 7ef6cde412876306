/*
 * Time zone files for tests: one that is written here, and those of the system.
 */

#ifndef TG_TEST_ZONE_FILE_H
#define TG_TEST_ZONE_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tg_zone.h"


#define ZONE_FILE_MAX      4096
#define ZONE_FILE_SYSTEM   "/usr/share/zoneinfo"

typedef struct {
    int64_t  at;
    int32_t  offset;    /* from then on */
} zone_change_t;

typedef struct {
    char    data[ZONE_FILE_MAX];
    size_t  len;
} zone_file_t;


static inline void
zone_file_number(zone_file_t *file, int64_t value, unsigned bytes)
{
    while (bytes-- > 0) {
        file->data[file->len++] = (char) ((uint64_t) value >> bytes * 8);
    }
}


static inline void
zone_file_header(zone_file_t *file, char version, size_t times, size_t types)
{
    memset(file->data + file->len, 0, 44);
    memcpy(file->data + file->len, "TZif", 4);
    file->data[file->len + 4] = version;
    file->len += 32;
    zone_file_number(file, (int64_t) times, 4);
    zone_file_number(file, (int64_t) types, 4);
    zone_file_number(file, 4, 4);    /* one abbreviation */
}


/* A file of version 2 or 3 whose 32-bit block is as small as it may be. Type 0 is
 * the offset before all changes, type i + 1 that of change i. */
static inline void
zone_file_write(zone_file_t *file, char version, int32_t before,
    const zone_change_t *changes, size_t count, const char *footer)
{
    size_t  i;

    file->len = 0;
    zone_file_header(file, version, 0, 1);
    zone_file_number(file, 0, 6);
    zone_file_number(file, 0x4c4d5400, 4);

    zone_file_header(file, version, count, count + 1);

    for (i = 0; i < count; i++) {
        zone_file_number(file, changes[i].at, 8);
    }

    for (i = 0; i < count; i++) {
        zone_file_number(file, (int64_t) i + 1, 1);
    }

    zone_file_number(file, before, 4);
    zone_file_number(file, 0, 2);

    for (i = 0; i < count; i++) {
        zone_file_number(file, changes[i].offset, 4);
        zone_file_number(file, 0, 2);
    }

    zone_file_number(file, 0x4c4d5400, 4);
    file->len += (size_t) snprintf(file->data + file->len, ZONE_FILE_MAX - file->len,
                                   "\n%s\n", footer);
}


static inline tg_str_t
zone_file_bytes(const zone_file_t *file)
{
    return (tg_str_t) { file->len, file->data };
}


/* The bytes of a zone of the system, to be freed; data NULL when it has none. */
static inline tg_str_t
zone_file_system(const char *name)
{
    FILE    *file;
    char     path[512], *data;
    size_t   len;

    snprintf(path, sizeof(path), ZONE_FILE_SYSTEM "/%s", name);
    file = fopen(path, "r");

    if (file == NULL) {
        return tg_null_str;
    }

    data = malloc(TG_ZONE_FILE_MAX + 1);
    len = data == NULL ? 0 : fread(data, 1, TG_ZONE_FILE_MAX + 1, file);
    fclose(file);

    return (tg_str_t) { len, data };
}

#endif /* TG_TEST_ZONE_FILE_H */
