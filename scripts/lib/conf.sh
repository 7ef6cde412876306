# shellcheck shell=bash
# Writes the configuration of one state folder from the templates in conf/. Starts
# nothing. Needs common.sh and the variables that scripts/run sets from its options.

# values go into configuration files as they are: no quoting games
tg_plain()
{
    case $2 in
        *[!A-Za-z0-9_./:@%+=,~*?\[\]\&-]*)
            tg_die "$1 may hold only letters, digits and ./_-:@%+=,~*?[]&:" \
                   "$2" ;;
        '') tg_die "$1 is empty" ;;
    esac
}

# tg_fill TEMPLATE NAME=VALUE...: the template with each @NAME@ replaced
tg_fill()
{
    local text pair

    text=$(cat "$TG_REPO/conf/$1")
    shift
    for pair in "$@"; do
        text=${text//"@${pair%%=*}@"/"${pair#*=}"}
    done
    printf '%s\n' "$text"
}

# the name servers of resolv.conf, as nginx writes addresses
tg_system_resolvers()
{
    local word addr

    while read -r word addr _; do
        [ "$word" = nameserver ] || continue
        case $addr in
            *%*) ;;                     # link-local: nginx takes no zone
            *:*) printf '[%s] ' "$addr" ;;
            *) printf '%s ' "$addr" ;;
        esac
    done </etc/resolv.conf
}

tg_resolver_line()
{
    local addresses=$RESOLVER

    if [ -z "$addresses" ]; then
        addresses=$(tg_system_resolvers 2>/dev/null) || addresses=
        addresses=${addresses% }
    fi
    if [ -n "$addresses" ]; then
        printf 'resolver %s;\n    resolver_timeout 3s;' "$addresses"
    else
        printf '# no name server is known: tools reach literal addresses only'
    fi
}

# splits MODEL_URL into MODEL_SCHEME, MODEL_AUTHORITY, MODEL_HOST, MODEL_PORT,
# MODEL_PATH; takes a base URL (…/v1) as well as the whole …/chat/completions
tg_split_model_url()
{
    local re='^(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:([0-9]{1,5}))?(/[A-Za-z0-9._~%/:@+-]*)?$'

    [[ $1 =~ $re ]] \
        || tg_die "--model-url must look like https://host[:port][/path]," \
                  "without user, query and fragment: $1"
    MODEL_SCHEME=${BASH_REMATCH[1]}
    MODEL_HOST=${BASH_REMATCH[2]}
    MODEL_AUTHORITY=$MODEL_HOST${BASH_REMATCH[3]}
    MODEL_PORT=${BASH_REMATCH[4]}
    MODEL_PATH=${BASH_REMATCH[5]%/}
    MODEL_PATH=${MODEL_PATH%/chat/completions}
    if [ -z "$MODEL_PORT" ]; then
        MODEL_PORT=80
        [ "$MODEL_SCHEME" = http ] || MODEL_PORT=443
    fi
}

# system's authorities, and the operator's own beside them
tg_write_ca_bundle()
{
    local system=/etc/ssl/certs/ca-certificates.crt

    if [ -n "$CA_FILE" ]; then
        CA_BUNDLE=$STATE/conf/ca-bundle.pem
        { cat "$CA_FILE"; echo; [ ! -r "$system" ] || cat "$system"; } \
            >"$CA_BUNDLE"
        chmod 644 "$CA_BUNDLE"
    else
        CA_BUNDLE=$system
    fi
}

tg_write_model()
{
    local key='' line=''

    if [ -n "$MODEL_KEY_FILE" ]; then
        IFS= read -r key <"$MODEL_KEY_FILE" || true
        case $key in
            '' | *[!A-Za-z0-9_./:@%+=,~-]*)
                tg_die "the first line of $MODEL_KEY_FILE is not a usable key" ;;
        esac
        line="proxy_set_header Authorization \"Bearer $key\";"
    else
        line='# no --model-key-file: no Authorization is sent'
    fi

    tg_fill model.inc.in "MODEL_HOST=$MODEL_AUTHORITY" "MODEL_KEY=$line" \
        "MODEL_TLS_NAME=$MODEL_HOST" "CA_BUNDLE=$CA_BUNDLE" \
        >"$STATE/conf/model.inc"
    chmod 600 "$STATE/conf/model.inc"
}

# a free port for the demo's shop, the same at the next start when it can be
tg_choose_demo_port()
{
    local port n

    port=$(cat "$STATE/demo.port" 2>/dev/null || true)
    for ((n = 0; n < 50; n++)); do
        if [ -n "$port" ] \
            && ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
        then
            break
        fi
        port=$((18000 + RANDOM % 10000))
    done
    DEMO_PORT=$port
    printf '%s\n' "$port" >"$STATE/demo.port"
}

