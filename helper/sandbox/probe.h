/*
 * What the self-test runs inside a sandbox, in place of a command and under the
 * same limits: it tries to get out and says what it could not do.
 */

#ifndef TGD_PROBE_H
#define TGD_PROBE_H


/* targets: "canary-path port abstract-name memory-MiB pids". Writes a line
 * "name ok" or "name FAILED" for each attempt, then "end", and exits. */
void tgd_probe_run(char *targets) __attribute__((noreturn));

#endif /* TGD_PROBE_H */
