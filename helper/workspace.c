/*
 * Workspaces; see workspace.h. The owner of a directory is the record of which user
 * id an account has: there is no other file to lose or to disagree with.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tg_json.h"
#include "workspace.h"


/* above the ranges that container managers take for themselves */
#define TGD_SLOTS_HIGH        1900000000u
#define TGD_SLOTS_HIGH_COUNT  65536u
/* where a container maps 16 bits only: what Debian keeps for packages */
#define TGD_SLOTS_LOW         62000u
#define TGD_SLOTS_LOW_COUNT   3000u


void
tgd_workspace_name(tg_str_t project, tg_str_t account,
    char name[TGD_WORKSPACE_HEX + 1])
{
    char    text[160];
    size_t  len;

    /* labels are at most 64 bytes and hold no NUL, so this can not collide */
    memcpy(text, "workspace", 10);
    len = 10;
    memcpy(text + len, project.data, project.len);
    len += project.len;
    text[len++] = '\0';
    if (account.len != 0) {
        memcpy(text + len, account.data, account.len);
        len += account.len;
    }

    tg_json_sha256_hex((tg_str_t) { len, text }, name);
}


bool
tgd_workspace_name_valid(const char *name)
{
    size_t  i;

    for (i = 0; i < TGD_WORKSPACE_HEX; i++) {
        if (!((name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'f'))) {
            return false;
        }
    }

    return name[i] == '\0';
}


/* true when the ids [first, first + count) exist in this user namespace */
static bool
ids_mapped(const char *map, uint32_t first, uint32_t count)
{
    char           line[128];
    bool           found;
    FILE          *file;
    unsigned long  inside, outside, length;

    file = fopen(map, "re");
    if (file == NULL) {
        return false;
    }

    found = false;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        found = sscanf(line, "%lu %lu %lu", &inside, &outside, &length) == 3
                && inside <= first && inside + length >= (unsigned long) first + count;
    }

    (void) fclose(file);
    return found;
}


static bool
range_mapped(uint32_t first, uint32_t count)
{
    return ids_mapped("/proc/self/uid_map", first, count)
           && ids_mapped("/proc/self/gid_map", first, count);
}


void
tgd_slots_init(tgd_slots_t *slots)
{
    memset(slots, 0, sizeof(*slots));

    if (geteuid() != 0) {
        return;
    }

    if (range_mapped(TGD_SLOTS_HIGH, TGD_SLOTS_HIGH_COUNT)) {
        slots->first = TGD_SLOTS_HIGH;
        slots->count = TGD_SLOTS_HIGH_COUNT;

    } else if (range_mapped(TGD_SLOTS_LOW, TGD_SLOTS_LOW_COUNT)) {
        slots->first = TGD_SLOTS_LOW;
        slots->count = TGD_SLOTS_LOW_COUNT;
    }
}


static void
slot_mark(tgd_slots_t *slots, uid_t uid)
{
    uint32_t  i;

    if (uid >= slots->first && uid - slots->first < slots->count) {
        i = uid - slots->first;
        slots->used[i / 8] |= (uint8_t) (1u << (i % 8));
    }
}


int
tgd_slots_scan(tgd_slots_t *slots, int root)
{
    int             copy;
    DIR            *list;
    struct stat     st;
    struct dirent  *entry;

    if (slots->count == 0) {
        return 0;
    }

    slots->used = calloc(1, slots->count / 8 + 1);
    copy = openat(root, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    list = copy == -1 ? NULL : fdopendir(copy);

    if (slots->used == NULL || list == NULL) {
        return -1;
    }

    slot_mark(slots, slots->first);

    while ((entry = readdir(list)) != NULL) {
        if (tgd_workspace_name_valid(entry->d_name)
            && fstatat(root, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        {
            slot_mark(slots, st.st_uid);
        }
    }

    (void) closedir(list);
    return 0;
}


/* a free user id, near where the name points */
static bool
slot_take(tgd_slots_t *slots, const char *name, uid_t *uid)
{
    char      head[9];
    uint32_t  i, n;

    memcpy(head, name, 8);
    head[8] = '\0';
    i = (uint32_t) strtoul(head, NULL, 16) % slots->count;

    for (n = 0; n < slots->count; n++) {
        if (!(slots->used[i / 8] & (1u << (i % 8)))) {
            slots->used[i / 8] |= (uint8_t) (1u << (i % 8));
            *uid = slots->first + i;
            return true;
        }
        i = (i + 1) % slots->count;
    }

    return false;
}


/* gives a workspace its owner: once, or again after a crash in between */
static int
workspace_claim(tgd_slots_t *slots, int dir, const char *name, uid_t *owner)
{
    struct stat  st;

    if (fstat(dir, &st) == -1) {
        return -1;
    }

    *owner = st.st_uid;

    if (slots->count == 0) {
        if (st.st_uid != geteuid()) {
            errno = EPERM;
            return -1;
        }
        return 0;
    }

    if (st.st_uid > slots->first && st.st_uid - slots->first < slots->count) {
        return 0;
    }

    /* only a directory that was just made belongs to root */
    if (st.st_uid != 0) {
        errno = EPERM;
        return -1;
    }

    if (!slot_take(slots, name, owner)) {
        errno = EUSERS;
        return -1;
    }

    return fchown(dir, *owner, *owner);
}


int
tgd_workspace_open(tgd_slots_t *slots, int root, const char *name, uid_t *owner)
{
    int  dir, error;

    if (mkdirat(root, name, 0700) == -1 && errno != EEXIST) {
        return -1;
    }

    dir = openat(root, name, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);
    if (dir == -1) {
        return -1;
    }

    if (workspace_claim(slots, dir, name, owner) == -1) {
        error = errno;
        (void) close(dir);
        errno = error;
        return -1;
    }

    return dir;
}
