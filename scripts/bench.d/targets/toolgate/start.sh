#!/bin/bash
# The product as an operator would run it: one worker, an admin key, a private Redis and the helper. $PRODUCT is a folder
# made by scripts/build.
set -euo pipefail
cd "$RUN"
mkdir -p logs tmp redis helper

key=bench-$(head -c 24 /dev/urandom | base64 | tr -d '+/=')
printf '%s\n' "$key" > admin.key
head -c 32 /dev/urandom | base64 > master.key
chmod 600 admin.key master.key
echo '127.0.0.1 localhost' > hosts

# every agent and model that a bench asks for by name
rounds=(1 3 5) calls=(1 5)
loops=(loop-3x1 loop-3x5)
for r in "${rounds[@]}"; do
    for c in "${calls[@]}"; do
        loops+=("loop-${r}x${c}-d4-t4")
    done
done

agent()
{
    local delay=0

    case $1 in *-t*) delay=${1##*-t} ;; esac
    printf '{"name":"%s","model":"mock-%s","instructions":"You are a helpful assistant of a shop.",
 "variables":{"delay":"%s"},"tools":{"max_tool_rounds":5,"http":[{"tool":"lookup"}]}}' "$1" "$1" "$delay"
}

{
    cat <<END
{"tools":[{"name":"lookup","description":"Looks up an order.","effect":"read","config":{"method":"GET",
 "url":"https://localhost:${TOOL_TLS#*:}/t/{{var.delay}}/orders/{{args.order_id}}",
 "parameters":{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"],"additionalProperties":false},
 "response":{"fields":[{"path":"order.status","label":"status"},{"path":"order.carrier.eta","label":"eta"}]}}}],
"agents":[
END
    separator=
    for l in "${loops[@]}"; do
        printf '%s' "$separator"
        agent "$l"
        separator=$',\n'
    done
    echo ']}'
} > catalog.json

store=
if command -v redis-server >/dev/null; then
    redis-server --port 0 --unixsocket "$RUN/redis/redis.sock" --dir "$RUN/redis" --appendonly yes --appendfsync everysec \
        --save '' --daemonize no > logs/redis.log 2>&1 &
    echo $! >> pids
    store="toolgate_redis unix:$RUN/redis/redis.sock;"
fi

helper=
if [ -x "$PRODUCT/toolgated" ]; then
    "$PRODUCT/toolgated" --socket "$RUN/helper.sock" --state "$RUN/helper" --peer-uid "$(id -u)" > logs/helper.log 2>&1 &
    echo $! >> pids
    helper="toolgate_helper unix:$RUN/helper.sock;"
fi

{
    cat <<END
load_module $PRODUCT/ngx_http_toolgate_module.so;
daemon off;
$([ "$(id -u)" -ne 0 ] || echo "user root;")
worker_processes 1;
worker_rlimit_nofile 20000;
error_log $RUN/logs/error.log warn;
pid $RUN/nginx.pid;
events { worker_connections 10000; multi_accept on; }
http {
    access_log off;
    client_body_temp_path $RUN/tmp/b; proxy_temp_path $RUN/tmp/p;
    fastcgi_temp_path $RUN/tmp/f; uwsgi_temp_path $RUN/tmp/u; scgi_temp_path $RUN/tmp/s;
    keepalive_requests 100000000;
    keepalive_timeout 300s;
    tcp_nodelay on;

    toolgate_zone tg 10m;
    $store
    $helper
    toolgate_admin_key $RUN/admin.key;
    toolgate_master_key $RUN/master.key;
    toolgate_catalog $RUN/catalog.json;
    toolgate_netguard_allow 127.0.0.1/32 ${TOOL_TLS#*:};
    toolgate_hosts $RUN/hosts;
    toolgate_ca $CA;

    upstream model { server $MODEL; keepalive 2048; keepalive_requests 100000000; }
    server {
        listen 127.0.0.1:$PORT backlog=4096;
END
    for m in $MODELS; do
        echo "        toolgate_model $m location=/_model;"
    done
    # an agent and a model cannot have one name
    for l in "${loops[@]}"; do
        echo "        toolgate_model mock-$l location=/_model model=$l;"
    done
    cat <<END
        location /v1/ { toolgate_api; toolgate_max_body 64m; ${TOOLGATE_LIMIT:-} }
        location = /_model {
            internal;
            proxy_pass http://model/v1/chat/completions;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_buffering off;
            proxy_buffer_size ${MODEL_BUFFER:-16k}; proxy_buffers 4 ${MODEL_BUFFER:-16k};
            proxy_read_timeout 300s;
        }
    }
}
END
} > nginx.conf

printf 'Authorization: Bearer %s\n' "$key" > headers
exec nginx -e "$RUN/logs/error.log" -p "$RUN" -c "$RUN/nginx.conf"
