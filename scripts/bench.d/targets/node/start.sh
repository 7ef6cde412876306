#!/bin/sh
cd "$RUN"
NODE_ENV=production exec node "$BIN/node/server.mjs"
