// The tools of the workspace: what they do, the rows F of the abuse table, and what
// the reference got wrong about files.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { ASAN, descendants, has, isRoot, sleep, until } from './daemon.mjs';

const KIB = 1024;
const MIB = 1024 * 1024;
const noPython = () => !has('/usr/bin/python3') && '/usr/bin/python3 is missing';
const noRg = () => !has('/usr/bin/rg') && '/usr/bin/rg is missing';

// One account's tools: each call in session "s" unless another is named.
function tools(daemon, account, session = 's') {
    const call = (tool) => (args = {}, options = {}) => daemon.call(tool, args, { account, session, ...options });
    const t = {
        status: call('workspace_status'), list: call('list_workspace_files'), read: call('read_workspace_file'),
        write: call('write_workspace_file'), writeMany: call('write_workspace_files'),
        edit: call('edit_workspace_file'), multi: call('multi_edit_workspace_file'),
        lint: call('lint_workspace_file'), search: call('search_workspace_files'), remove: call('delete_workspace_file'),
        run: (command, options) => daemon.run(command, { account, ...options }),
        dir: daemon.workspace('p', account),
        in: (session2) => tools(daemon, account, session2),
    };
    t.file = (name) => path.join(t.dir, name);
    t.bytes = (name) => fs.readFileSync(t.file(name));
    t.text = (name) => fs.readFileSync(t.file(name), 'utf8');
    return t;
}

function good(r) {
    assert.equal(r.ok, true, JSON.stringify(r));
    return r;
}

function bad(r, type) {
    assert.equal(r.ok, false, JSON.stringify(r));
    assert.equal(r.error_type, type, JSON.stringify(r));
    assert.equal(typeof r.error_message, 'string');
    assert.notEqual(r.error_message, '');
    return r;
}

const names = (r) => good(r).entries.map((e) => e.path);