# toolgated.conf with our values in place of those of conf/toolgated.conf, which
# are examples. Names of the gateway's tools come from the environment.
tg_write_helper_conf()
{
    local file=$STATE/conf/toolgated.conf pair name value
    local example=$TG_REPO/conf/toolgated.conf settings=("$@")

    while IFS='=' read -r -d '' name value; do
        case $name in
            KSADK_*) ;;
            *) continue ;;
        esac
        # the helper refuses a key that it does not know
        if ! grep -q "^[# ]*$name " "$example"; then
            tg_say "$name means nothing to this helper and is left out"
            continue
        fi
        tg_plain "the value of $name" "$value"
        settings+=("$name=$value")
    done </proc/self/environ

    cp "$example" "$file"
    for pair in "${settings[@]}"; do
        sed -i "/^[[:space:]]*${pair%%=*}[[:space:]]/d" "$file"
    done
    {
        printf '\n# set by scripts/run\n'
        for pair in "${settings[@]}"; do
            printf '%s %s;\n' "${pair%%=*}" "${pair#*=}"
        done
    } >>"$file"
    chmod 600 "$file"
}

tg_write_nginx_conf()
{
    local allow='' hosts='' ca='' upstream demo='' njs='' user='' line redis
    local conf_extra='' server_extra='' model_name=''

    [ "$(id -u)" -ne 0 ] || user="user $WEB_USER $WEB_GROUP;"
    [ -z "$MODEL_NAME" ] || model_name=" model=$MODEL_NAME"
    [ -z "$CONF_EXTRA" ] || conf_extra="    include $CONF_EXTRA;"
    [ -z "$SERVER_EXTRA" ] || server_extra="        include $SERVER_EXTRA;"
    redis=${REDIS_URL:-unix:$RUN/redis/redis.sock}

    if [ $DEMO_CATALOG -eq 1 ]; then
        allow="    toolgate_netguard_allow 127.0.0.1/32 $DEMO_PORT insecure_http;"
    fi
    for line in "${ALLOW[@]}"; do
        allow+="${allow:+$'\n'}    toolgate_netguard_allow $line insecure_http;"
    done
    if [ ${#HOSTS[@]} -gt 0 ]; then
        for line in "${HOSTS[@]}"; do
            printf '%s %s\n' "${line#*=}" "${line%%=*}"
        done >"$STATE/conf/hosts"
        hosts="    # names that no name server knows
    toolgate_hosts \"$STATE/conf/hosts\";"
    fi
    if [ -n "$CA_FILE" ]; then
        ca="    toolgate_ca \"$CA_BUNDLE\";"
    fi

    if [ $DEMO_MODEL -eq 1 ]; then
        upstream="        server unix:$RUN/demo-model.sock;"
    else
        upstream="        server $MODEL_HOST:$MODEL_PORT;"
    fi
    upstream="    upstream toolgate_model_default {
$upstream
        keepalive 64;
    }"

    if [ $DEMO_MODEL -eq 1 ] || [ $DEMO_CATALOG -eq 1 ]; then
        demo=$(tg_fill demo.conf.in "REPO=$TG_REPO" "RUN=$RUN" \
            "DEMO_PORT=$DEMO_PORT")
    fi
    if [ -e /usr/lib/nginx/modules/ngx_http_js_module.so ]; then
        njs='load_module /usr/lib/nginx/modules/ngx_http_js_module.so;'
    fi

    tg_fill nginx.conf.in "USER_LINE=$user" "WORKERS=$WORKERS" \
        "STATE=$STATE" "RUN=$RUN" "TMP=$TMP_DIR" "LOG_LEVEL=$LOG_LEVEL" \
        "MODULE=$BUILD/ngx_http_toolgate_module.so" "NJS_LOAD=$njs" \
        "RESOLVER=$(tg_resolver_line)" "REDIS=$redis" "CATALOG=$CATALOG" \
        "NETGUARD=$allow" "HOSTS=$hosts" "CA=$ca" "MODEL_NAME=$model_name" \
        "MODEL_UPSTREAM=$upstream" "MODEL_SCHEME=$MODEL_SCHEME" \
        "MODEL_PATH=$MODEL_PATH" "CONF_EXTRA=$conf_extra" "LISTEN=$LISTEN" \
        "SERVER_EXTRA=$server_extra" "DEMO_SERVERS=$demo" \
        | cat -s >"$STATE/conf/nginx.conf"
}
