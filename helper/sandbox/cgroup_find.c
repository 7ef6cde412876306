/*
 * Finds control group hierarchies; see cgroup_find.h.
 */

#include <fcntl.h>
#include <unistd.h>

#include "sandbox/cgroup_find.h"


/* reads a small file whole, with a final NUL; the caller frees */
char *
tgd_cgroup_text(int dir, const char *path)
{
    int      fd;
    char    *text;
    size_t   len;
    ssize_t  n;

    fd = openat(dir, path, O_RDONLY|O_CLOEXEC);
    if (fd == -1) {
        return NULL;
    }

    text = malloc(TGD_CGROUP_TEXT_MAX + 1);
    len = 0;

    while (text != NULL && len < TGD_CGROUP_TEXT_MAX) {
        n = read(fd, text + len, TGD_CGROUP_TEXT_MAX - len);
        if (n <= 0) {
            break;
        }
        len += (size_t) n;
    }

    (void) close(fd);
    if (text != NULL) {
        text[len] = '\0';
    }

    return text;
}


/* true when word is one of the comma-separated words of list */
static bool
has_word(const char *list, const char *word)
{
    size_t       n;
    const char  *p;

    n = strlen(word);
    for (p = list; *p != '\0'; p++) {
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == '\0')) {
            return true;
        }
        p += strcspn(p, ",");
        if (*p == '\0') {
            break;
        }
    }

    return false;
}


/* mount point and root of the hierarchy of a controller (NULL: the v2 tree) */
bool
tgd_cgroup_mount(const char *mountinfo, const char *controller, char *point, char *root)
{
    char         line[2 * TGD_CGROUP_PATH_MAX], *tail;
    char         type[64], source[256], super[256];
    size_t       n;
    const char  *p;

    for (p = mountinfo; *p != '\0'; p += n + (p[n] == '\n')) {
        n = strcspn(p, "\n");
        if (n >= sizeof(line)) {
            continue;
        }
        memcpy(line, p, n);
        line[n] = '\0';

        tail = strstr(line, " - ");
        if (tail == NULL
            || sscanf(tail, " - %63s %255s %255s", type, source, super) != 3
            || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2)
        {
            continue;
        }

        if (controller == NULL ? strcmp(type, "cgroup2") == 0
                               : strcmp(type, "cgroup") == 0 && has_word(super, controller))
        {
            return true;
        }
    }

    return false;
}


/* our own path in a hierarchy, from /proc/self/cgroup */
bool
tgd_cgroup_self(const char *cgroups, const char *controller, char *path)
{
    int          at;
    char         names[256];
    size_t       n;
    unsigned     id;
    const char  *p;

    for (p = cgroups; *p != '\0'; p += n + (p[n] == '\n')) {
        n = strcspn(p, "\n");
        names[0] = '\0';

        if (sscanf(p, "%u:%n", &id, &at) != 1) {
            continue;
        }

        if (p[at] != ':') {
            if (sscanf(p + at, "%255[^:]", names) != 1) {
                continue;
            }
        }

        at += (int) strlen(names);
        if ((controller == NULL && names[0] == '\0' && id == 0)
            || (controller != NULL && has_word(names, controller)))
        {
            if (n < (size_t) at + 1 || n - (size_t) at - 1 >= TGD_CGROUP_PATH_MAX) {
                return false;
            }
            memcpy(path, p + at + 1, n - (size_t) at - 1);
            path[n - (size_t) at - 1] = '\0';
            return true;
        }
    }

    return false;
}


/* opens the directory of our own group in the hierarchy, or -1 */
int
tgd_cgroup_open(const char *mountinfo, const char *cgroups, const char *controller,
    char *where)
{
    int          n;
    char         point[TGD_CGROUP_PATH_MAX], root[TGD_CGROUP_PATH_MAX];
    char         path[TGD_CGROUP_PATH_MAX];
    size_t       len;
    const char  *rest;

    if (!tgd_cgroup_mount(mountinfo, controller, point, root)
        || !tgd_cgroup_self(cgroups, controller, path))
    {
        return -1;
    }

    /* a container may see a part of the hierarchy only */
    len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    rest = strncmp(path, root, len) == 0 ? path + len : path;

    n = snprintf(where, TGD_CGROUP_PATH_MAX, "%s%s%s", point, *rest == '/' ? "" : "/",
                 rest);
    if (n < 0 || n >= TGD_CGROUP_PATH_MAX) {
        return -1;
    }

    return open(where, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
}
