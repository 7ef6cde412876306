/*
 * The log: one JSON object a line, to a file or to standard error. It carries no
 * content of calls: neither commands nor values of variables nor output.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "tgd.h"


#define TGD_LOG_LINE_MAX  2048

static int  tgd_log_fd = STDERR_FILENO;


tgd_msec_t
tgd_monotonic_ms(void)
{
    return tgd_monotonic_us() / 1000;
}


int64_t
tgd_monotonic_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


double
tgd_wall_clock(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    return (double) ts.tv_sec + (double) (ts.tv_nsec / 1000) / 1e6;
}


int
tgd_log_open(const char *path)
{
    int  fd;

    if (path == NULL) {
        return 0;
    }

    fd = open(path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0640);
    if (fd == -1) {
        return -1;
    }

    tgd_log_fd = fd;
    return 0;
}


static void
log_line(tgd_log_level_e level, const char *event, const char *members, va_list args)
{
    static const char  *names[] = { "info", "warn", "error" };

    int              n, m;
    char             line[TGD_LOG_LINE_MAX], stamp[32];
    ssize_t          written;
    struct tm        tm;
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);
    (void) gmtime_r(&ts.tv_sec, &tm);
    (void) strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);

    n = snprintf(line, sizeof(line), "{\"ts\":\"%s.%03ldZ\",\"lvl\":\"%s\",\"ev\":\"%s\"",
                 stamp, ts.tv_nsec / 1000000, names[level], event);

    if (members[0] != '\0') {
        line[n++] = ',';
        m = vsnprintf(line + n, sizeof(line) - (size_t) n - 3, members, args);
        if (m < 0 || m >= (int) sizeof(line) - n - 3) {
            /* a cut line would not be JSON */
            m = snprintf(line + n, sizeof(line) - (size_t) n - 3, "\"cut\":true");
        }
        n += m;
    }

    line[n++] = '}';
    line[n++] = '\n';

    do {
        written = write(tgd_log_fd, line, (size_t) n);
    } while (written == -1 && errno == EINTR);
}


void
tgd_log(tgd_log_level_e level, const char *event, const char *members, ...)
{
    va_list  args;

    va_start(args, members);
    log_line(level, event, members, args);
    va_end(args);
}


void
tgd_die(const char *event, const char *members, ...)
{
    va_list  args;

    va_start(args, members);
    log_line(TGD_LOG_ERROR, event, members, args);
    va_end(args);

    exit(1);
}
