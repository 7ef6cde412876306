// Drives a real toolgated over its socket, as root and as an ordinary user, through
// the abuse table and the helper's own promises. Prints TAP and a count.
//
// usage: node t/helper/run.mjs [--mode root|user] [pattern]
//        TOOLGATED=path/to/toolgated (else build/toolgated)
import assert from 'node:assert/strict';
import fs from 'node:fs';
import test from 'node:test';
import { ASAN, BINARY, Daemon, isRoot, noNamespaces } from './daemon.mjs';
import { protocolCases } from './cases-protocol.mjs';
import { resourceCases } from './cases-resource.mjs';
import { lifeCases } from './cases-life.mjs';
import { escapeCases } from './cases-escape.mjs';
import { leakCases } from './cases-leak.mjs';
import { filesCases } from './cases-files.mjs';
import { filesCommitCases } from './cases-files-commit.mjs';
import { filesSearchCases } from './cases-files-search.mjs';
import { recoveryCases } from './cases-recovery.mjs';

const args = process.argv.slice(2);
const at = args.indexOf('--mode');
const wanted = at === -1 ? null : args.splice(at, 2)[1];
const pattern = args[0] ? new RegExp(args[0]) : null;
const count = { passed: 0, failed: 0, skipped: 0 };

if (!fs.existsSync(BINARY)) {
    console.error(`helper tests: there is no ${BINARY}; run scripts/build first`);
    process.exit(2);
}

// Each case: { title, run(daemon), skip?(daemon) -> reason }. Cases of one list share a
// daemon; invariants are checked after each.
function register(mode, cases, { own = false } = {}) {
    for (const c of cases) {
        const title = `${mode}: ${c.title}`;
        if (pattern && !pattern.test(title)) continue;
        test(title, { timeout: 120000 }, async (t) => {
            let daemon = shared.get(mode);
            try {
                const reason = blocked.get(mode) ?? c.skip?.(mode);
                if (reason) {
                    count.skipped++;
                    t.skip(reason);
                    return;
                }
                if (own) {
                    daemon = new Daemon(mode);
                } else if (!daemon?.base || daemon.ended) {
                    await daemon?.remove();
                    daemon = new Daemon(mode);
                    shared.set(mode, daemon);
                    await daemon.start();
                    await daemon.baseline();
                }
                await c.run(daemon);
                if (!own) await daemon.invariants();
                count.passed++;
            } catch (error) {
                count.failed++;
                throw error;
            } finally {
                if (own && daemon) await daemon.remove();
            }
        });
    }
}

const shared = new Map();
const blocked = new Map();
const modes = (isRoot ? ['root', 'user'] : ['user']).filter((m) => !wanted || m === wanted);

if (!isRoot && (!wanted || wanted === 'root')) {
    test('root: all cases', (t) => {
        count.skipped++;
        t.skip('not run by root: the helper can only be started as this user');
    });
}

for (const mode of modes) {
    // without control groups memory is bounded by rlimits, which leave no room for the
    // sanitizer's own maps
    const reason = noNamespaces(mode)
        ?? (ASAN && mode === 'user' ? 'the address sanitizer does not fit the rlimits' : undefined);
    if (reason) blocked.set(mode, reason);
    for (const list of [protocolCases, resourceCases, lifeCases, escapeCases, leakCases, filesCases,
        filesCommitCases, filesSearchCases]) {
        register(mode, list(mode));
    }
    register(mode, recoveryCases(mode), { own: true });
}

// the shared helpers end here, and with them the sanitizers' reports come
test('the helpers end well', async () => {
    for (const daemon of shared.values()) {
        assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
        await daemon.remove();
    }
    count.passed++;
});

process.on('exit', () => {
    console.log(`# helper: ${count.passed} passed, ${count.failed} failed, `
        + `${count.skipped} skipped`);
    console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
});
