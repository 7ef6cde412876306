/*
 * The control plane's requests: a small JSON body, a look at what the store has
 * now, an act, an answer. What objects there are is in the file of each family.
 */

#ifndef NGX_HTTP_TOOLGATE_CONTROL_H
#define NGX_HTTP_TOOLGATE_CONTROL_H

#include "ngx_http_toolgate_api.h"
#include "ngx_http_toolgate_registry.h"


#define NGX_HTTP_TOOLGATE_CONTROL_TRIES   20     /* of a change without If-Match */
#define NGX_HTTP_TOOLGATE_LIST_BYTES_MAX  (8 * 1024 * 1024)   /* of a page's objects */
#define NGX_HTTP_TOOLGATE_NAME_CHARS_MAX  64     /* of keys and the like */

typedef struct ngx_http_toolgate_control_s  ngx_http_toolgate_control_t;

/* Ends in a reply, or in a write whose callback replies. */
typedef void (*ngx_http_toolgate_act_pt)(ngx_http_toolgate_control_t *c);

struct ngx_http_toolgate_control_s {
    ngx_http_request_t           *request;
    ngx_http_toolgate_key_t      *key;
    ngx_http_toolgate_project_t  *project;
    ngx_str_t                     rest;       /* of the path, "" or "/…" */
    json_t                       *body;       /* NULL: none was sent */
    ngx_http_toolgate_act_pt      act;
    void                         *data;       /* of the act */
    ngx_uint_t                    expected;   /* of If-Match; 0 = any */
    ngx_uint_t                    tries;
    const char                   *conflict;   /* code for a name that is taken */

    /* of a write under way */
    ngx_http_toolgate_act_pt      written;
    ngx_str_t                     id;
    json_t                       *reply;      /* what is shown once, or NULL */
    ngx_uint_t                    status;
};

/* One family of objects. */
typedef struct {
    ngx_http_toolgate_kind_e      kind;
    const char                   *prefix;     /* of ids, "tool_" */
    const char                   *member;     /* of the document: its definition */
    /* Checks a whole definition and fills doc beyond "id" and the times; doc's
     * definition is set already when member is not NULL. On a fault it has called
     * _control_error and returns NGX_ERROR. old is NULL for a new object. */
    ngx_int_t                   (*define)(ngx_http_toolgate_control_t *c,
                                          json_t *definition,
                                          ngx_http_toolgate_object_t *old,
                                          json_t *doc);
    /* A new reference to what a client may see. */
    json_t                     *(*view)(ngx_http_toolgate_object_t *object);
    /* The same of the i-th object of files; NULL past the last. */
    json_t                     *(*file)(ngx_http_toolgate_control_t *c,
                                        ngx_uint_t i);
    /* Another path below an object, NULL for one of files; NGX_DECLINED: there
     * is none. */
    ngx_int_t                   (*below)(ngx_http_toolgate_control_t *c,
                                         ngx_http_toolgate_object_t *object,
                                         ngx_str_t *rest);
    unsigned                      patch:1;    /* objects can be changed */
} ngx_http_toolgate_collection_t;


/* Reads the body when there is one, refreshes the registry, calls act. What a
 * content handler returns. */
ngx_int_t ngx_http_toolgate_control(ngx_http_request_t *r,
    ngx_http_toolgate_key_t *key, ngx_str_t *rest, ngx_http_toolgate_act_pt act,
    void *data);

/* Answers; the reference to value is taken. */
void ngx_http_toolgate_control_reply(ngx_http_toolgate_control_t *c,
    ngx_uint_t status, json_t *value);
void ngx_http_toolgate_control_error(ngx_http_toolgate_control_t *c,
    const char *code, const char *message, const char *param);
void ngx_http_toolgate_control_method(ngx_http_toolgate_control_t *c,
    const char *allow);

/* Says what a builder found: its code, reason, and pointer as "a.b[0]". */
void ngx_http_toolgate_control_fault(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_catalog_t *cat);

/* NGX_OK when value is an object with none but these members; else it answers. */
ngx_int_t ngx_http_toolgate_control_known(ngx_http_toolgate_control_t *c,
    json_t *value, const char *const *members);

/* A string member of 1 to max bytes, or "" when it is absent and not required;
 * NGX_ERROR: it has answered. */
ngx_int_t ngx_http_toolgate_control_string(ngx_http_toolgate_control_t *c,
    json_t *value, const char *member, ngx_uint_t required, size_t max,
    tg_str_t *out);

/* Writes changes whose documents live in the request's pool; written is called
 * when that is done. A conflict without If-Match has the act called again. */
void ngx_http_toolgate_control_write(ngx_http_toolgate_control_t *c,
    ngx_http_toolgate_change_t *changes, ngx_uint_t n,
    ngx_http_toolgate_act_pt written);

/* Dumps a document into the request's pool; data NULL: it has answered. */
tg_str_t ngx_http_toolgate_control_dump(ngx_http_toolgate_control_t *c,
    json_t *doc);

/* A new random id in the request's pool; data NULL: it has answered. */
ngx_str_t ngx_http_toolgate_control_id(ngx_http_toolgate_control_t *c,
    const char *prefix);

/* List, create, show, change and delete: the act of most families. */
void ngx_http_toolgate_collection(ngx_http_toolgate_control_t *c);

/* Answers with a page of values (the reference is taken), as the query's limit and
 * after say. Each value has an "id". */
void ngx_http_toolgate_control_page(ngx_http_toolgate_control_t *c,
    json_t *values);

#endif /* NGX_HTTP_TOOLGATE_CONTROL_H */