export const filesCases = () => [
    {
        title: 'files: written, listed, read, edited, searched, deleted',
        async run(daemon) {
            const t = tools(daemon, 'f0');
            assert.deepEqual(await t.status(), { ok: true, workspace_root: '/workspace', files: [], file_count_sampled: 0 });
            assert.deepEqual(await t.write({ path: 'src/deep/a.txt', content: 'one\ntwo\nthree\n' }),
                { ok: true, path: 'src/deep/a.txt', absolute_path: '/workspace/src/deep/a.txt', size: 14 });
            assert.deepEqual(names(await t.list({ recursive: true })), ['src', 'src/deep', 'src/deep/a.txt']);
            const read = good(await t.read({ path: '/workspace/src/deep/a.txt' }));
            assert.equal(read.content, '1\tone\n2\ttwo\n3\tthree\n');
            assert.deepEqual([read.path, read.size, read.total_lines, read.line_count, read.partial, read.truncated],
                ['src/deep/a.txt', 14, 3, 3, false, false]);
            const edit = good(await t.edit({ path: 'src/deep/a.txt', old_text: 'two', new_text: '2' }));
            assert.equal(edit.diff, '--- src/deep/a.txt before\n+++ src/deep/a.txt after\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n');
            assert.deepEqual([edit.replacements, edit.used_quote_normalization, edit.size], [1, false, 12]);
            const found = good(await t.search({ query: 'THREE' }));
            assert.deepEqual(found.results, [{ path: 'src/deep/a.txt', line: 3, text: 'three', snippet: 'three', context_before: [], context_after: [] }]);
            const seen = await t.run('cat src/deep/a.txt; stat -c %a src/deep/a.txt; echo more > src/deep/b.txt');
            assert.equal(seen.stdout, 'one\n2\nthree\n644\n', 'a job sees the same files');
            assert.deepEqual((await t.status()).files, [{ path: 'src/deep/a.txt', size: 12 }, { path: 'src/deep/b.txt', size: 5 }]);
            assert.deepEqual(await t.remove({ path: 'src/deep/a.txt' }), { ok: true, deleted: 'src/deep/a.txt' });
            bad(await t.read({ path: 'src/deep/a.txt' }), 'path_not_found');
        },
    },
    {
        title: 'files: another account has other files, another session other knowledge',
        async run(daemon) {
            const t = tools(daemon, 'f1'), other = tools(daemon, 'f1x');
            good(await t.write({ path: 'mine.txt', content: 'secret' }));
            assert.deepEqual(names(await other.list()), []);
            bad(await other.read({ path: 'mine.txt' }), 'path_not_found');
            assert.equal(good(await other.search({ query: 'secret' })).match_count, 0);
            bad(await other.read({ path: `../${path.basename(t.dir)}/mine.txt` }), 'path_outside_workspace');
            bad(await t.in('z').edit({ path: 'mine.txt', old_text: 'secret', new_text: 'x' }), 'file_not_read');
            good(await t.in('z').read({ path: 'mine.txt' }));
            good(await t.in('z').edit({ path: 'mine.txt', old_text: 'secret', new_text: 'x' }));
            if (daemon.mode === 'root') assert.equal(fs.statSync(t.file('mine.txt')).uid, fs.statSync(t.dir).uid);
        },
    },
    {
        title: 'files: listing by glob, kind, order and number',
        async run(daemon) {
            const t = tools(daemon, 'f2');
            good(await t.writeMany({ files: ['b.py', 'a.md', 'lib/c.py', 'lib/x/d.py'].map((p, n) => ({ path: p, content: 'x'.repeat(10 * (4 - n)) })) }));
            assert.deepEqual(names(await t.list()), ['a.md', 'b.py', 'lib']);
            assert.deepEqual(names(await t.list({ include_dirs: false })), ['a.md', 'b.py']);
            assert.deepEqual(names(await t.list({ glob: '*.py', recursive: true })), ['b.py', 'lib/c.py', 'lib/x/d.py']);
            assert.deepEqual(names(await t.list({ path: 'lib', glob: 'lib/?.py' })), ['lib/c.py']);
            assert.deepEqual(names(await t.list({ recursive: true, include_dirs: false, sort_by: 'size' })), ['lib/x/d.py', 'lib/c.py', 'a.md', 'b.py']);
            assert.deepEqual(names(await t.list({ path: 'lib/c.py' })), ['lib/c.py']);
            const cut = good(await t.list({ recursive: true, max_results: 2 }));
            assert.deepEqual([cut.entries.length, cut.truncated], [2, true]);
            assert.equal(good(await t.list({ sort_by: 'nonsense' })).truncated, false);
            assert.equal(good(await t.list({ path: '/workspace/lib/' })).path, '/workspace/lib/', 'as it was given');
            bad(await t.list({ path: 'none' }), 'path_not_found');
        },
    },
    {
        title: 'files: lines, ranges and bounds of reading',
        async run(daemon) {
            const t = tools(daemon, 'f3');
            good(await t.write({ path: 'n', content: Array.from({ length: 300 }, (_, n) => `line ${n + 1}`).join('\r\n') }));
            const part = good(await t.read({ path: 'n', start_line: 10, end_line: 11 }));
            assert.equal(part.content, '10\tline 10\n11\tline 11\n');
            assert.deepEqual([part.read_range, part.partial, part.total_lines], [{ start: 10, end: 11 }, true, 300]);
            assert.equal(good(await t.read({ path: 'n', start_line: 299, end_line: 999, include_line_numbers: false })).content, 'line 299\r\nline 300');
            bad(await t.read({ path: 'n', start_line: 301 }), 'invalid_range');
            bad(await t.read({ path: 'n', start_line: 5, end_line: 4 }), 'invalid_range');
            const cut = good(await t.read({ path: 'n', max_chars: 1 }));
            assert.deepEqual([cut.truncated, cut.preview_chars, [...cut.content].length], [true, 1000, 1000], 'clamped to 1000');
            good(await t.write({ path: 'empty', content: '' }));
            const empty = good(await t.read({ path: 'empty' }));
            assert.deepEqual([empty.content, empty.total_lines, empty.line_count], ['', 0, 0]);
            good(await t.write({ path: 'long', content: '\u0001'.repeat(40000) }));
            const long = good(await t.read({ path: 'long', max_chars: 100000, include_line_numbers: false }));
            assert.ok(long.truncated && long.preview_chars >= 10000, 'what escapes make too long is cut, and says so');
            bad(await t.read({ path: 'n', max_chars: 'many' }), 'invalid_argument');
            bad(await t.read({ path: 'n', lines: 3 }), 'invalid_argument');
        },
    },
    {
        title: 'F01 F02 F11 paths that lead out or are none',
        async run(daemon) {
            const t = tools(daemon, 'f4');
            good(await t.write({ path: 'a/f', content: 'x' }));
            for (const p of ['../../etc/passwd', 'a/../../x', '/etc/passwd', 'a/..', '/workspacex', '..']) {
                for (const tool of ['read', 'list', 'lint', 'remove']) bad(await t[tool]({ path: p }), 'path_outside_workspace');
                bad(await t.write({ path: p, content: 'x' }), 'path_outside_workspace');
                bad(await t.edit({ path: p, old_text: 'x', new_text: 'y' }), 'path_outside_workspace');
                bad(await t.search({ path: p, query: 'x' }), 'path_outside_workspace');
            }
            for (const p of ['a\u0000b', '', 'x'.repeat(256), `${'y'.repeat(99)}/`.repeat(50), '.toolgate-1.tmp']) {
                bad(await t.read({ path: p }), 'invalid_path');
                bad(await t.write({ path: p, content: 'x' }), 'invalid_path');
            }
            assert.equal(good(await t.read({ path: '/workspace/./a//f' })).path, 'a/f');
            for (const tool of ['read', 'remove', 'lint', 'write', 'edit', 'multi']) bad(await t[tool]({}), 'invalid_argument');
        },
    },
    {
        title: 'F03 F04 F06 F07 links are shown and never followed; one that leads out breaks no listing',
        async run(daemon) {
            const t = tools(daemon, 'f5');
            fs.writeFileSync(path.join(daemon.dir, 'outside'), 'outside-secret\n', { mode: 0o666 });
            await t.run(`mkdir d real; echo inside > real/in; ln -s /etc/passwd l; ln -s ${daemon.dir} out; ln -s real mid; ln -s ${daemon.dir}/outside o; ln -s none dangling; ln -s . loop`);
            for (const p of ['l', 'out/outside', 'mid/in', 'o', 'loop/real/in']) {
                bad(await t.read({ path: p }), 'symlink_not_allowed');
                bad(await t.lint({ path: p }), 'symlink_not_allowed');
                bad(await t.write({ path: p, content: 'bad' }), 'symlink_not_allowed');
                bad(await t.search({ path: p, query: 'x' }), 'symlink_not_allowed');
            }
            bad(await t.write({ path: 'out/new', content: 'bad' }), 'symlink_not_allowed');
            bad(await t.remove({ path: 'out/outside' }), 'symlink_not_allowed');
            assert.equal(fs.existsSync(path.join(daemon.dir, 'new')), false);
            assert.equal(fs.readFileSync(path.join(daemon.dir, 'outside'), 'utf8'), 'outside-secret\n');
            const list = good(await t.list({ recursive: true }));
            assert.deepEqual(list.entries.filter((e) => e.type === 'symlink').map((e) => [e.path, e.size]),
                [['dangling', 0], ['l', 0], ['loop', 0], ['mid', 0], ['o', 0], ['out', 0]]);
            assert.deepEqual(good(await t.status()).files, [{ path: 'real/in', size: 7 }]);
            for (const context_lines of [0, 1]) {
                assert.deepEqual(good(await t.search({ query: 'secret|inside|root:', is_regex: true, context_lines })).results.map((r) => r.path), ['real/in']);
            }
            good(await t.remove({ path: 'o' }));
            assert.equal(fs.readFileSync(path.join(daemon.dir, 'outside'), 'utf8'), 'outside-secret\n', 'the link went, not what it named');
        },
    },
    {
        title: 'F05 directories and links change places while files are read and written',
        skip: noPython,
        async run(daemon) {
            const t = tools(daemon, 'f6');
            const outside = path.join(daemon.dir, 'swap');
            fs.mkdirSync(outside);
            fs.writeFileSync(path.join(outside, 'f'), 'OUTSIDE needle');
            fs.chmodSync(outside, 0o777);
            fs.chmodSync(path.join(outside, 'f'), 0o666);
            await t.run(`mkdir d; echo 'inside needle' > d/f; ln -s ${outside} l`);
            const swapping = t.run(`python3 - <<'END'
import ctypes, time
c = ctypes.CDLL(None, use_errno=True)
end = time.time() + 4
n = 0
while time.time() < end:
    n += c.renameat2(-100, b"d", -100, b"l", 2) == 0
print(n)
END`, { session: 'swap' });
            const count = { read: 0, refused: 0, wrote: 0 };
            const end = performance.now() + 3500;
            while (performance.now() < end) {
                const [r, w, s] = await Promise.all([t.read({ path: 'd/f' }), t.write({ path: 'd/g', content: 'w' }), t.search({ query: 'needle' })]);
                if (r.ok) { count.read++; assert.doesNotMatch(r.content, /OUTSIDE/); } else { count.refused++; assert.match(r.error_type, /symlink_not_allowed|path_not_found/); }
                if (w.ok) count.wrote++;
                assert.doesNotMatch(JSON.stringify(s), /OUTSIDE/);
            }
            assert.ok(Number((await swapping).stdout) > 1000);
            assert.ok(count.read > 0 && count.refused > 0 && count.wrote > 0, JSON.stringify(count));
            assert.deepEqual(fs.readdirSync(outside), ['f']);
            assert.equal(fs.readFileSync(path.join(outside, 'f'), 'utf8'), 'OUTSIDE needle');
        },
    },
    {
        title: 'F08 F09 what is no regular file does not hold anybody up',
        skip: noPython,
        async run(daemon) {
            const t = tools(daemon, 'f7');
            await t.run('mkfifo p; mkdir d; python3 -c \'import socket; socket.socket(socket.AF_UNIX).bind("s")\'; echo needle > f');
            for (const p of ['p', 's', 'd']) {
                for (const tool of ['read', 'lint']) bad(await t[tool]({ path: p }), 'not_a_regular_file');
                bad(await t.write({ path: p, content: 'x' }), 'not_a_regular_file');
            }
            bad(await t.search({ path: 'p', query: 'x' }), 'not_a_regular_file');
            bad(await t.write({ path: '.', content: 'x' }), 'not_a_regular_file');
            for (const context_lines of [0, 1]) assert.equal(good(await t.search({ query: 'needle', context_lines })).match_count, 1);
            assert.deepEqual(good(await t.list()).entries.map((e) => [e.name, e.type]),
                [['d', 'directory'], ['f', 'file'], ['p', 'other'], ['s', 'other']]);
            good(await t.remove({ path: 'p' }));
        },
    },
    {
        title: 'F10 F26 a new file takes the place: other names of the old one keep it, its mode stays',
        async run(daemon) {
            const t = tools(daemon, 'f8');
            await t.run("printf '#!/bin/sh\\necho old\\n' > existing; chmod 755 existing; ln existing other");
            good(await t.write({ path: 'existing', content: '#!/bin/sh\necho new\n' }));
            good(await t.edit({ path: 'existing', old_text: 'new', new_text: 'edited' }));
            const r = await t.run('./existing; ./other; stat -c %a existing; ls -A');
            assert.equal(r.stdout, 'edited\nold\n755\nexisting\nother\n');
        },
    },
    {
        title: 'F12 names of any bytes are listed, found and deleted',
        async run(daemon) {
            const t = tools(daemon, 'f9');
            const odd = Buffer.from([0xff, 0xfe]);
            await t.run("printf needle > $'\\xff\\xfe'; printf needle > $'a\\nb\\t\\e\"q'; printf needle > 'x:1:y'; printf needle > '\\xff'");
            const list = names(await t.list());
            assert.deepEqual(list, ['\\x5cxff', 'a\nb\t\u001b"q', 'x:1:y', '\\xff\\xfe']);
            for (const context_lines of [0, 1]) {
                assert.deepEqual(good(await t.search({ query: 'needle', context_lines })).results.map((r) => r.path).sort(), [...list].sort());
            }
            for (const p of list) {
                assert.equal(good(await t.read({ path: p })).path, p);
                good(await t.remove({ path: p }));
            }
            assert.equal(fs.existsSync(Buffer.concat([Buffer.from(`${t.dir}/`), odd])), false);
            assert.deepEqual(fs.readdirSync(t.dir), []);
        },
    },
    {
        title: 'F13 F14 F15 R09 large, sparse and binary files',
        async run(daemon) {
            const t = tools(daemon, 'f10');
            good(await t.write({ path: 'x', content: 'x' }));
            await t.run(`head -c ${2 * MIB} /dev/zero | tr '\\0' a > fits; head -c ${2 * MIB + 1} /dev/zero | tr '\\0' a > over; printf '\\211PNG\\r\\n\\032\\n' > png; printf '\\377\\376a\\0' > utf16; printf 'a\\0b' > nul`);
            if (isRoot) fs.truncateSync(t.file('x'), 2 ** 40);
            good(await t.read({ path: 'fits' }));
            bad(await t.read({ path: 'over' }), 'file_too_large');
            if (isRoot) bad(await t.read({ path: 'x' }), 'file_too_large');
            bad(await t.lint({ path: 'over' }), 'file_too_large');
            for (const p of ['png', 'utf16', 'nul']) bad(await t.read({ path: p }), 'not_utf8_text');
            good(await t.search({ query: 'zz', context_lines: 1 }));
            const grow = t.run('for i in $(seq 300); do head -c 50000 /dev/zero >> g; : > g2; mv g2 g; done; true', { session: 'g' });
            for (let n = 0; n < 30; n++) {
                const r = await t.read({ path: 'g' });
                if (!r.ok) assert.match(r.error_type, /not_utf8_text|path_not_found/);
            }
            await grow;
            await t.remove({ path: 'x' });
        },
    },
    {
        title: 'F16 F17 the root and a directory that is not empty stay',
        async run(daemon) {
            const t = tools(daemon, 'f11');
            good(await t.write({ path: 'd/f', content: 'x' }));
            for (const p of ['.', './', '/workspace', '/workspace/']) bad(await t.remove({ path: p }), 'workspace_root_protected');
            bad(await t.remove({ path: '' }), 'invalid_path');
            bad(await t.remove({ path: 'd/..' }), 'path_outside_workspace');
            bad(await t.remove({ path: 'd' }), 'directory_not_empty');
            assert.equal(t.text('d/f'), 'x');
            good(await t.remove({ path: 'd/f' }));
            good(await t.remove({ path: 'd' }));
            bad(await t.remove({ path: 'd' }), 'path_not_found');
        },
    },
    {
        title: 'F18 F19 F28 an edit needs the file as it is; a write and an edit know it',
        async run(daemon) {
            const t = tools(daemon, 'f12');
            await t.run("seq 1000 > f; printf 'aaaa' > same");
            bad(await t.edit({ path: 'f', old_text: '500', new_text: 'x' }), 'file_not_read');
            const hint = bad(await t.edit({ path: 'none', old_text: '500', new_text: 'x' }), 'file_not_read');
            assert.match(hint.suggested_action, /read_workspace_file/);
            assert.equal(hint.path, 'none');
            good(await t.read({ path: 'f', end_line: 10 }));
            good(await t.edit({ path: 'f', old_text: '\n500\n', new_text: '\nfive hundred\n' }));
            good(await t.edit({ path: 'f', old_text: '\n501\n', new_text: '\nand one\n' }), 'without reading again');

            // the same size and the same time, other content
            good(await t.read({ path: 'same' }));
            await t.run('touch -r same stamp; printf bbbb > same; touch -r stamp same');
            bad(await t.edit({ path: 'same', old_text: 'bbbb', new_text: 'x' }), 'file_modified_since_read');
            // another time, the same content
            good(await t.read({ path: 'same' }));
            await t.run('touch -d 2020-01-01 same');
            good(await t.edit({ path: 'same', old_text: 'bbbb', new_text: 'x' }));

            good(await t.write({ path: 'new', content: 'written here' }));
            good(await t.edit({ path: 'new', old_text: 'written', new_text: 'edited' }));
            good(await t.remove({ path: 'new' }));
            bad(await t.edit({ path: 'new', old_text: 'edited', new_text: 'x' }), 'file_not_read');

            for (let n = 0; n < 10; n++) {
                const [a, b] = [t.in('a'), t.in('b')];
                good(await a.write({ path: 'both', content: 'start' }));
                good(await b.read({ path: 'both' }));
                const both = await Promise.all([a.edit({ path: 'both', old_text: 'start', new_text: 'A' }), b.edit({ path: 'both', old_text: 'start', new_text: 'B' })]);
                assert.equal(both.filter((r) => r.ok).length, 1, JSON.stringify(both));
                bad(both.find((r) => !r.ok), 'file_modified_since_read');
            }
        },
    },
    {
        title: 'F20 F21 F22 F23 F24 edits that do not fit, and several at once',
        async run(daemon) {
            const t = tools(daemon, 'f13');
            const text = 'alpha\nbeta\ngamma “quoted”\naa aa\n';
            good(await t.write({ path: 'f', content: text }));
            const edits = [{ old_text: 'alpha', new_text: '1' }, { old_text: 'betta', new_text: '2' }, { old_text: 'gamma', new_text: '3' }];
            const failed = bad(await t.multi({ path: 'f', edits }), 'snippet_not_found');
            assert.deepEqual([failed.failed_edit_index, failed.edit_count, failed.occurrences], [1, 3, 0]);
            assert.deepEqual(failed.nearby_candidates[0], { line: 2, text: 'beta', snippet: 'beta', score: 0.889 });
            assert.equal(t.text('f'), text);
            bad(await t.edit({ path: 'f', old_text: '', new_text: 'x' }), 'missing_old_text');
            bad(await t.edit({ path: 'f', old_text: 'beta', new_text: 'beta' }), 'no_change');
            bad(await t.edit({ path: 'f', old_text: 'x'.repeat(5000), new_text: 'y' }), 'snippet_not_found');
            const twice = bad(await t.edit({ path: 'f', old_text: 'aa', new_text: 'b', expected_replacements: 3 }), 'ambiguous_edit');
            assert.deepEqual([twice.occurrences, twice.expected_replacements], [2, 3]);
            assert.deepEqual(twice.matches, [{ line: 4, text: 'aa aa', snippet: 'aa aa' }, { line: 4, text: 'aa aa', snippet: 'aa aa' }]);
            bad(await t.multi({ path: 'f', edits: [] }), 'invalid_edits');
            bad(await t.multi({ path: 'f' }), 'invalid_edits');
            assert.equal(bad(await t.multi({ path: 'f', edits: [{ old_text: 'a', new_text: 'b' }, 5] }), 'invalid_edit').failed_edit_index, 1);
            assert.equal(bad(await t.multi({ path: 'f', edits: [{ new_text: 'b' }] }), 'missing_old_text').failed_edit_index, 0);
            bad(await t.multi({ path: 'f', edits: [{ old_text: 'a' }] }), 'invalid_edit');
            bad(await t.multi({ path: 'f', edits: [{ old_text: 'beta', new_text: 'x' }, { old_text: 'x', new_text: 'beta' }] }), 'no_change');
            assert.equal(t.text('f'), text);

            const done = good(await t.multi({ path: 'f', edits: [{ old_text: 'alpha', new_text: '\\1 $& & %s' },
                { old_text: '"quoted"', new_text: 'plain' }, { old_text: 'aa', new_text: 'b', expected_replacements: 2 }] }));
            assert.equal(t.text('f'), '\\1 $& & %s\nbeta\ngamma plain\nb b\n');
            assert.deepEqual([done.edit_count, done.replacements], [3, 4]);
            assert.deepEqual(done.edits.map((e) => [e.index, e.replacements, e.used_quote_normalization, e.matches.length]),
                [[0, 1, false, 1], [1, 1, true, 1], [2, 2, false, 2]]);
            good(await t.edit({ path: 'f', old_text: 'b', new_text: 'c', replace_all: true }));

            await t.run(`head -c ${MIB} /dev/zero | tr '\\0' a > big`);
            good(await t.read({ path: 'big' }));
            bad(await t.edit({ path: 'big', old_text: 'a', new_text: 'b'.repeat(500), replace_all: true }), 'file_too_large');
            assert.equal(fs.statSync(t.file('big')).size, MIB);
        },
    },
    {
        title: 'F25 line ends, byte order mark and a last line without end stay as they are',
        async run(daemon) {
            const t = tools(daemon, 'f14');
            const cases = [['a\r\nb\r\nc\r\n', 'b\nc', 'B\nC', 'a\r\nB\r\nC\r\n'], ['\ufeffa\nb', 'a', 'x', '\ufeffx\nb'],
                ['a\nb', 'b', 'x', 'a\nx'], ['a\r\nb\nc', 'b', 'x', 'a\r\nx\nc'], ['a\r\nb\r\n', 'a', 'x\ny', 'x\r\ny\r\nb\r\n']];
            for (const [before, old_text, new_text, after] of cases) {
                good(await t.write({ path: 'f', content: before }));
                assert.deepEqual(t.bytes('f'), Buffer.from(before));
                good(await t.edit({ path: 'f', old_text, new_text }));
                assert.deepEqual(t.bytes('f'), Buffer.from(after));
            }
            assert.doesNotMatch(good(await t.read({ path: 'f' })).content, /\r/);
        },
    },
    {
        title: 'F27 a worker that is killed leaves the old file or the new one',
        async run(daemon) {
            const t = tools(daemon, 'f15');
            const texts = ['A'.repeat(60 * KIB), 'B'.repeat(90 * KIB)];
            good(await t.write({ path: 'f', content: texts[0] }));
            const took = (await t.write({ path: 'f', content: texts[0] })).took;
            let killed = 0;
            for (let n = 0; n < 150; n++) {
                let over = false;
                const call = t.write({ path: 'f', content: texts[n % 2] }).finally(() => { over = true; });
                await sleep(Math.random() * took);
                // a worker lives for milliseconds: it is looked for until the call is over
                for (let hit = false; !hit && !over; await sleep(0)) {
                    for (const p of descendants(daemon.launcher)) {
                        if (p.name.startsWith('toolgated: file')) {
                            hit = true;
                            try { process.kill(p.pid, 'SIGKILL'); } catch { /* it has ended */ }
                        }
                    }
                }
                const r = await call;
                if (!r.ok) { killed++; bad(r, 'file_tool_failed'); }
                assert.ok(texts.includes(t.text('f')), 'whole');
            }
            assert.ok(killed > 0, 'some were killed');
            good(await t.write({ path: 'f', content: 'end' }));
            assert.deepEqual(names(await t.list()), ['f'], 'what is left is not shown');
            const old = Date.now() / 1000 - 3600;
            for (const name of fs.readdirSync(t.dir)) fs.utimesSync(t.file(name), old, old);
            good(await t.write({ path: 'f', content: 'end' }));
            assert.deepEqual(fs.readdirSync(t.dir), ['f'], 'and swept when it is old');
        },
    },
    {
        title: 'F29 F30 F31 searches: no option, no configuration, no endless matching',
        skip: noRg,
        async run(daemon) {
            const t = tools(daemon, 'f16');
            await t.run(`printf '#!/bin/sh\\necho ran > /workspace/RAN\\n' > pre.sh; chmod 755 pre.sh; echo '--pre=/workspace/pre.sh' > .ripgreprc; echo '*' > .ignore; echo '*' > .gitignore
                mkdir .git .hidden; echo needle > .git/x; echo needle > .hidden/x; printf 'needle --pre=sh - -f/etc/passwd\\n' > f; (head -c ${1000 * KIB} /dev/zero | tr '\\0' a; echo b) > big`);
            for (const query of ['--pre=/workspace/pre.sh', '--pre=sh', '-f/etc/passwd', '-', '-e', '--', '--files', '--type-list']) {
                for (const context_lines of [0, 1]) {
                    const r = good(await t.search({ query, context_lines, glob: '[!.]*' }));
                    assert.equal(r.search_backend, context_lines ? 'builtin' : 'rg');
                    assert.ok(r.results.every((x) => x.text.includes(query)), JSON.stringify(r));
                }
            }
            assert.equal(fs.existsSync(t.file('RAN')), false);
            for (const context_lines of [0, 2]) {
                assert.deepEqual(good(await t.search({ query: 'needle', context_lines })).results.map((r) => r.path), ['.hidden/x', 'f'], 'hidden and ignored ones too');
            }
            const linear = await t.search({ query: '(a+)+$', is_regex: true });
            good(linear);
            const r = bad(await t.search({ query: '(a+)+$', is_regex: true, context_lines: 1 }), 'search_too_complex');
            assert.ok(r.took < 3000 && linear.took < 3000);
            for (const context_lines of [0, 1]) bad(await t.search({ query: '(', is_regex: true, context_lines }), 'invalid_regex');
            for (const query of ['', ' \n ', undefined]) bad(await t.search({ query }), 'query_required');
            bad(await t.search({ query: 'a\nb' }), 'invalid_argument');
            bad(await t.search({ query: 'x', path: 'none' }), 'path_not_found');
        },
    },
    {
        title: 'files: what a search finds, by ripgrep and without it',
        skip: noRg,
        async run(daemon) {
            const t = tools(daemon, 'f17');
            good(await t.writeMany({ files: [{ path: 'b/two.txt', content: 'x\r\n  Needle one\r\nneedle two\r\ny\r\n' }, { path: 'a.md', content: 'needle (three)\n' },
                { path: 'c.bin', content: 'x' }] }));
            await t.run("printf 'needle\\0' > c.bin; (seq 20000; echo needle; seq 20000; printf '\\0') > d.bin");
            const find = async (args, backend = 'rg') => {
                const [rg, own] = [good(await t.search(args)), good(await t.search({ ...args, context_lines: 1 }))];
                assert.deepEqual([rg.search_backend, own.search_backend], [backend, 'builtin']);
                const lines = (r) => r.results.map(({ path: p, line, text, snippet }) => [p, line, text, snippet]);
                assert.deepEqual(lines(rg), lines(own));
                assert.deepEqual([rg.match_count, rg.truncated], [own.match_count, own.truncated]);
                return { lines: lines(rg).map((l) => l.slice(0, 3)), own, rg };
            };
            const all = await find({ query: 'needle' });
            assert.deepEqual(all.lines, [['a.md', 1, 'needle (three)'], ['b/two.txt', 2, 'Needle one'], ['b/two.txt', 3, 'needle two']]);
            assert.deepEqual([all.own.results[1].context_before, all.own.results[1].context_after, all.own.results[1].snippet], [['x'], ['needle two'], '  Needle one']);
            assert.equal((await find({ query: 'needle', case_sensitive: true })).lines.length, 2);
            assert.equal((await find({ query: 'e (t' })).lines.length, 1);
            assert.equal((await find({ query: '^\\s*needle \\w+$', is_regex: true })).lines.length, 2);
            assert.equal((await find({ query: 'needle', glob: '*.txt' })).lines.length, 2);
            assert.deepEqual((await find({ query: 'needle', path: 'b' })).lines.map((l) => l[0]), ['b/two.txt', 'b/two.txt']);
            assert.deepEqual((await find({ query: 'needle', path: 'b/two.txt' }, 'builtin')).lines.map((l) => l[1]), [2, 3]);
            assert.equal((await find({ query: 'needle', max_results: 1 })).rg.truncated, true);
            assert.deepEqual((await find({ query: 'nowhere' })).lines, []);
            good(await t.writeMany({ files: ['o.txt', 'o/b', 'o/a.txt', 'o/a/c', 'o-x', 'O'].map((p) => ({ path: `order/${p}`, content: 'in order' })) }));
            assert.deepEqual((await find({ query: 'in order' })).lines.map((l) => l[0].slice(6)), ['O', 'o/a/c', 'o/a.txt', 'o/b', 'o-x', 'o.txt']);
            assert.equal(all.rg.searched_path, '.');
        },
    },
    {
        title: 'F32 many files: bounded in time and in the answer',
        async run(daemon) {
            const t = tools(daemon, 'f18');
            await t.run('for d in $(seq 20); do mkdir -p d$d; (cd d$d; seq 400 | xargs touch); done');
            const r = good(await t.list({ glob: '**/**/**/**/*x', recursive: true }));
            assert.deepEqual(r.entries, []);
            assert.ok(r.took < 1500, `${r.took}`);
            const all = good(await t.list({ recursive: true, max_results: 5000 }));
            assert.equal(all.truncated, true);
            assert.ok(all.raw.length < 256 * KIB && all.entries.length > 500);
        },
    },
    {
        title: 'F33 lint: what can not be parsed is a finding',
        skip: noPython,
        async run(daemon) {
            const t = tools(daemon, 'f19');
            good(await t.writeMany({ files: [{ path: 'ok.py', content: 'import os\nprint("x")  \n' }, { path: 'bad.py', content: 'def f():\n  return (\n' },
                { path: 'ok.json', content: '{"a":[1]}' }, { path: 'bad.json', content: '{"a":\n  nul}' }, { path: 'a.md', content: 'x \nok\n\ty\t\r\n' },
                { path: 'ran.py', content: 'import os\nopen("/workspace/RAN", "w")\nos.system("touch RAN")\n' }, { path: 'encoding.py', content: '# coding: none-such\nx\n' }] }));
            await t.run(`printf 'a\\0b\\n' > nul.txt; head -c 100000 /dev/zero | tr '\\0' '(' > deep.py; head -c 1000000 /dev/zero | tr '\\0' '[' > deep.json; printf 'x\\0' > nul.py`);
            const ok = good(await t.lint({ path: 'ok.py' }));
            assert.deepEqual([ok.language, ok.issues, ok.lint_model], ['python', [], 'built_in_lightweight']);
            const at = async (args) => bad(await t.lint(args), 'lint_failed').issues.map((i) => [i.severity, i.line]);
            assert.deepEqual(await at({ path: 'bad.py' }), [['error', 2]]);
            assert.deepEqual(await at({ path: 'bad.json' }), [['error', 2]]);
            assert.equal((await at({ path: 'deep.py' })).length, 1);
            assert.deepEqual(good(await t.lint({ path: 'deep.json' })).issues.map((i) => i.severity), ['warning']);
            assert.equal((await at({ path: 'encoding.py' })).length, 1);
            assert.equal((await at({ path: 'nul.py' })).length, 1);
            assert.deepEqual(await at({ path: 'nul.txt' }), [['error', 1]]);
            assert.deepEqual(await at({ path: 'a.md', language: 'py' }), await at({ path: 'a.md', language: 'Python3' }));
            assert.deepEqual(good(await t.lint({ path: 'a.md' })).issues.map((i) => [i.severity, i.line]), [['warning', 1], ['warning', 3]]);
            assert.equal(good(await t.lint({ path: 'ok.json', language: 'auto' })).language, 'json');
            assert.equal(good(await t.lint({ path: 'ok.json', language: 'js' })).language, 'javascript');
            good(await t.lint({ path: 'ran.py' }));
            assert.equal(fs.existsSync(t.file('RAN')), false, 'nothing of a file is run');
            good(await t.write({ path: 'many.txt', content: 'x \n'.repeat(50) }));
            assert.equal(good(await t.lint({ path: 'many.txt' })).issues.length, 20);
            bad(await t.lint({ path: 'none.py' }), 'path_not_found');
        },
    },
    {
        title: 'F34 R07 several files are written all or none, within the bounds of a workspace',
        async run(daemon) {
            const t = tools(daemon, 'f20');
            const file = (p, content = 'new') => ({ path: p, content });
            good(await t.write({ path: 'old', content: 'old' }));
            await t.run('ln -s /etc l; mkdir -p dir/x');
            assert.equal(bad(await t.writeMany({ files: [file('a'), file('b'), file('./a')] }), 'duplicate_path').failed_file_index, 2);
            assert.equal(bad(await t.writeMany({ files: [file('a'), file('old'), file('l/x')] }), 'symlink_not_allowed').failed_file_index, 2);
            bad(await t.writeMany({ files: [file('a'), file('old')], overwrite: false }), 'file_exists');
            bad(await t.writeMany({ files: [file('a'), file('dir')] }), 'not_a_regular_file');
            // a file and a directory of one name: seen when they go into place
            bad(await t.writeMany({ files: [file('old'), file('n'), file('n/x')] }), 'not_a_regular_file');
            bad(await t.writeMany({ files: [file('a'), 5] }), 'invalid_files');
            bad(await t.writeMany({ files: [file('a'), { content: 'x' }] }), 'invalid_files');
            bad(await t.writeMany({ files: [file('a'), { path: 'b' }] }), 'invalid_argument');
            bad(await t.writeMany({ files: [] }), 'invalid_files');
            bad(await t.writeMany({}), 'invalid_files');
            assert.equal(t.text('old'), 'old');
            assert.deepEqual(names(await t.list()).filter((n) => n !== 'n'), ['dir', 'l', 'old']);

            bad(await t.write({ path: 'old', content: 'x', overwrite: false }), 'file_exists');
            const many = good(await t.writeMany({ files: Array.from({ length: 101 }, (_, n) => file(`m/${n}`, `${n}`)) }));
            assert.deepEqual([many.written.length, many.truncated], [100, true]);
            assert.equal(fs.readdirSync(t.file('m')).length, 100);
            good(await t.writeMany({ files: [file('old', 'newer'), file('m/0', 'zero')] }));
            assert.deepEqual([t.text('old'), t.text('m/0')], ['newer', 'zero']);
            good(await t.edit({ path: 'm/0', old_text: 'zero', new_text: 'none' }));

            await t.run('for i in 1 2 3 4 5; do fallocate -l 60M big$i || head -c 60M /dev/zero > big$i; done', { timeout: 60 });
            bad(await t.write({ path: 'one-more', content: 'x'.repeat(KIB) }), 'quota_exceeded');
            bad(await t.edit({ path: 'm/0', old_text: 'none', new_text: 'none at all' }), 'quota_exceeded');
            good(await t.remove({ path: 'big1' }));
            good(await t.write({ path: 'one-more', content: 'x'.repeat(KIB) }));
            await t.run('rm -f big*');
        },
    },
    {
        title: 'F35 nothing of the workspace is run',
        async run(daemon) {
            const t = tools(daemon, 'f21');
            await t.run(`mkdir -p .git/hooks bin; for f in .git/hooks/post-checkout bin/rg bin/python3 rg python3; do printf '#!/bin/sh\\ntouch /workspace/RAN\\n' > $f; chmod 755 $f; done
                printf '[core]\\n\\tfsmonitor = /workspace/rg\\n' > .git/config; echo 'raise SystemExit' > sitecustomize.py; echo x > f.py`);
            good(await t.search({ query: 'x' }));
            good(await t.lint({ path: 'f.py' }));
            good(await t.list({ recursive: true }));
            good(await t.status());
            good(await t.read({ path: 'f.py' }));
            assert.equal(fs.existsSync(t.file('RAN')), false);
        },
    },
    {
        title: 'files: a worker has its account\'s files and nothing else, and ends with its client',
        skip: (mode) => !isRoot && mode === 'user' && 'only root can look into another process',
        async run(daemon) {
            const t = tools(daemon, 'f24');
            await t.run(`head -c ${MIB} /dev/zero | tr '\\0' a > big; for i in $(seq 200); do cp big b$i; done`);
            const slow = { query: '(?:a?){16}a{16}b', is_regex: true, context_lines: 1 };
            const workers = () => descendants(daemon.launcher).filter((p) => p.name.startsWith('toolgated: file'));
            const client = await daemon.connect();
            const call = client.call('search_workspace_files', slow, { account: 'f24' }).catch(() => 'closed');
            const proc = (file) => fs.readFileSync(`/proc/${workers()[0].pid}/${file}`, 'utf8');
            await until('a confined worker', () => workers().length === 1 && /Seccomp:\t2/.test(proc('status')));
            const status = proc('status');
            const field = (name) => new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)[1].trim().split(/\s+/);
            const owner = String(fs.statSync(t.dir).uid);
            assert.deepEqual(field('Uid'), [owner, owner, owner, owner]);
            assert.equal(BigInt(`0x${field('CapEff')[0]}`) | BigInt(`0x${field('CapPrm')[0]}`), 0n);
            assert.deepEqual([field('NoNewPrivs'), field('Seccomp')], [['1'], ['2']]);
            if (daemon.mode === 'root') assert.ok(Number(owner) > 60000 && field('Groups').join('') === '');
            const dir = `/proc/${workers()[0].pid}/fd`;
            const open = fs.readdirSync(dir).map((n) => [n, fs.readlinkSync(`${dir}/${n}`)]).filter(([n]) => Number(n) < 5);
            assert.deepEqual(open.map(([n, to]) => [n, to.replace(/\d+/, '')]),
                [['0', '/dev/null'], ['1', '/dev/null'], ['2', '/dev/null'], ['3', t.dir.replace(/\d+/, '')], ['4', 'socket:[]']]);
            if (!ASAN) assert.match(proc('limits'), /Max address space +536870912 +536870912/);
            assert.match(proc('limits'), /Max core file size +0 +0/);
            client.close();
            assert.equal(await call, 'closed');
            await until('the worker is gone', () => workers().length === 0, 1000);

            if (daemon.mode === 'root') {
                const hung = t.search(slow);
                await until('another worker', () => workers().length === 1);
                process.kill(workers()[0].pid, 'SIGSTOP');
                const other = good(await t.read({ path: 'big', max_chars: 1000 }));
                assert.ok(other.took < 2000, 'others go on');
                bad(await hung, 'file_tool_timed_out');
                await until('the hung worker is gone', () => workers().length === 0, 1000);
            }
            await t.run('rm -f b*');
        },
    },
    {
        title: 'files: what its owner has closed, and deep folders',
        async run(daemon) {
            const t = tools(daemon, 'f25');
            await t.run('echo x > shut; chmod 000 shut; mkdir closed; echo x > closed/f; chmod 000 closed; p=.; for i in $(seq 80); do p=$p/d; done; mkdir -p $p; echo deep > $p/f; echo top > f');
            bad(await t.read({ path: 'shut' }), 'access_denied');
            bad(await t.read({ path: 'closed/f' }), 'access_denied');
            const list = good(await t.list({ recursive: true, max_results: 5000 }));
            assert.equal(list.truncated, true, 'deeper than 64');
            assert.ok(list.entries.length > 60);
            good(await t.search({ query: 'top' }));
            bad(await t.read({ path: `${'d/'.repeat(80)}f` }), 'invalid_path');
            good(await t.read({ path: 'f' }));
            await t.run('chmod 700 closed shut');
        },
    },
    {
        title: 'files: calls of one account wait for each other, a client that leaves is forgotten',
        async run(daemon) {
            const t = tools(daemon, 'f22');
            const all = await Promise.all(Array.from({ length: 30 }, (_, n) => t.write({ path: `w${n}`, content: `${n}` })));
            assert.ok(all.every((r) => r.ok), JSON.stringify(all.find((r) => !r.ok)));
            const many = await Promise.all(Array.from({ length: 60 }, () => t.read({ path: 'w0' })));
            for (const r of many) if (!r.ok) bad(r, 'too_many_calls');
            assert.ok(many.filter((r) => r.ok).length >= 34);
            const client = await daemon.connect();
            client.call('search_workspace_files', { query: '1' }, { account: 'f22' }).catch(() => {});
            client.close();
            const cancelled = await daemon.connect();
            const call = cancelled.call('lint_workspace_file', { path: 'w0', language: 'python' }, { account: 'f22', id: 'mine' });
            cancelled.cancel('mine');
            const r = await call;
            if (!r.ok) bad(r, 'cancelled');
            cancelled.close();
            await sleep(50);
            good(await t.read({ path: 'w1' }));
        },
    },
    {
        title: 'files: neither names nor content are in the log',
        async run(daemon) {
            const t = tools(daemon, 'f23');
            await t.write({ path: 'hunter2-name', content: 'hunter2-content' });
            await t.search({ query: 'hunter2-query' });
            await t.read({ path: 'hunter2-missing' });
            assert.doesNotMatch(daemon.logText(), /hunter2/);
            assert.ok(daemon.log().some((l) => l.ev === 'call' && l.tool === 'read_workspace_file'));
            for (const r of [await t.read({ path: 'x/y' }), await t.read({ path: '/proc/1/x' }), await t.write({ path: 'hunter2-name/x', content: '' })]) {
                assert.equal(r.ok, false);
                assert.doesNotMatch(JSON.stringify(r), new RegExp(`${daemon.dir}|errno|workspaces/`));
            }
        },
    },
];
