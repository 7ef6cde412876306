#!/bin/bash
# The product with a request limit in Redis, one that nobody reaches: what counting costs.
set -euo pipefail
export TOOLGATE_LIMIT='toolgate_limit requests=1000000000/m key=$http_authorization;'
exec "$BENCH/targets/toolgate/start.sh"
