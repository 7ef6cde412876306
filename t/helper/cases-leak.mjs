// Rows E and N of the abuse table that run_command can express.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { has } from './daemon.mjs';

const noPython = () => !has('/usr/bin/python3') && '/usr/bin/python3 is missing';

export const leakCases = () => [
    {
        title: 'E02 only descriptors 0, 1 and 2',
        async run(daemon) {
            const r = await daemon.run('ls /proc/self/fd');
            assert.equal(r.stdout, '0\n1\n2\n3\n', '3 is the listing itself');
            const types = await daemon.run('readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2');
            assert.match(types.stdout, /^\/dev\/null\npipe:\[\d+\]\npipe:\[\d+\]\n$/);
        },
    },
    {
        title: 'E03 the command line of pid 1 tells nothing',
        async run(daemon) {
            const r = await daemon.run("tr -d '\\0' < /proc/1/cmdline; echo; cat /proc/1/comm; tr -d '\\0' < /proc/1/cmdline | wc -c");
            assert.equal(r.stdout, 'sandbox\nsandbox\n7\n');
        },
    },
    {
        title: 'E04 mounts: no account name, no other workspace',
        async run(daemon) {
            const r = await daemon.run('cat /proc/self/mountinfo /proc/self/mounts', { account: 'Acme.GmbH', project: 'ProjectX' });
            assert.doesNotMatch(r.stdout, /acme|projectx|bystander/i);
            const hashes = new Set(r.stdout.match(/[0-9a-f]{64}/g));
            assert.equal(hashes.size, 1);
            assert.ok(hashes.has(daemon.workspace('ProjectX', 'Acme.GmbH').slice(-64)));
        },
    },
    {
        title: 'E05 own processes only',
        async run(daemon) {
            const r = await daemon.run('ls -d /proc/[0-9]* | wc -l; cat /proc/[0-9]*/comm');
            assert.ok(Number(r.stdout.split('\n')[0]) <= 5, r.stdout);
            assert.doesNotMatch(r.stdout, /toolgated|node/);
        },
    },
    {
        title: 'E06 host files are absent',
        async run(daemon) {
            const r = await daemon.run('cat /etc/shadow /etc/machine-id /etc/hostname; ls /root /home /var /work /srv /opt /mnt /media /boot /sys; ls /etc');
            assert.equal(r.stdout.split('\n').filter((x) => !['alternatives', 'group', 'hosts', 'ld.so.cache',
                'localtime', 'mime.types', 'nsswitch.conf', 'passwd', ''].includes(x)).join(), '');
            const ids = await daemon.run('cat /proc/self/uid_map; id -u; stat -c %u /usr');
            assert.match(ids.stdout, new RegExp(`^ +1000 +${daemon.mode === 'root' ? '(19|6[234])\\d+' : daemon.uid} +1\n1000\n65534\n$`));
        },
    },
    {
        title: 'E07 the helper\'s socket, by path and by abstract name; other abstract names',
        skip: noPython,
        async run(daemon) {
            const server = net.createServer();
            await new Promise((resolve) => server.listen('\0tgd-test-abstract', resolve));
            const tcp = net.createServer();
            await new Promise((resolve) => tcp.listen(0, '127.0.0.1', resolve));
            const r = await daemon.run(`python3 - <<'END'
import socket
for a in ("${daemon.socket}", "\\0${daemon.socket}", "\\0tgd-test-abstract", "\\0toolgated"):
    try: socket.socket(socket.AF_UNIX).connect(a); print("connected")
    except OSError as e: print(e.errno in (2, 111, 13))
try: socket.create_connection(("127.0.0.1", ${tcp.address().port}), 1); print("connected")
except OSError as e: print(e.errno == 111)
END`);
            server.close();
            tcp.close();
            assert.equal(r.stdout, 'True\nTrue\nTrue\nTrue\nTrue\n', r.stderr);
        },
    },
    {
        title: 'E08 /tmp is new in a new session',
        async run(daemon) {
            await daemon.run('echo a > /tmp/a; echo b > /dev/shm/b', { account: 'e08', session: 'x' });
            const same = await daemon.run('cat /tmp/a', { account: 'e08', session: 'x' });
            assert.equal(same.stdout, 'a\n');
            const r = await daemon.run('ls -A /tmp /dev/shm', { account: 'e08', session: 'y' });
            assert.equal(r.stdout, '/dev/shm:\n\n/tmp:\n');
        },
    },
    {
        title: 'E09 the workspace of another account can not be named',
        async run(daemon) {
            const theirs = daemon.workspace('p', 'bystander');
            const r = await daemon.run(`cat ${theirs}/bystander.txt; cat ../${theirs.slice(-64)}/bystander.txt; ls /workspace/..`);
            assert.doesNotMatch(r.stdout, /keep/);
            if (daemon.mode === 'root') {
                const uids = new Set(['p07a', 'bystander', 'invariants'].map((a) => daemon.workspace('p', a))
                    .filter((w) => fs.existsSync(w)).map((w) => fs.statSync(w).uid));
                assert.ok(uids.size >= 2 && !uids.has(0), 'a uid for each account');
            }
        },
    },
    { title: 'E10 the source file of run_code', skip: () => 'there is no run_code yet', run() {} },
    {
        title: 'E11 neither commands nor values of variables nor output are in the log',
        async run(daemon) {
            await daemon.run('echo out-$S; : cmd-hunter2', { env: { S: 'env-hunter2' } });
            await daemon.run('echo bad-hunter2', { cwd: '/etc/hunter2' });
            assert.doesNotMatch(daemon.logText(), /hunter2/);
            assert.ok(daemon.log().some((l) => l.ev === 'call' && l.inv === 'inv_1' && typeof l.dur_ms === 'number'));
        },
    },
    {
        title: 'E12 no path of the host in error texts',
        async run(daemon) {
            const all = [];
            for (const cwd of ['missing', 'a/b/c', '/etc', '../x', '/tmp/none']) all.push(await daemon.run('true', { cwd }));
            all.push(await daemon.run('true', { env: { LD_X: '1' } }), await daemon.run('', {}),
                await daemon.call('nope', {}), await daemon.run('true', { account: '../x' }));
            for (const r of all) {
                assert.equal(r.ok, false);
                assert.doesNotMatch(JSON.stringify(r), new RegExp(`${daemon.dir}|errno|uid ?=|workspaces/`));
            }
        },
    },
    {
        title: 'N01 N02 N14 no network at all, loopback of its own',
        skip: noPython,
        async run(daemon) {
            const r = await daemon.run(`python3 - <<'END'
import socket
for a in (("1.1.1.1", 80), ("169.254.169.254", 80), ("10.0.0.1", 22)):
    try: socket.create_connection(a, 2); print("connected")
    except OSError as e: print(e.errno == 101)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: u.sendto(b"x", ("8.8.8.8", 53)); print("sent")
except OSError as e: print(e.errno == 101)
try: socket.getaddrinfo("example.com", 80); print("resolved")
except OSError: print(True)
print(sorted(l.split(":")[0].strip() for l in open("/proc/net/dev").readlines()[2:]))
END`);
            assert.equal(r.stdout, "True\nTrue\nTrue\nTrue\nTrue\n['lo']\n", r.stderr);
        },
    },
];
