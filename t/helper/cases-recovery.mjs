// What needs a helper of its own: start, end, being killed, expiry, configuration.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Daemon, descendants, isRoot, processes, sleep, until } from './daemon.mjs';

const alive = (pids) => { const all = processes(); return pids.filter((p) => all.has(p) && all.get(p).state !== 'Z'); };

// directories of control groups with the helper's name
function cgroups(daemon) {
    const file = path.join(daemon.state, 'cgroups');
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : [];
}

async function jobs(daemon, n) {
    const clients = [];
    const calls = [];
    for (let i = 0; i < n; i++) {
        const c = await daemon.connect();
        clients.push(c);
        calls.push(c.call('run_command', { command: 'sleep 300 & sleep 300', timeout: 600 },
            { account: `j${i}`, session: 'x' }).then((r) => r, (e) => e));
    }
    await until('the jobs run', () => descendants(daemon.pid).filter((p) => p.name === 'sleep').length >= 2 * n);
    return { clients, calls };
}

async function killed(daemon, victim, signal = 'SIGKILL') {
    await daemon.start();
    await daemon.run('echo stays > f', { account: 'j0' });
    const { clients, calls } = await jobs(daemon, 5);
    const family = descendants(daemon.pid).map((p) => p.pid);
    const groups = cgroups(daemon);
    process.kill(victim === 'front' ? daemon.pid : daemon.launcher, signal);
    await until('everything is gone', () => alive([...family, daemon.pid]).length === 0, 3000);
    const results = await Promise.all(calls);
    const { code, signal: by } = await daemon.exit;
    assert.ok(code !== 0 || by !== null, 'it did not end as if all were well');
    for (const c of clients) c.close();

    const started = performance.now();
    await daemon.start();
    assert.ok(performance.now() - started < 4000, 'serves again soon');
    const r = await daemon.run('cat f', { account: 'j0' });
    assert.equal(r.stdout, 'stays\n', 'the workspace is intact');
    await daemon.stop();
    for (const dir of groups) assert.ok(!fs.existsSync(dir), `left over: ${dir}`);
    return results;
}

const refusesToStart = (daemon, args, expected) => {
    const [file, argv] = daemon.command(args);
    const r = spawnSync(file, argv, { encoding: 'utf8', timeout: 5000 });
    assert.notEqual(r.status, 0, `started with ${args}`);
    assert.match(r.stderr, expected);
};

