// Rows P of the abuse table: records, envelopes, arguments.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { FOREIGN_UID, PYTHON, cpuMs, has, isRoot, sleep } from './daemon.mjs';
import { Client, T, record } from './client.mjs';

const head = (length, type = T.CALL) => {
    const b = Buffer.alloc(8);
    b.writeUInt32BE(length, 0);
    b[4] = type;
    return b;
};

const envelope = (over = {}) => ({ id: 'x', tool: 'run_command', arguments: { command: 'true' },
    project: 'p', account: 'a', session: 's', invocation_id: 'i', ...over });

// sends a raw CALL payload and gives the answer
async function rawCall(daemon, payload) {
    const client = await daemon.connect();
    client.raw(record(T.CALL, payload, 1));
    const r = await client.next((x) => x.type === T.RESULT);
    client.close();
    assert.ok(r, 'the connection was closed instead of an answer');
    return JSON.parse(r.payload);
}

async function refused(daemon, payload, type, field) {
    const r = await rawCall(daemon, payload);
    const what = String(typeof payload === 'string' ? payload : JSON.stringify(payload)).slice(0, 200);
    assert.equal(r.ok, false, what);
    assert.equal(r.error_type, type, `${what} gave ${JSON.stringify(r)}`);
    if (field) {
        assert.equal(r.field, field, `${what} gave ${JSON.stringify(r)}`);
        assert.match(r.error_message, new RegExp(field));
    }
    assert.doesNotMatch(r.error_message, /\/(home|root|tmp\/tgd|work|var)\b/, 'a path of the host');
}

const args = (over) => envelope({ arguments: { command: 'true', ...over } });

