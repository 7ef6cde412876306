// node t/store/run.mjs [--asan]: ngx_module/store/ against real and fake Redis servers.
// NGINX and REDIS name the programs; the probe module is built first.

import { build } from './harness.mjs';

build();
await import('./counters.mjs');
await import('./faults.mjs');
await import('./limits.mjs');
await import('./sessions.mjs');
