/*
 * Any bytes as a tool definition, or as a template and the values put into it.
 * Whatever renders must be a request to the host of the template, without dot
 * segments or control characters, with a body that is JSON, and the same each time.
 */

#include <stdio.h>
#include <stdlib.h>

#include "tg_json.h"
#include "tg_template.h"


#define FUZZ_HOST  "https://h.test/"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tg_str_t              hosts[] = { tg_str("h.test") };
static const tg_template_secret_t  secrets[] = { { tg_str("K"), tg_str("k+/="), hosts, 1 } };


static void
must(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "broken: %s\n", what);
        abort();
    }
}


/* Takes the bytes up to the next NUL. */
static tg_str_t
take(const uint8_t **data, size_t *size)
{
    tg_str_t  piece = { 0, (const char *) *data };

    while (piece.len < *size && (*data)[piece.len] != 0) {
        piece.len++;
    }

    *data += piece.len + (piece.len < *size);
    *size -= piece.len + (piece.len < *size);

    return piece;
}


static void
check_request(const tg_template_request_t *request, bool own_host)
{
    size_t            i, k;
    json_t           *body;
    unsigned char     c;
    tg_json_error_t   error;

    must(!tg_url_dot_segment(request->parts.target), "dot segment");
    must(!own_host || strcmp(request->parts.host, "h.test") == 0, "host");
    must(request->parts.target.data >= request->url.data, "target");

    for (i = 0; i < request->header_count; i++) {

        for (k = 0; k < request->headers[i].value.len; k++) {
            c = (unsigned char) request->headers[i].value.data[k];
            must(c >= 0x20 && c != 0x7f, "header");
        }
    }

    if (request->has_body) {
        body = tg_json_load(tg_buf_get(&request->body), &error);

        /* JSON all the same, only past what our loader takes */
        must(body != NULL || strcmp(error.reason, "depth over 128") == 0
             || strcmp(error.reason, "number out of range") == 0, "body");
        json_decref(body);
    }
}


static void
run(const json_t *tool, json_t *args, const json_t *user, bool own_host)
{
    char                    pointer[64];
    const char             *code, *again_code;
    tg_template_t          *template;
    tg_template_error_t     error;
    tg_template_values_t    values = { args, user, user, secrets, 1, NULL };
    tg_template_request_t   request, again;

    template = tg_template_compile(tool, NULL, &error);

    if (template == NULL) {
        must(error.code != NULL && error.reason[0] != '\0', "error");
        return;
    }

    must(tg_template_fold_digits(args) == TG_OK, "digits");
    (void) tg_template_check_formats(template, args, pointer, sizeof(pointer));

    code = tg_template_render(template, &values, &request);
    again_code = tg_template_render(template, &values, &again);
    must(code == again_code, "verdict changes");

    if (code == NULL) {
        check_request(&request, own_host);
        must(tg_str_eq(tg_buf_get(&request.body), tg_buf_get(&again.body))
             && tg_str_eq(tg_buf_get(&request.url), tg_buf_get(&again.url)),
            "bytes change");
    }

    tg_template_request_free(&request);
    tg_template_request_free(&again);
    tg_template_free(template);
}


/* path \0 header \0 body text \0 value \0 text value */
static void
run_pieces(const uint8_t *data, size_t size)
{
    char      url[2048];
    json_t   *tool, *args, *user;
    tg_str_t  path = take(&data, &size), header = take(&data, &size);
    tg_str_t  body = take(&data, &size), value = take(&data, &size);
    tg_str_t  text = take(&data, &size);

    if (path.len > 1024) {
        return;
    }

    snprintf(url, sizeof(url), FUZZ_HOST "%.*s", (int) path.len, path.data);

    tool = json_pack("{s:s, s:b, s:{s:s, s:s, s:{s:s%}, s:{s:s%, s:[s]}, s:{s:s, s:{s:{},"
        "s:{s:s}}}}}", "name", "t", "requires_verified_user", 1, "config", "method", "POST",
        "url", url, "headers", "X-A", header.data, header.len, "body", "k", body.data,
        body.len, "l", "{{args.t}}", "parameters", "type", "object", "properties", "x", "t",
        "x-kagent-format", "text");
    args = json_pack("{s:s%, s:s%}", "x", value.data, value.len, "t", text.data, text.len);
    user = json_pack("{s:s%, s:{s:s%}, s:s%}", "external_id", text.data, text.len, "traits",
        "k", value.data, value.len, "v", text.data, text.len);

    if (tool != NULL && args != NULL && user != NULL) {
        run(tool, args, user, true);
    }

    json_decref(tool);
    json_decref(args);
    json_decref(user);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t           *tool, *args;
    tg_str_t          piece;
    tg_json_error_t   error;

    if (size == 0) {
        return 0;
    }

    if (data[0] % 2 == 0) {
        run_pieces(data + 1, size - 1);
        return 0;
    }

    data++;
    size--;
    piece = take(&data, &size);
    tool = tg_json_load(piece, &error);
    args = tg_json_load(take(&data, &size), &error);

    if (args == NULL) {
        args = json_pack("{s:s, s:i}", "x", "8812", "t", 5);
    }

    if (tool != NULL) {
        run(tool, args, NULL, false);
    }

    json_decref(tool);
    json_decref(args);

    return 0;
}
