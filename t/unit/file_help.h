/*
 * What tests of the helper look at files with.
 */

#ifndef FILE_HELP_H
#define FILE_HELP_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>


/* The whole of a small file. */
static inline void
assert_file(int dir, const char *name, const char *expected)
{
    int      fd;
    char     text[4096];
    ssize_t  n;

    fd = openat(dir, name, O_RDONLY|O_CLOEXEC);
    assert_int_not_equal(fd, -1);
    n = read(fd, text, sizeof(text) - 1);
    assert_in_range(n, 0, (ssize_t) sizeof(text) - 2);
    text[n] = '\0';
    assert_string_equal(text, expected);
    (void) close(fd);
}

#endif /* FILE_HELP_H */
