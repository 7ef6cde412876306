// Rows L of the abuse table that need no restart of the helper.
import assert from 'node:assert/strict';
import { descendants, has, sleep, until } from './daemon.mjs';
import { T, record } from './client.mjs';

const bg = () => 'jobs in the background are refused with background_not_supported for now';
// processes of jobs; the one that waits for an order has its supervisor's name
const busy = (daemon) => descendants(daemon.pid).filter((p) => p.name !== 'sandbox'
    && p.pid !== daemon.launcher && p.parent !== daemon.launcher).length;

export const lifeCases = () => [
    {
        title: 'L01 a child in the background holds the pipe',
        async run(daemon) {
            const r = await daemon.run('sleep 300 & echo done');
            assert.equal(r.stdout, 'done\n');
            assert.equal(r.exit_code, 0);
            assert.ok(r.took < 1000);
        },
    },
    {
        title: 'L02 setsid nohup does not outlive the call',
        async run(daemon) {
            const r = await daemon.run('setsid nohup sleep 300 >/dev/null 2>&1 & echo x', { session: 'l02' });
            assert.equal(r.stdout, 'x\n');
            const next = await daemon.run('cat /proc/[0-9]*/comm', { session: 'l02' });
            assert.doesNotMatch(next.stdout, /sleep/);
        },
    },
    {
        title: 'L03 output through an orphaned tee is complete',
        async run(daemon) {
            const r = await daemon.run('exec > >(tee log) 2>&1; echo hi');
            assert.equal(r.stdout, 'hi\n');
            assert.ok(r.took < 2000);
        },
    },
    {
        title: 'L04 double fork that prints late',
        async run(daemon) {
            const r = await daemon.run('( ( sleep 3; echo late ) & ) ; echo now');
            assert.equal(r.stdout, 'now\n');
            assert.ok(r.took < 1500);
        },
    },
    { title: 'L05 background server', skip: bg, run() {} },
    { title: 'L06 background flood', skip: bg, run() {} },
    {
        title: 'L07 no zombies when the next call starts',
        async run(daemon) {
            await daemon.run('for i in $(seq 500); do (exit 0) & done; exit 0', { session: 'l07', account: 'l07' });
            const r = await daemon.run('cat /proc/[0-9]*/stat | grep -c ") Z "', { session: 'l07', account: 'l07' });
            assert.equal(r.stdout, '0\n');
        },
    },
    {
        title: 'L08 a closed connection cancels: job gone within 1 s, slot free',
        async run(daemon) {
            const clients = [await daemon.connect(), await daemon.connect()];
            for (const [i, c] of clients.entries()) {
                c.call('run_command', { command: 'sleep 60' }, { account: 'l08', session: `s${i}` }).catch(() => {});
            }
            await until('two jobs run', () => busy(daemon) >= 2);
            for (const c of clients) c.close();
            await until('the jobs are gone', () => busy(daemon) === 0, 1000);
            const r = await daemon.run('echo free', { account: 'l08', session: 's0' });
            assert.equal(r.stdout, 'free\n');
            assert.equal(r.session_reset, false, 'the session lives on');
        },
    },
    {
        title: 'L09 a call that waits can be cancelled and never starts',
        async run(daemon) {
            const first = await daemon.connect();
            const running = first.call('run_command', { command: 'sleep 1' }, { account: 'l09', session: 'one' });
            await sleep(100);
            const second = await daemon.connect();
            const queued = second.call('run_command', { command: 'touch ran' },
                { account: 'l09', session: 'one', id: 'waits' });
            second.cancel('waits');
            const r = await queued;
            assert.equal(r.error_type, 'cancelled');
            await running;
            assert.equal((await daemon.run('ls', { account: 'l09', session: 'one' })).stdout, '');
            first.close();
            second.close();
        },
    },
    {
        title: 'L10 cancel twice, after the end, for an unknown id: one result, not_found',
        async run(daemon) {
            const client = await daemon.connect();
            const job = client.call('run_command', { command: 'sleep 60' }, { session: 'l10', id: 'job' });
            await sleep(200);
            client.cancel('other');
            client.cancel('job');
            client.cancel('job');
            const r = await job;
            assert.equal(r.error_type, 'cancelled');
            assert.ok(r.took < 1500);
            client.cancel('job');
            client.raw(record(T.PING, 'end'));
            await client.next((x) => x.type === T.PING);
            const events = client.records.filter((x) => x.type === T.EVENT).map((x) => JSON.parse(x.payload))
                .filter((e) => e.event === 'cancel').map((e) => e.status);
            assert.deepEqual([events[0], events[1], events.at(-1)], ['not_found', 'cancelling', 'not_found']);
            assert.equal(client.records.filter((x) => x.type === T.RESULT).length, 1);
            client.close();
        },
    },
    {
        title: 'L13 signals to pid 1 are nothing',
        async run(daemon) {
            const r = await daemon.run('kill -9 1; kill -STOP 1; kill -TERM 1; echo alive', { session: 'l13' });
            assert.equal(r.stdout, 'alive\n');
            const next = await daemon.run('echo next', { session: 'l13' });
            assert.equal(next.stdout, 'next\n');
            assert.equal(next.sandbox_id, r.sandbox_id);
        },
    },
    {
        title: 'L14 kill -9 -1 kills the job only',
        async run(daemon) {
            const r = await daemon.run('sleep 100 & kill -9 -1; jobs', { session: 'l14' });
            assert.ok(r.took < 2000, 'the kernel spares the caller, nobody else');
            const next = await daemon.run('echo next', { session: 'l14' });
            assert.equal(next.stdout, 'next\n');
            assert.equal(next.sandbox_id, r.sandbox_id);
        },
    },
    {
        title: 'L15 exit codes and signals, no core file',
        async run(daemon) {
            const want = [['exit 7', 7, null], ['kill -9 $$', 137, 9], ['kill -SEGV $$', 139, 11],
                ['no_such_program', 127, null], ['true', 0, null], ['exit 255', 255, null]];
            for (const [command, code, signal] of want) {
                const r = await daemon.run(command, { session: 'l15', account: 'l15' });
                assert.deepEqual([r.exit_code, r.signal, r.ok], [code, signal, code === 0], command);
            }
            assert.equal((await daemon.run('ls -A', { session: 'l15', account: 'l15' })).stdout, '');
        },
    },
    {
        title: 'L16 two calls of one session take turns',
        async run(daemon) {
            const calls = ['a', 'b'].map((x) => daemon.run(
                `echo ${x} $V; cd /tmp; touch mine; sleep 0.3; ls; rm mine; echo ${x}`,
                { session: 'l16', account: 'l16', env: { V: x } }));
            for (const [i, r] of (await Promise.all(calls)).entries()) {
                const x = 'ab'[i];
                assert.equal(r.stdout, `${x} ${x}\nmine\n${x}\n`);
            }
        },
    },
    {
        title: 'L18 one more session than allowed evicts the oldest idle one and says so',
        async run(daemon) {
            const ids = [];
            for (let i = 0; i < 5; i++) {
                ids.push((await daemon.run('touch /tmp/t', { account: 'l18', session: `s${i}` })).sandbox_id);
            }
            const last = await daemon.run('ls /tmp', { account: 'l18', session: 's4' });
            assert.equal(last.sandbox_id, ids[4]);
            assert.equal(last.session_reset, false);
            const first = await daemon.run('ls /tmp', { account: 'l18', session: 's0' });
            assert.notEqual(first.sandbox_id, ids[0]);
            assert.equal(first.session_reset, true, 'told, not silent');
            assert.equal(first.stdout, '');
            assert.ok(first.expires_at > Date.now() / 1000);
        },
    },
    {
        title: 'L20 stdin is empty',
        skip: () => !has('/usr/bin/python3') && '/usr/bin/python3 is missing',
        async run(daemon) {
            const r = await daemon.run("cat; read x; python3 -c 'input()'; echo end");
            assert.match(r.stderr, /EOFError/);
            assert.equal(r.stdout, 'end\n');
            assert.ok(r.took < 3000);
        },
    },
    {
        title: 'calls in a row: each has its own directory and variables, none a trace of another',
        async run(daemon) {
            const c = await daemon.connect();
            const call = (args) => c.call('run_command', args, { account: 'row', session: 'row' });
            await call({ command: 'mkdir -p d' });
            const see = 'pwd; echo "${MARK-none} $SHELL"; ls /proc/self/fd | wc -l; ls -d /proc/[0-9]* | wc -l';
            // the listing sees itself, wc and two shells beside pid 1
            const rest = (mark) => `${mark} /bin/bash\n4\n`;
            for (let i = 0; i < 20; i++) {
                const a = await call({ command: see, cwd: 'd', env: { MARK: `m${i}` } });
                assert.ok(a.stdout.startsWith(`/workspace/d\n${rest(`m${i}`)}`), a.stdout);
                const refused = await call({ command: 'echo never', cwd: 'none' });
                assert.equal(refused.field, 'cwd', JSON.stringify(refused));
                const b = await call({ command: see });
                assert.ok(b.stdout.startsWith(`/workspace\n${rest('none')}`), b.stdout);
                for (const r of [a, b]) assert.ok(Number(r.stdout.trim().split('\n').pop()) <= 5, r.stdout);
                assert.equal(a.sandbox_id, b.sandbox_id);
            }
            // a cancel of what is over does nothing to what comes next
            for (let i = 0; i < 20; i++) {
                const over = c.call('run_command', { command: 'exit 3' }, { account: 'row', session: 'row', id: `row${i}` });
                c.cancel(`row${i}`);
                const r = await over;
                assert.ok(r.exit_code === 3 || r.error_type === 'cancelled', JSON.stringify(r));
                assert.equal((await call({ command: 'echo next' })).stdout, 'next\n');
            }
            c.close();
        },
    },
    {
        title: 'the process that waits for an order is killed: the next call gets a new sandbox',
        async run(daemon) {
            const options = { account: 'waits', session: 'waits' };
            const mine = new Set(daemon.sandboxes().map((p) => p.pid));
            const first = await daemon.run('true', options);
            const waiting = () => descendants(daemon.pid).filter((p) => p.name === 'sandbox'
                && p.parent !== daemon.launcher && !mine.has(p.parent));
            await until('it waits', () => waiting().length === 1);
            process.kill(waiting()[0].pid, 'SIGKILL');
            await until('the sandbox ended with it', () => waiting().length === 0);
            const next = await daemon.run('echo new', options);
            assert.equal(next.stdout, 'new\n');
            assert.notEqual(next.sandbox_id, first.sandbox_id);
            assert.equal(next.session_reset, true);
        },
    },
    {
        title: 'ten sessions at once',
        async run(daemon) {
            const all = await Promise.all(Array.from({ length: 10 }, (_, i) => daemon.run(
                `echo ${i} > /tmp/who; sleep 0.2; cat /tmp/who`, { account: `ten${i % 5}`, session: `s${i}` })));
            assert.deepEqual(all.map((r) => r.stdout), Array.from({ length: 10 }, (_, i) => `${i}\n`));
        },
    },
    {
        title: 'two accounts see nothing of each other',
        async run(daemon) {
            const see = 'ls -A /workspace /tmp; cat /proc/[0-9]*/cmdline | tr "\\0" " "';
            const [a, b] = await Promise.all([
                daemon.run(`echo secret-of-a > f; echo x > /tmp/f; exec -a secret-job sleep 1 & sleep 0.5; ${see}`,
                    { account: 'two-a', session: 's' }),
                (async () => { await sleep(200); return daemon.run(`${see}; cat f`, { account: 'two-b', session: 's' }); })(),
            ]);
            assert.match(a.stdout, /secret-job/);
            assert.doesNotMatch(b.stdout, /secret/);
            assert.match(b.stderr, /No such file/);
            // one workspace for all sessions of an account
            const again = await daemon.run('cat f', { account: 'two-a', session: 'other' });
            assert.equal(again.stdout, 'secret-of-a\n');
        },
    },
];
