/*
 * Where the control group hierarchies are, read from the kernel's two tables. The
 * tables are parameters, so that those of other machines can be tried.
 */

#ifndef TGD_CGROUP_FIND_H
#define TGD_CGROUP_FIND_H

#include "tgd.h"


#define TGD_CGROUP_PATH_MAX  4096
#define TGD_CGROUP_TEXT_MAX  (64 * 1024)


/* Reads a small file whole, with a final NUL; the caller frees. NULL: no file. */
char *tgd_cgroup_text(int dir, const char *path);

/* Mount point and root of a controller's v1 hierarchy, or of the v2 tree (NULL). Both
 * buffers hold TGD_CGROUP_PATH_MAX. */
bool tgd_cgroup_mount(const char *mountinfo, const char *controller, char *point,
    char *root);

/* Our own path in it, from /proc/self/cgroup. */
bool tgd_cgroup_self(const char *cgroups, const char *controller, char *path);

/* Opens the directory of our own group, whose path is put into where; -1: none. */
int tgd_cgroup_open(const char *mountinfo, const char *cgroups, const char *controller,
    char *where);

#endif /* TGD_CGROUP_FIND_H */