export const recoveryCases = (mode) => [
    {
        title: 'L11 kill -9 of the front during five jobs',
        async run(daemon) {
            const results = await killed(daemon, 'front');
            assert.ok(results.every((r) => r instanceof Error), 'clients see a closed stream');
        },
    },
    {
        title: 'L12 kill -9 of the launcher during five jobs',
        async run(daemon) {
            const results = await killed(daemon, 'launcher');
            for (const r of results) {
                assert.ok(r instanceof Error || ['session_lost', 'sandbox_unavailable'].includes(r.error_type), JSON.stringify(r));
            }
        },
    },
    {
        title: 'L12 kill -9 of a supervisor ends its session only',
        async run(daemon) {
            await daemon.start();
            const other = await daemon.connect();
            const stays = other.call('run_command', { command: 'sleep 1.5; echo stays' }, { account: 'b', session: 'b' });
            await until('runs', () => descendants(daemon.pid).some((p) => p.name === 'sleep'));
            const before = new Set(daemon.sandboxes().map((p) => p.pid));
            const c = await daemon.connect();
            const lost = c.call('run_command', { command: 'echo partial; sleep 300' }, { account: 'a', session: 'a' });
            await until('both run', () => descendants(daemon.pid).filter((p) => p.name === 'sleep').length === 2);
            process.kill(daemon.sandboxes().find((p) => !before.has(p.pid)).pid, 'SIGKILL');
            const r = await lost;
            assert.equal(r.error_type, 'session_lost');
            assert.equal(r.stdout, 'partial\n', 'what was written is kept');
            assert.ok(r.took < 3000);
            const next = await c.call('run_command', { command: 'echo new' }, { account: 'a', session: 'a' });
            assert.equal(next.stdout, 'new\n');
            assert.equal(next.session_reset, true);
            assert.equal((await stays).stdout, 'stays\n');
            c.close();
            other.close();
        },
    },
    {
        title: 'L17 an idle session ends; the next one has the files but not /tmp, and says so',
        async run(daemon) {
            await daemon.start({ extra: 'KSADK_SANDBOX_IDLE_TTL_SECONDS 1;' });
            const a = await daemon.run('echo keep > f; touch /tmp/t', { session: 'x' });
            await until('expired', () => daemon.sandboxes().length === 0, 4000);
            const b = await daemon.run('cat f; ls /tmp', { session: 'x' });
            assert.notEqual(b.sandbox_id, a.sandbox_id);
            assert.equal(b.stdout, 'keep\n');
            assert.equal(b.session_reset, true);
            const status = await daemon.call('sandbox_status', {}, { session: 'x' });
            assert.equal(status.idle_ttl_seconds, 1);
        },
    },
    {
        title: 'a session ends at its absolute age though it is in use',
        async run(daemon) {
            await daemon.start({ extra: 'KSADK_SANDBOX_TTL_SECONDS 2;' });
            const a = await daemon.run('true', { session: 'x' });
            for (let i = 0; i < 12; i++) { await daemon.run('true', { session: 'x' }); await sleep(250); }
            const b = await daemon.run('true', { session: 'x' });
            assert.notEqual(b.sandbox_id, a.sandbox_id);
        },
    },
    {
        title: 'L19 SIGTERM: no new calls, running jobs end well, exit 0, nothing left',
        async run(daemon) {
            await daemon.start();
            const c = await daemon.connect();
            const idle = await daemon.connect();
            const job = c.call('run_command', { command: 'sleep 2; echo finished' }, { account: 'a', session: 'x' });
            const d = await daemon.connect();
            await until('runs', () => descendants(daemon.pid).some((p) => p.name === 'sleep'));
            const waits = d.call('run_command', { command: 'echo never' }, { account: 'a', session: 'x' });
            await sleep(100);
            const groups = cgroups(daemon);
            const family = descendants(daemon.pid).map((p) => p.pid);
            daemon.child.kill('SIGTERM');
            assert.equal((await waits).error_type, 'shutting_down');
            assert.equal((await idle.call('run_command', { command: 'echo never' })).error_type, 'shutting_down');
            assert.equal((await job).stdout, 'finished\n');
            assert.deepEqual(await daemon.exit, { code: 0, signal: null });
            assert.deepEqual(alive(family), []);
            assert.ok(!fs.existsSync(daemon.socket), 'the socket is removed');
            for (const dir of groups) assert.ok(!fs.existsSync(dir), dir);
            if (mode === 'root') assert.ok(groups.length > 0);
        },
    },
    {
        title: 'SIGTERM twice does not wait for a long job',
        async run(daemon) {
            await daemon.start();
            const { clients, calls } = await jobs(daemon, 1);
            daemon.child.kill('SIGTERM');
            await sleep(200);
            daemon.child.kill('SIGTERM');
            assert.equal((await calls[0]).error_type, 'cancelled');
            assert.equal((await daemon.exit).code, 0);
            clients[0].close();
        },
    },
    {
        title: 'left-over control groups with processes are cleaned up at start',
        skip: (m) => m !== 'root' && 'an ordinary user has no control groups here',
        async run(daemon) {
            await daemon.start();
            const groups = cgroups(daemon);
            assert.ok(groups.length > 0);
            await daemon.stop('SIGKILL');
            await until('gone', () => alive([daemon.launcher]).length === 0);
            const orphan = execFileSync('sh', ['-c', 'sleep 300 >/dev/null 2>&1 & echo $!'], { encoding: 'utf8' }).trim();
            for (const dir of groups) {
                fs.mkdirSync(path.join(dir, 's99'), { recursive: true });
                fs.writeFileSync(path.join(dir, 's99', 'cgroup.procs'), orphan);
            }
            fs.writeFileSync(path.join(daemon.state, 'cgroups'), groups.join('\n') + '\n/tmp/not-ours\n/etc\n');
            await daemon.start();
            assert.deepEqual(alive([Number(orphan)]), []);
            for (const dir of groups) assert.ok(!fs.existsSync(path.join(dir, 's99')));
            assert.equal((await daemon.run('echo ok')).stdout, 'ok\n');
        },
    },
    {
        title: 'E01 secrets in the helper\'s environment reach no job',
        async run(daemon) {
            await daemon.start({ env: { API_KEY: 'sk-SECRET-1234', HOME: '/root-secret' } });
            const r = await daemon.run('cat /proc/[0-9]*/environ | tr "\\0" "\\n"; env; cat /proc/[0-9]*/cmdline; cat /proc/*/task/*/environ');
            assert.doesNotMatch(r.stdout, /SECRET|root-secret/);
            assert.match(r.stdout, /PATH=\/usr\/local\/bin:\/usr\/bin:\/bin/);
            const environ = fs.readFileSync(`/proc/${daemon.launcher}/environ`, 'utf8');
            assert.doesNotMatch(environ, /SECRET/, 'nor do they stay in the launcher');
        },
    },
    {
        title: 'the front has no rights and no other process has the state lock',
        skip: (m) => m !== 'root' && 'an ordinary user has none to give up',
        async run(daemon) {
            await daemon.start();
            const status = fs.readFileSync(`/proc/${daemon.pid}/status`, 'utf8');
            assert.doesNotMatch(status, /Uid:\t0\t/);
            assert.match(status, /CapEff:\t0{16}\n/);
            assert.match(status, /CapPrm:\t0{16}\n/);
            assert.match(status, /NoNewPrivs:\t1/);
        },
    },
    {
        title: 'a second start on a live state directory says why it does not',
        async run(daemon) {
            await daemon.start();
            const conf = path.join(daemon.dir, 'run', 'conf');
            refusesToStart(daemon, ['-c', conf], /another toolgated runs/);
            assert.equal((await daemon.run('echo ok')).stdout, 'ok\n');
        },
    },
    {
        title: 'wrong configuration is an error of the start, with file and line',
        async run(daemon) {
            const conf = path.join(daemon.dir, 'run', 'bad');
            const good = `socket ${daemon.socket};\nstate ${daemon.state};\n`;
            const bad = [['KSADK_SANDBOX_BACKEND e2b;', /bad:3: .*native or disabled/], ['colour blue;', /bad:3: .*no such key/],
                ['KSADK_SANDBOX_TTL_SECONDS 0;', /bad:3: .*out of range/], ['KSADK_SANDBOX_TTL_SECONDS x;', /bad:3: .*whole number/],
                ['peer_uid www-data;', /bad:3: .*numbers/], ['log relative;', /bad:3: .*absolute/], ['log /x', /bad:3: .*";"/]];
            for (const [line, expected] of bad) {
                fs.writeFileSync(conf, `${good}${line}\n`);
                refusesToStart(daemon, ['-c', conf], expected);
            }
            fs.writeFileSync(conf, `state ${daemon.state};`);
            refusesToStart(daemon, ['-c', conf], /socket is missing/);
            refusesToStart(daemon, ['-c', '/nonexistent'], /No such file/);
            refusesToStart(daemon, ['--socket', 'x', '--state', '/y'], /absolute/);
            refusesToStart(daemon, ['--nonsense'], /usage/);
            refusesToStart(daemon, ['extra'], /usage/);
            await daemon.start({ extra: '# comment\n\n  KSADK_SANDBOX_BACKEND   native ;' });
        },
    },
    {
        title: 'disabled by configuration: status says so and commands are refused',
        async run(daemon) {
            await daemon.start({ extra: 'KSADK_SANDBOX_BACKEND disabled;' });
            const s = await daemon.call('sandbox_status', {});
            assert.deepEqual([s.ok, s.enabled, s.isolated, s.backend], [true, false, false, 'none']);
            const r = await daemon.run('echo x');
            assert.equal(r.error_type, 'sandbox_unavailable');
        },
    },
    {
        title: 'status tells what holds on this host',
        async run(daemon) {
            await daemon.start();
            const s = await daemon.call('sandbox_status', {});
            assert.deepEqual([s.backend, s.enabled, s.isolated, s.isolation, s.seccomp, s.network],
                ['native', true, true, 'namespaces', true, 'none']);
            assert.equal(s.uid_separation, mode === 'root');
            assert.match(s.limits, mode === 'root' ? /^(cgroup1|cgroup2|rlimit)$/ : /^(rlimit|cgroup2)$/);
            if (s.limits === 'rlimit') assert.ok(s.reasons.includes('no_memory_cgroup'));
            assert.match(s.boundary, /process isolation.*not a VM/);
            assert.deepEqual([s.template_bound, s.template_id, s.sandbox_id], [false, '', '']);
            for (const n of ['timeout_seconds', 'ttl_seconds', 'idle_ttl_seconds', 'max_sessions']) assert.equal(typeof s[n], 'number');
        },
    },
    {
        title: 'where namespaces are refused commands are refused, with the reason',
        skip: () => !isRoot && 'needs root to switch them off for one process tree',
        async run(daemon) {
            // a user namespace in which no further one may be made
            const inner = new Daemon(mode);
            const conf = path.join(inner.dir, 'run', 'conf');
            fs.writeFileSync(conf, `socket ${inner.socket};\nstate ${inner.state};\nlog ${inner.logFile};\npeer_uid 0,12345;\n`);
            fs.chownSync(inner.state, 0, 0);
            fs.chownSync(path.join(inner.dir, 'run'), 0, 0);
            const { spawn } = await import('node:child_process');
            const child = spawn('unshare', ['-U', '--map-root-user', 'sh', '-c',
                `echo 0 > /proc/sys/user/max_user_namespaces; exec ${inner.binary} -c ${conf}`], { stdio: 'ignore' });
            try {
                await until('ready', () => fs.existsSync(inner.logFile) && /"ev":"ready"/.test(fs.readFileSync(inner.logFile, 'utf8')), 10000);
                const s = await inner.call('sandbox_status', {});
                assert.equal(s.isolated, false);
                assert.ok(s.reasons.some((x) => /sandbox_failed: namespaces/.test(x)), JSON.stringify(s.reasons));
                assert.match(s.boundary, /refused/);
                const r = await inner.run('echo x');
                assert.equal(r.error_type, 'sandbox_unavailable');
                assert.match(r.error_message, /namespaces/);
            } finally {
                child.kill('SIGTERM');
                await new Promise((resolve) => child.on('exit', resolve));
                inner.ended = true;
                inner.exit = Promise.resolve();
                fs.rmSync(inner.dir, { recursive: true, force: true });
                await daemon.start();
            }
        },
    },
    {
        title: 'files: there again after a start, to be read again; they need no sandbox',
        async run(daemon) {
            const edit = { path: 'f', old_text: 'stays', new_text: 'changed' };
            await daemon.start();
            assert.equal((await daemon.call('write_workspace_file', { path: 'f', content: 'stays' })).ok, true);
            assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
            await daemon.start({ extra: 'KSADK_SANDBOX_BACKEND disabled;' });
            assert.equal((await daemon.run('true')).ok, false, 'no commands');
            assert.equal((await daemon.call('edit_workspace_file', edit)).error_type, 'file_not_read');
            assert.equal((await daemon.call('read_workspace_file', { path: 'f' })).ok, true);
            assert.equal((await daemon.call('edit_workspace_file', edit)).ok, true);
            assert.equal(fs.readFileSync(path.join(daemon.workspace('p', 'a'), 'f'), 'utf8'), 'changed');
        },
    },
    {
        title: 'files: the end of the helper waits for a call, a dead launcher does not hold it up',
        async run(daemon) {
            const slow = { query: '(?:a?){16}a{16}b', is_regex: true, context_lines: 1 };
            const workers = () => descendants(daemon.launcher).filter((p) => p.name.startsWith('toolgated: file'));
            await daemon.start();
            await daemon.run("for i in $(seq 40); do head -c 1000000 /dev/zero | tr '\\0' a > f$i; done", { account: 'a' });
            const call = daemon.call('search_workspace_files', slow);
            await until('a worker', () => workers().length === 1);
            daemon.child.kill('SIGTERM');
            assert.equal((await call).ok, true);
            assert.deepEqual(await daemon.exit, { code: 0, signal: null });

            await daemon.start();
            const lost = daemon.call('search_workspace_files', slow).then((r) => r.error_type, () => 'closed');
            await until('a worker', () => workers().length === 1);
            const family = descendants(daemon.pid).map((p) => p.pid);
            process.kill(daemon.launcher, 'SIGKILL');
            assert.match(await lost, /^(file_tool_failed|closed)$/);
            await daemon.exit;
            await until('no worker is left', () => alive(family).length === 0, 3000);
        },
    },
];