export const protocolCases = (mode) => [
    {
        title: 'P01 a peer whose uid is not on the list is closed',
        skip: () => !isRoot && 'needs root to become another uid'
            || !has(PYTHON) && `${PYTHON} is missing`,
        async run(daemon) {
            const out = execFileSync('setpriv', ['--reuid', String(FOREIGN_UID), '--regid',
                String(FOREIGN_UID), '--clear-groups', PYTHON, '-c', `
import socket, sys
for i in range(3):
    s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(sys.argv[1])
    try:
        s.sendall(bytes([0,0,0,14,1,0,0,0]) + b'{"protocol":1}')
        print(repr(s.recv(100)))
    except (BrokenPipeError, ConnectionResetError): print("b''")
`, daemon.socket], { encoding: 'utf8' });
            assert.equal(out, "b''\nb''\nb''\n");
            const lines = daemon.log().filter((l) => l.ev === 'peer_refused');
            assert.equal(lines.length, 1, 'logged once per interval');
        },
    },
    {
        title: 'P02 lying lengths and unknown types close the connection',
        async run(daemon) {
            const bad = [head(0xFFFFFFFF), head(0), head(256 * 1024 + 1), head(0x80000000),
                head(2, 0), head(2, 9), head(2, 255), Buffer.from('GET / HTTP/1.1\r\n\r\n')];
            const before = daemon.rssRise();
            for (const bytes of bad) {
                const client = await daemon.connect();
                client.raw(bytes);
                assert.ok(await client.ended(2000), bytes.toString('hex'));
            }
            for (const bytes of [record(T.CALL, envelope()), record(T.HELLO, { protocol: 2 }),
                record(T.HELLO, 'no json'), record(T.RESULT, '{}')]) {
                const client = await daemon.connect({ hello: false });
                client.raw(bytes);
                assert.ok(await client.ended(2000), 'first record must be hello');
            }
            assert.ok(daemon.rssRise() - before < 4096);
        },
    },
    {
        title: 'P03 a head and then silence, or a byte a second, ends at the header time-out',
        async run(daemon) {
            const silent = await daemon.connect();
            silent.raw(head(100));
            const slow = await daemon.connect();
            const bytes = record(T.CALL, envelope());
            let i = 0;
            const timer = setInterval(() => { if (!slow.closed) slow.raw(bytes.subarray(i, ++i)); }, 1000);
            const mute = await daemon.connect({ hello: false });
            const whole = await daemon.connect();        // idle between records: stays
            const started = performance.now();
            assert.deepEqual(await Promise.all([silent.ended(8000), slow.ended(8000),
                mute.ended(8000)]), [true, true, true]);
            clearInterval(timer);
            assert.ok(performance.now() - started > 4000);
            whole.raw(record(T.PING, 'x', 9));
            assert.equal((await whole.next((r) => r.type === T.PING)).payload.toString(), 'x');
            whole.close();
        },
    },
    {
        title: 'P04 what is not one clean JSON object is bad_request',
        async run(daemon) {
            const good = JSON.stringify(envelope());
            const bad = [
                '['.repeat(10000) + ']'.repeat(10000), '{"a":'.repeat(10000) + '1' + '}'.repeat(10000),
                `{"id":"${'x'.repeat(200000)}"}`, good.replace('{', '{"id":"y",'), good + 'x',
                good + good, '', ' ', 'null', '"x"', '[]', '{', good.replace('"true"', '"\\ud800"'),
                Buffer.concat([Buffer.from(good.slice(0, -1)), Buffer.from([0xFF, 0xFE]), Buffer.from('}')]),
                Buffer.from(good.replace('"true"', '"\xff"'), 'latin1'), 'NaN', good.replace('"x"', '1e999'),
            ].filter((b) => b.length > 0);
            for (const payload of bad) await refused(daemon, payload, 'bad_request');
            // more than a record may hold
            const client = await daemon.connect();
            client.raw(head(10 * 1024 * 1024));
            assert.ok(await client.ended(2000));
        },
    },
    {
        title: 'P05 timeout out of range or of another type names the field',
        async run(daemon) {
            for (const timeout of [-1, 0, 601, 1.5, '5', true, [], 2 ** 53]) {
                await refused(daemon, args({ timeout }), 'invalid_argument', 'timeout');
            }
            await refused(daemon, JSON.stringify(args({ timeout: 'T' })).replace('"T"', '1e308'),
                'invalid_argument', 'timeout');
            await refused(daemon, JSON.stringify(args({ timeout: 'T' })).replace('"T"', '9223372036854775808'),
                'bad_request');
            assert.equal((await rawCall(daemon, args({ timeout: null }))).ok, true, 'null is the default');
        },
    },
    {
        title: 'P06 labels: one charset rule before anything touches a path',
        async run(daemon) {
            for (const name of ['project', 'account', 'session', 'invocation_id']) {
                for (const value of ['../x', 'x'.repeat(65), 'x'.repeat(10000), 'a\0b', 'a\nb', 'ä', 'a/b',
                    ' ', 'a b', null, 1, {}, undefined]) {
                    await refused(daemon, envelope({ [name]: value }), 'bad_request', name);
                }
            }
            await refused(daemon, envelope({ project: '' }), 'bad_request', 'project');
            await refused(daemon, envelope({ id: 'a\nb' }), 'bad_request', 'id');
            const r = await rawCall(daemon, envelope({ account: '', session: '', invocation_id: '' }));
            assert.equal(r.ok, true, 'the project\'s own account');
            for (const account of ['..', '.', 'Acme', 'acme', 'x:y']) {
                assert.equal((await rawCall(daemon, envelope({ account }))).ok, true);
            }
        },
    },
    {
        title: 'P07 the same session label of another account is another session',
        async run(daemon) {
            const a = await daemon.run('touch /tmp/mine; echo a', { account: 'p07a', session: 'same' });
            const b = await daemon.run('ls /tmp', { account: 'p07b', session: 'same' });
            const c = await daemon.run('ls /tmp', { project: 'q', account: 'p07a', session: 'same' });
            assert.equal(a.ok && b.ok && c.ok, true);
            assert.equal(new Set([a, b, c].map((r) => r.sandbox_id)).size, 3);
            assert.equal(b.stdout + c.stdout, '');
            const s = await daemon.call('sandbox_status', {}, { account: 'p07c', session: 'same' });
            assert.equal(s.sandbox_id, '');
            const mine = await daemon.call('sandbox_status', {}, { account: 'p07a', session: 'same' });
            assert.equal(mine.sandbox_id, a.sandbox_id);
            assert.ok(mine.expires_at > Date.now() / 1000 && mine.idle_seconds >= 0);
        },
    },
    {
        title: 'P08 bad command, env and cwd name the field',
        async run(daemon) {
            await refused(daemon, args({ command: 'a\0b' }), 'invalid_argument', 'command');
            await refused(daemon, args({ command: '' }), 'command_required', 'command');
            await refused(daemon, args({ command: ' \n' }), 'command_required', 'command');
            await refused(daemon, args({ command: null }), 'command_required', 'command');
            await refused(daemon, args({ command: ['ls'] }), 'invalid_argument', 'command');
            // (a NUL in a name is no JSON key for the parser: bad_request)
            await refused(daemon, args({ env: { 'a\0b': 'x' } }), 'bad_request');
            for (const name of ['', 'a=b', '1a', 'a-b', 'LD_PRELOAD', 'LD_LIBRARY_PATH', 'ä']) {
                await refused(daemon, args({ env: { [name]: 'x' } }), 'invalid_argument', 'env');
            }
            for (const value of [1, null, 'a\0b', {}]) {
                await refused(daemon, args({ env: { A: value } }), 'invalid_argument', 'env');
            }
            await refused(daemon, args({ env: [] }), 'invalid_argument', 'env');
            assert.equal((await daemon.run('touch file', { session: 'p08' })).ok, true);
            for (const cwd of ['../..', 'a/../../b', '/etc', '/workspace/../etc', '/workspacex', 'file',
                'missing', 'a\0b', 'x'.repeat(2000), 7]) {
                await refused(daemon, envelope({ session: 'p08', arguments: { command: 'true', cwd } }),
                    'invalid_argument', 'cwd');
            }
            await daemon.run('mkdir -p sub', { session: 'p08' });
            for (const [cwd, want] of [['sub', '/workspace/sub'], ['/workspace', '/workspace'], ['/tmp', '/tmp'],
                ['', '/workspace'], ['.', '/workspace'], ['/workspace/sub', '/workspace/sub']]) {
                assert.equal((await daemon.run('pwd', { session: 'p08', cwd })).stdout, `${want}\n`);
            }
            const r = await daemon.run('echo $A $PATH', { env: { A: 'b', PATH: '/evil' } });
            assert.equal(r.stdout, 'b /usr/local/bin:/usr/bin:/bin\n', 'PATH stays ours');
        },
    },
    {
        title: 'P09 2,000 connections: the cap holds, no busy loop, a running job goes on',
        async run(daemon) {
            const first = await daemon.connect();
            const job = first.call('run_command', { command: 'sleep 3; echo done' }, { session: 'p09' });
            const flood = [];
            for (let i = 0; i < 2000; i++) {
                const client = new Client(daemon.socket);
                flood.push(client.open().then(() => client, () => null));
            }
            const open = (await Promise.all(flood)).filter(Boolean);
            assert.ok(open.length >= 1000, `${open.length} were let in or wait`);
            assert.ok(daemon.fds() < 1100, `${daemon.fds()} descriptors`);
            const before = cpuMs(daemon.pid);
            await sleep(1000);
            assert.ok(cpuMs(daemon.pid) - before < 500, 'it does not spin');
            assert.equal((await job).stdout, 'done\n');
            for (const client of open) client.close();
            first.close();
            await sleep(300);
        },
    },
    {
        title: 'P10 a client that never reads: memory is bounded and the job ends',
        async run(daemon) {
            const client = await daemon.connect();
            client.socket.pause();
            client.call('run_command', { command: 'while :; do head -c 100000 /dev/zero; sleep 0.02; done',
                timeout: 100 }, { session: 'p10', stream: true }).catch(() => {});
            let highest = 0;
            const started = performance.now();
            let ended = false;
            while (!ended && performance.now() - started < (mode === 'root' ? 50000 : 4000)) {
                await sleep(250);
                highest = Math.max(highest, daemon.rssRise());
                ended = daemon.log().some((l) => l.ev === 'call' && l.sandbox && l.bytes_out > 0
                    && l.dur_ms > 20000);
            }
            assert.ok(highest < 8192, `RSS rose by ${highest} KiB`);
            if (mode === 'root') assert.ok(ended, 'the stall time-out ended the job');
            client.close();
        },
    },
    {
        title: 'P11 descriptors that a client sends along do not stay',
        skip: () => !has(PYTHON) && `${PYTHON} is missing`,
        async run(daemon) {
            execFileSync(PYTHON, ['-c', `
import socket, array, os, sys
for i in range(20):
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
    fds = array.array('i', [os.open('/dev/null', os.O_RDONLY) for _ in range(10)])
    s.sendmsg([bytes([0,0,0,14,1,0,0,0]) + b'{"protocol":1}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    s.recv(200)
    n = os.fstat(0)
`, daemon.socket]);
            const open = await daemon.connect();
            const with_fds = spawn(PYTHON, ['-c', `
import socket, array, os, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
fds = array.array('i', [os.open('/dev/null', os.O_RDONLY) for _ in range(100)])
s.sendmsg([bytes([0,0,0,14,1,0,0,0]) + b'{"protocol":1}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
s.recv(200); print('sent', flush=True); time.sleep(10)
`, daemon.socket], { stdio: ['ignore', 'pipe', 'inherit'] });
            await new Promise((resolve) => with_fds.stdout.once('data', resolve));
            assert.ok(daemon.ownFds() <= daemon.base.fds + 2,
                'none of the hundred while its sender is connected');
            with_fds.kill();
            open.close();
        },
    },
    {
        title: 'P12 unknown tool, field or type says what is allowed',
        async run(daemon) {
            await refused(daemon, envelope({ tool: 'rm' }), 'unknown_tool');
            assert.match((await rawCall(daemon, envelope({ tool: 'rm' }))).error_message, /run_command/);
            await refused(daemon, envelope({ tool: 5 }), 'bad_request', 'tool');
            await refused(daemon, envelope({ extra: 1 }), 'bad_request');
            await refused(daemon, envelope({ arguments: [] }), 'bad_request', 'arguments');
            await refused(daemon, envelope({ stream: 1 }), 'bad_request', 'stream');
            await refused(daemon, args({ shell: 'zsh' }), 'invalid_argument');
            assert.match((await rawCall(daemon, args({ shell: 'zsh' }))).error_message, /command, cwd, timeout/);
            await refused(daemon, envelope({ tool: 'sandbox_status', arguments: { x: 1 } }), 'invalid_argument');
            await refused(daemon, args({ background: 1 }), 'invalid_argument', 'background');
            await refused(daemon, args({ background: true }), 'background_not_supported', 'background');
            // a second call on a busy connection
            const client = await daemon.connect();
            const slow = client.call('run_command', { command: 'sleep 1; echo x' }, { session: 'p12' });
            const second = await client.call('sandbox_status', {});
            assert.equal(second.error_type, 'bad_request');
            assert.equal((await slow).stdout, 'x\n');
            client.close();
        },
    },
    {
        title: 'P14 a hundred calls of one account do not keep another one waiting',
        async run(daemon) {
            const clients = await Promise.all(Array.from({ length: 30 }, () => daemon.connect()));
            const many = clients.map((c, i) => c.call('run_command', { command: 'sleep 0.3' },
                { account: 'p14a', session: `s${i % 4}` }));
            const started = performance.now();
            const r = await daemon.run('echo b', { account: 'p14b' });
            assert.equal(r.stdout, 'b\n');
            assert.ok(performance.now() - started < 1500, 'within one job\'s time');
            const done = await Promise.all(many);
            assert.ok(done.every((x) => x.ok), 'all of the others ran');
            for (const c of clients) c.close();
            // and beyond what may wait: refused at once, not kept
            const flood = await Promise.all(Array.from({ length: 50 }, () => daemon.connect()));
            const all = flood.map((c) => c.call('run_command', { command: 'sleep 5' },
                { account: 'p14c', session: 'one' }));
            const refusedOnes = await Promise.race([Promise.all(all.slice(40)), sleep(3000)]);
            assert.ok(refusedOnes?.every((x) => x.error_type === 'too_many_calls'));
            for (const p of all) p.catch(() => {});
            for (const c of flood) c.close();
        },
    },
];
