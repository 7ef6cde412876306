// Rows K of the abuse table: kernel and namespaces.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { has } from './daemon.mjs';

const noPython = () => !has('/usr/bin/python3') && '/usr/bin/python3 is missing';
const notX86 = () => (process.arch !== 'x64' && 'system call numbers of x86-64') || noPython();

// runs python with a raw syscall helper: sys_(number, args...) -> result or -errno
const raw = (code) => `python3 - <<'END'
import ctypes, os, errno, sys, subprocess, threading, socket
libc = ctypes.CDLL(None, use_errno=True)
def sys_(*a):
    r = libc.syscall(*[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    return r if r >= 0 else -ctypes.get_errno()
E = lambda r: errno.errorcode.get(-r, r)
${code}
END`;

export const escapeCases = () => [
    {
        title: 'K01 mount',
        async run(daemon) {
            const r = await daemon.run('mount -t tmpfs x /tmp; echo $?; umount /tmp; umount -l /proc; echo $?');
            assert.doesNotMatch(r.stdout, /^0$/m);
        },
    },
    {
        title: 'K02 unshare',
        async run(daemon) {
            for (const flags of ['-U', '-rm', '-n', '-i', '-u', '-p', '-C']) {
                const r = await daemon.run(`unshare ${flags} id`, { session: 'k02', account: 'k02' });
                assert.equal(r.ok, false, flags);
                assert.equal(r.stdout, '');
            }
        },
    },
    {
        title: 'K03 raw clone and clone3 with namespaces; threads and subprocesses still work',
        skip: notX86,
        async run(daemon) {
            const r = await daemon.run(raw(`
print(E(sys_(56, 0x10000000|0x40000000|17, 0, 0, 0, 0)), E(sys_(435, 0, 0)), E(sys_(56, 0x00020000|17, 0, 0, 0, 0)))
t = threading.Thread(target=lambda: print('thread')); t.start(); t.join()
print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())`));
            assert.equal(r.stdout, 'EPERM ENOSYS EPERM\nthread\nchild\n', r.stderr);
        },
    },
    {
        title: 'K03 node runs with its threads and children',
        skip: () => !(has('node') && fs.existsSync('/usr/bin/node')) && 'node is not below /usr/bin',
        async run(daemon) {
            const r = await daemon.run(`node -e 'const {execSync}=require("child_process"); require("fs").promises.readdir("/").then(()=>console.log(execSync("echo child").toString().trim()))'`);
            assert.equal(r.stdout, 'child\n', r.stderr);
        },
    },
    {
        title: 'K04 ptrace',
        skip: notX86,
        async run(daemon) {
            const r = await daemon.run(raw('print(E(sys_(101, 16, 1, 0, 0)), E(sys_(101, 0, 0, 0, 0)), E(sys_(101, 0x4206, 1, 0, 0)))'));
            assert.equal(r.stdout, 'EPERM EPERM EPERM\n');
        },
    },
    {
        title: 'K05 memory, environment and maps of pid 1',
        async run(daemon) {
            const r = await daemon.run('for f in mem environ maps; do head -c 10 /proc/1/$f && echo "read $f"; done; ls /proc/1/fd && echo "read fd"; ls /proc/1/cwd/ && echo "read cwd"; readlink /proc/1/exe && echo "read exe"; ls /proc/1/root/ && echo "read root"');
            assert.equal(r.stdout, '');
            assert.match(r.stderr, /Permission denied/);
        },
    },
    {
        title: 'K06 device nodes',
        skip: noPython,
        async run(daemon) {
            const r = await daemon.run("python3 -c 'import os;os.mknod(\"d\",0o60600,os.makedev(8,0))'; mknod /tmp/n c 1 3; mkfifo p && ls", { account: 'k06' });
            assert.match(r.stderr, /PermissionError|not permitted/);
            assert.equal(r.stdout, 'p\n', 'a FIFO is fine');
        },
    },
    {
        title: 'K07 set-uid and set-gid files',
        skip: notX86,
        async run(daemon) {
            const r = await daemon.run('cp /usr/bin/id x; for m in 4755 2755 6755; do chmod $m x && echo set; done; stat -c %a x; '
                + raw(`
print(E(sys_(452, -100, ctypes.c_char_p(b"x"), 0o4755, 0)), E(sys_(2, ctypes.c_char_p(b"y"), os.O_CREAT|os.O_WRONLY, 0o4755)), E(sys_(437, -100, ctypes.c_char_p(b"z"), 0, 0)))
print(sys_(2, ctypes.c_char_p(b"ok"), os.O_CREAT|os.O_WRONLY, 0o755) >= 0)`), { account: 'k07' });
            assert.equal(r.stdout, '755\nENOSYS EPERM ENOSYS\nTrue\n', r.stderr);
        },
    },
    {
        title: 'K08 set-uid programs of the system gain nothing',
        async run(daemon) {
            const r = await daemon.run('for p in su sudo mount newuidmap passwd; do command -v $p >/dev/null && $p -c id </dev/null; done; '
                + 'su -c id root; grep -E "^(Uid|Gid|CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs|Seccomp):" /proc/self/status');
            assert.doesNotMatch(r.stdout, /uid=0/);
            assert.match(r.stdout, /Uid:\t1000\t1000\t1000\t1000/);
            assert.match(r.stdout, /NoNewPrivs:\t1/);
            assert.match(r.stdout, /Seccomp:\t2/);
            for (const cap of ['Eff', 'Prm', 'Bnd', 'Amb']) assert.match(r.stdout, new RegExp(`Cap${cap}:\t0{16}`));
        },
    },
    {
        title: 'K09 no terminal to type into',
        skip: noPython,
        async run(daemon) {
            const r = await daemon.run(raw(`
import fcntl
for fd in (0, 1, 2):
    for req in (0x5412, 0x541C):
        try: fcntl.ioctl(fd, req, b"x"); print("typed")
        except OSError as e: print(e.errno == errno.EPERM)
try: os.open("/dev/tty", os.O_RDWR); print("tty")
except OSError: print("no tty")`));
            assert.equal(r.stdout, 'True\nTrue\nTrue\nTrue\nTrue\nTrue\nno tty\n', r.stderr);
        },
    },
    {
        title: 'K10 K11 K12 keys, io_uring, bpf and their like',
        skip: notX86,
        async run(daemon) {
            const r = await daemon.run(raw(`
for name, nr, want in [("keyctl",250,"EPERM"),("add_key",248,"EPERM"),("request_key",249,"EPERM"),
        ("io_uring_setup",425,"ENOSYS"),("io_uring_enter",426,"ENOSYS"),("bpf",321,"EPERM"),("perf_event_open",298,"EPERM"),
        ("userfaultfd",323,"EPERM"),("process_vm_readv",310,"EPERM"),("process_vm_writev",311,"EPERM"),("kcmp",312,"EPERM"),
        ("pidfd_getfd",438,"EPERM"),("mount",165,"EPERM"),("umount2",166,"EPERM"),("pivot_root",155,"EPERM"),("chroot",161,"EPERM"),
        ("setns",308,"EPERM"),("fsopen",430,"EPERM"),("open_tree",428,"EPERM"),("move_mount",429,"EPERM"),("mount_setattr",442,"EPERM"),
        ("init_module",175,"EPERM"),("finit_module",313,"EPERM"),("kexec_load",246,"EPERM"),("open_by_handle_at",304,"EPERM"),
        ("name_to_handle_at",303,"EPERM"),("fanotify_init",300,"EPERM"),("syslog",103,"EPERM"),("acct",163,"EPERM"),
        ("iopl",172,"EPERM"),("modify_ldt",154,"EPERM"),("quotactl",179,"EPERM"),("memfd_secret",447,"EPERM"),
        ("statmount",457,"ENOSYS"),("listmount",458,"ENOSYS"),("open_tree_attr",467,"ENOSYS"),("unknown",499,"ENOSYS")]:
    got = E(sys_(nr, 0, 0, 0, 0, 0))
    if got != want: print(name, got)
print("end")`));
            assert.equal(r.stdout, 'end\n', r.stderr);
        },
    },
    {
        title: 'K13 x32 calls and int 0x80',
        skip: notX86,
        async run(daemon) {
            const r = await daemon.run(raw('print(E(sys_(0x40000000 | 39)))'));
            assert.ok(r.stdout === 'ENOSYS\n' || r.exit_code === 159, JSON.stringify(r));
            // mov eax, 20 (getpid); int 0x80; ret
            const i386 = await daemon.run(raw(`
import mmap
m = mmap.mmap(-1, 4096, prot=7); m.write(bytes([0xb8,20,0,0,0,0xcd,0x80,0xc3]))
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print(f())`));
            assert.notEqual(i386.exit_code, 0);
            assert.ok([159, 139].includes(i386.exit_code), JSON.stringify(i386));
        },
    },
    {
        title: 'K14 kernel knobs',
        async run(daemon) {
            const before = fs.readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
            const r = await daemon.run('echo b > /proc/sysrq-trigger; echo x > /proc/sys/kernel/core_pattern; '
                + 'echo 1 > /proc/sys/user/max_user_namespaces; echo 1 > /proc/sys/net/ipv4/ip_forward; echo x > /sys/power/state; ls /sys');
            assert.equal(r.stdout, '');
            assert.equal(r.ok, false);
            assert.equal(fs.readFileSync('/proc/sys/kernel/core_pattern', 'utf8'), before);
        },
    },
    {
        title: 'K15 socket families and raw sockets',
        skip: noPython,
        async run(daemon) {
            const r = await daemon.run(raw(`
bad = []
for fam in list(range(3, 46)):
    if fam == 10: continue
    for typ in (1, 2, 3, 5):
        try: socket.socket(fam, typ, 0); bad.append((fam, typ))
        except OSError as e:
            if e.errno not in (errno.EPERM, errno.EAFNOSUPPORT): bad.append((fam, typ, e.errno))
for fam in (2, 10):
    for typ in (3, 10):
        try: socket.socket(fam, typ, 1); bad.append((fam, typ))
        except OSError as e:
            if e.errno not in (errno.EPERM, errno.EAFNOSUPPORT): bad.append((fam, typ, e.errno))
print(bad)
a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); c = socket.create_connection(s.getsockname()); print('loopback')`));
            assert.equal(r.stdout, "[]\nb'x'\nloopback\n", r.stderr);
        },
    },
    {
        title: 'K16 clock, host name, reboot, swap',
        async run(daemon) {
            const r = await daemon.run('date -s 2001-01-01 >/dev/null && echo date; hostname x && echo hostname; swapon /dev/zero && echo swapon; reboot -f && echo reboot; true');
            assert.equal(r.stdout, '');
        },
    },
    {
        title: 'K17 personality',
        async run(daemon) {
            const r = await daemon.run('setarch -R true; echo $?');
            assert.notEqual(r.stdout, '0\n');
        },
    },
    {
        title: 'K18 limits and priorities can not be raised',
        async run(daemon) {
            const r = await daemon.run('prlimit --nofile=100000 true && echo nofile; prlimit --pid 1 --nofile=1:1 && echo pid1; renice -n -20 $$ >/dev/null 2>&1 && echo renice; '
                + 'chrt -f 50 true && echo chrt; ulimit -Hn 100000 2>/dev/null && echo ulimit; ulimit -c; ulimit -n; true');
            assert.equal(r.stdout, '0\n256\n');
        },
    },
    {
        title: 'K19 the score for the out-of-memory killer',
        async run(daemon) {
            const r = await daemon.run('cat /proc/self/oom_score_adj; echo -1000 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj');
            assert.equal(r.stdout, '500\n500\n');
        },
    },
    {
        title: 'K20 bubblewrap inside',
        skip: () => !fs.existsSync('/usr/bin/bwrap') && '/usr/bin/bwrap is missing',
        async run(daemon) {
            const r = await daemon.run('bwrap --ro-bind / / id');
            assert.equal(r.ok, false);
            assert.equal(r.stdout, '');
        },
    },
    {
        title: 'K21 planted links never become mount points of the host',
        async run(daemon) {
            const victim = path.join(daemon.dir, 'victim');
            fs.mkdirSync(victim, { mode: 0o777 });
            fs.chmodSync(victim, 0o777);
            const names = ['workspace', 'tmp', 'usr', 'etc', 'proc', 'dev', 'run', 'shm', '.git', 'oldroot', 'bin', 'lib'];
            for (const target of [`/oldroot${victim}/x`, `${victim}/x`, '../../../victim/x', '/proc/self/root', '/proc/1/root']) {
                const r = await daemon.run(`for n in ${names.join(' ')}; do rm -rf $n; ln -sfn ${target} $n; done; ls -A | wc -l`,
                    { account: 'k21', session: `s${target.length}` });
                assert.equal(r.stdout, `${names.length}\n`);
                for (let i = 0; i < 4; i++) {
                    assert.equal((await daemon.run('true', { account: 'k21', session: `n${i}${target.length}` })).ok, true);
                }
                assert.deepEqual(fs.readdirSync(victim), []);
            }
        },
    },
];
