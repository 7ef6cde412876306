/*
 * What the benches of core/ share: clocks, medians, growth of cost with size, the
 * line that says whether a bar was held.
 */

#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>


static inline double
measure_clock_us(clockid_t clock)
{
    struct timespec  ts;

    (void) clock_gettime(clock, &ts);

    return (double) ts.tv_sec * 1e6 + (double) ts.tv_nsec / 1e3;
}


static inline int
measure_compare(const void *one, const void *two)
{
    double  a, b;

    a = *(const double *) one;
    b = *(const double *) two;

    return (a > b) - (a < b);
}


/* Sorts; share 0.5 is the median. */
static inline double
measure_share(double *values, size_t count, double share)
{
    qsort(values, count, sizeof(double), measure_compare);

    return values[(size_t) ((double) (count - 1) * share)];
}


/* The power of the size with which cost grows: 1 is linear. */
static inline double
measure_growth(double small_cost, double large_cost, double factor)
{
    return log(large_cost / small_cost) / log(factor);
}


static inline bool
measure_bar(const char *what, double value, double bar, const char *unit)
{
    bool  held;

    held = value < bar;
    printf("%s: %.3g%s, must be under %.3g%s: %s\n", what, value, unit, bar, unit,
           held ? "met" : "MISSED");

    return held;
}

#endif /* BENCH_MEASURE_H */
