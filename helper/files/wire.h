/*
 * What goes over the socket of a file worker: one request with the arguments as JSON
 * behind it, one answer with its JSON and the session's new states behind it.
 *
 * A worker that has several files to put into place asks before the first one: it sends
 * an answer with nothing in it and waits for one byte. From then on the front lets it
 * end, whatever becomes of the call. A front that is past waiting closes the socket.
 */

#ifndef TGD_FILES_WIRE_H
#define TGD_FILES_WIRE_H

#include "files/work.h"


/* One worker's bounds. The front waits a little longer than it may take. */
#define TGD_FILES_WORK_MS     10000       /* walks and searches end by themselves */
#define TGD_FILES_TIME_S      20          /* then it is killed */
#define TGD_FILES_WAIT_MS     25000
#define TGD_FILES_COMMIT_S    10          /* anew, for files that go into place together */
#define TGD_FILES_GRACE_MS    12000       /* the front lets a commit end that long */
#define TGD_FILES_END_MS      2000        /* and one that it has killed then */
#define TGD_FILES_CPU_S       15
#define TGD_FILES_MEMORY_MIB  512         /* address space */
#define TGD_FILES_NOFILE      128
#define TGD_FILES_FILE_MIB    4           /* one file that it writes */

typedef struct {
    uint32_t  tool;                       /* tgd_tool_e */
    uint32_t  len;
    char      known[TGD_HASH_HEX + 1];
} tgd_file_request_t;

typedef struct {
    uint32_t  len;
    uint32_t  states_len;
} tgd_file_answer_t;

#endif /* TGD_FILES_WIRE_H */
