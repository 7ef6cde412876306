# Which endpoint a request is for.

use lib 't/lib';
use ToolgateTest;

plan('no_plan');
run_tests();

__DATA__

=== TEST 1: unknown paths
--- request eval
["GET /v1/", "GET /v1/nothing", "GET /v1/chat", "POST /v1/chat/completions/more\n{}", "GET /v1/modelsx", "GET /v1/models%00x", "GET /v1/MODELS"]
--- error_code eval
[404, 404, 404, 404, 404, 400, 404]
--- response_body_like eval
[('"type":"not_found_error","code":"unknown_url","param":null') x 5, '400 Bad Request', '"code":"unknown_url"']
--- no_error_log
[alert]



=== TEST 2: an unknown path is told without a key
--- request
GET /v1/nothing
--- more_headers
X-None: 1
--- error_code: 404
--- response_body_like: "code":"unknown_url"



=== TEST 3: known paths, wrong methods
--- request eval
["GET /v1/chat/completions", "DELETE /v1/models", "PUT /v1/models/a\n{}", "POST /v1/tool_signing_secret\n{}"]
--- error_code eval
[405, 405, 405, 405]
--- response_headers eval
["Allow: POST", "Allow: GET", "Allow: GET", "Allow: GET"]
--- response_body_like eval
[('"type":"invalid_request_error","code":"method_not_allowed"') x 4]



=== TEST 4: what is named and not built
--- request eval
["POST /v1/moderations\n{}", "GET /v1/handoffs", "GET /v1/flags", "GET /v1/webhooks", "POST /v1/embeddings\n{}",
 "POST /v1/toolsets/call\n{}"]
--- error_code eval
[(501) x 6]
--- response_body_like eval
[('"type":"api_error","code":"not_implemented"') x 6]



=== TEST 5: the API below another location, by rewrite
--- config
location /ai/ { rewrite ^/ai(/.*) $1 break; toolgate_api; }
--- request
GET /ai/v1/models/m
--- response_body_like: "id":"m"



=== TEST 6: query strings do not matter
--- request
GET /v1/models/m?x=1
--- response_body_like: "id":"m"



=== TEST 7: models: the list
--- catalog
{"agents":[{"name":"b","model":"m"},{"name":"a","model":"m2"}]}
--- toolgate
toolgate_model m2 location=/_model/m;
--- request
GET /v1/models
--- response_headers
Content-Type: application/json
--- response_body eval
'{"object":"list","data":[{"id":"b","object":"model","created":0,"owned_by":"toolgate"},{"id":"a","object":"model","created":0,"owned_by":"toolgate"},{"id":"m","object":"model","created":0,"owned_by":"model"},{"id":"m2","object":"model","created":0,"owned_by":"model"}],"has_more":false}'



=== TEST 8: models: one, by name and by id, and none
--- request eval
["GET /v1/models/a", "GET /v1/models/m", "GET /v1/models/none", "GET /v1/models/"]
--- error_code eval
[200, 200, 404, 200]
--- response_body_like eval
['"owned_by":"toolgate"', '"owned_by":"model"', '"code":"model_not_found","param":"model"', '"object":"list"']



=== TEST 9: a location that is for models only is not open to clients
--- request
POST /_model/m
{}
--- error_code: 404



=== TEST 10: a model of a server hides the one of http, and is not seen elsewhere
--- http_config
server {
    listen 127.0.0.1:$TEST_NGINX_RAND_PORT_2;
    toolgate_model extra location=/x;
    location /v1/ { toolgate_api; }
}
--- request
GET /v1/models/extra
--- error_code: 404
--- response_body_like: "code":"model_not_found"



=== TEST 11: steps of a run: without Redis, what is no id, neighbours
--- request eval
["GET /v1/runs/run_0000000000000000000000/steps", "GET /v1/runs/run_1/steps", "GET /v1/runs//steps", "GET /v1/runs/run_1/steps/x", "GET /v1/runs"]
--- error_code eval
[503, 503, 503, 404, 503]
--- response_body_like eval
[('"code":"store_unavailable"') x 3, '"code":"unknown_url"', '"code":"store_unavailable"']



=== TEST 12: steps of a run: methods
--- request eval
["POST /v1/runs/run_1/steps\n{}", "DELETE /v1/runs/run_1/steps"]
--- error_code eval
[405, 405]
--- response_headers eval
["Allow: GET", "Allow: GET"]
--- response_body_like eval
[('"code":"method_not_allowed"') x 2]
