// Writing into a workspace, where it could end half way: what a client that leaves, a
// failure or an odd name may not do to the files of an account.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { descendants, sleep, until } from './daemon.mjs';

const MANY = 100;

function tools(daemon, account) {
    const call = (tool) => (args = {}, options = {}) => daemon.call(tool, args, { account, session: 's', ...options });
    const dir = daemon.workspace('p', account);
    return {
        write: call('write_workspace_file'), writeMany: call('write_workspace_files'), read: call('read_workspace_file'),
        edit: call('edit_workspace_file'), multi: call('multi_edit_workspace_file'),
        list: call('list_workspace_files'), remove: call('delete_workspace_file'),
        run: (command, options) => daemon.run(command, { account, ...options }),
        account, dir, file: (name) => path.join(dir, name), text: (name) => fs.readFileSync(path.join(dir, name), 'utf8'),
    };
}

function good(r) {
    assert.equal(r.ok, true, JSON.stringify(r).slice(0, 1000));
    return r;
}

function bad(r, type) {
    assert.equal(r.ok, false, JSON.stringify(r).slice(0, 1000));
    assert.equal(r.error_type, type, JSON.stringify(r));
    return r;
}

const workers = (daemon) => descendants(daemon.launcher).filter((p) => p.name.startsWith('toolgated: file'));
const many = (content) => Array.from({ length: MANY }, (_, n) => ({ path: `f${n}`, content }));
const isTemp = (name) => name.startsWith('.toolgate-');

export const filesCommitCases = () => [
    {
        title: 'files: a client that leaves or cancels finds all files written or none',
        async run(daemon) {
            const t = tools(daemon, 'fc0');
            good(await t.writeMany({ files: many('old') }));
            const took = good(await t.writeMany({ files: many('old') })).took;
            const count = { old: 0, new: 0 };
            for (let n = 0; n < 40; n++) {
                const client = await daemon.connect();
                const call = client.call('write_workspace_files', { files: many('new') }, { account: t.account, id: `c${n}` });
                call.catch(() => {});
                // most of them while files go into place, which is the second half
                await sleep(took * (0.3 + 0.7 * n / 40));
                if (n % 2) {
                    client.cancel(`c${n}`);
                    const r = await call;
                    if (!r.ok) bad(r, 'cancelled');
                    else assert.equal(t.text('f0'), 'new', 'the answer says what came of it');
                }
                client.close();
                await until('the worker is gone', () => workers(daemon).length === 0);
                const texts = new Set(Array.from({ length: MANY }, (_, i) => t.text(`f${i}`)));
                assert.equal(texts.size, 1, `all or none: ${[...texts]}`);
                const [text] = texts;
                count[text]++;
                if (text === 'new') {
                    assert.deepEqual(fs.readdirSync(t.dir).filter(isTemp), [], 'nothing is left');
                    good(await t.writeMany({ files: many('old') }));
                }
                // what was cancelled before the first file went in is swept later
                for (const name of fs.readdirSync(t.dir).filter(isTemp)) fs.unlinkSync(t.file(name));
            }
            assert.ok(count.old > 0 && count.new > 0, JSON.stringify(count));
        },
    },
    {
        title: 'files: names of temporary files hide nothing from a tool or the count',
        async run(daemon) {
            const t = tools(daemon, 'fc1');
            await t.run("mkdir -p .toolgate-a.tmp keep; echo x > .toolgate-a.tmp/f; for i in 1 2 3 4 5; do fallocate -l 60M keep/.toolgate-$i.tmp || head -c 60M /dev/zero > keep/.toolgate-$i.tmp; done", { timeout: 60 });
            for (const p of ['.toolgate-x.tmp/f', 'a/.toolgate-x.tmp/b/f', '.toolgate-x.tmp']) {
                bad(await t.write({ path: p, content: 'x' }), 'invalid_path');
                bad(await t.writeMany({ files: [{ path: 'ok', content: 'x' }, { path: p, content: 'x' }] }), 'invalid_path');
            }
            const listed = good(await t.list({ recursive: true })).entries.map((e) => e.path);
            assert.deepEqual(listed, ['.toolgate-a.tmp', '.toolgate-a.tmp/f', 'keep'], 'a directory is shown');
            bad(await t.write({ path: 'a', content: 'x' }), 'quota_exceeded');
            // old ones that nobody owns go with the next count, wherever they lie
            const old = Date.now() / 1000 - 3600;
            for (const name of fs.readdirSync(t.file('keep'))) fs.utimesSync(t.file(`keep/${name}`), old, old);
            good(await t.write({ path: 'a', content: 'x' }));
            assert.deepEqual(fs.readdirSync(t.file('keep')), []);
        },
    },
    {
        title: 'files: a deep path is refused and does not shut the workspace',
        async run(daemon) {
            const t = tools(daemon, 'fc2');
            const p = `${'d/'.repeat(63)}f`;
            good(await t.write({ path: p, content: 'x' }));
            good(await t.write({ path: 'after', content: 'x' }));
            for (const deep of [`d/${p}`, `${'d/'.repeat(70)}f`, `${'e/'.repeat(2000)}f`]) {
                const r = bad(await t.write({ path: deep, content: 'x' }), 'invalid_path');
                assert.ok(r.took < 2000, `${r.took}`);
            }
            good(await t.write({ path: 'after', content: 'y' }));
            await t.run('p=x; for i in $(seq 80); do p=$p/x; done; mkdir -p $p; mkdir -p a z; echo x > a/f; echo x > z/f');
            const listed = good(await t.list({ recursive: true, max_results: 5000 }));
            assert.equal(listed.truncated, true);
            for (const name of ['a/f', 'z/f', p]) assert.ok(listed.entries.some((e) => e.path === name), `the others are listed: ${name}`);
            assert.match(bad(await t.write({ path: 'n', content: 'x' }), 'quota_exceeded').error_message, /could not be counted/);
            await t.run('rm -rf x');
            good(await t.write({ path: 'n', content: 'x' }));
        },
    },
    {
        title: 'files: what is written is answered as written, with as much as fits',
        async run(daemon) {
            const t = tools(daemon, 'fc3');
            const long = (n) => `${`${'x'.repeat(249)}/`.repeat(9)}${'y'.repeat(200)}${n}`;
            const r = good(await t.writeMany({ files: Array.from({ length: MANY }, (_, n) => ({ path: long(n), content: `${n}` })) }));
            assert.ok(r.raw.length < 256 * 1024);
            assert.ok(r.written.length > 0);
            assert.deepEqual([r.truncated, r.written.length < MANY], [true, true]);
            assert.equal(t.text(long(99)), '99');
            good(await t.edit({ path: long(99), old_text: '99', new_text: 'known' }));

            // in an answer each of these takes six bytes: names, matches and diff together
            const e = Array.from({ length: 10 }, () => '\u0001'.repeat(240)).join('/');
            good(await t.write({ path: e, content: Array.from({ length: 44 }, (_, n) => `<${n}>${'\u0001'.repeat(250)}\n`).join('') }));
            const edits = Array.from({ length: 44 }, (_, n) => ({ old_text: `<${n}>\u0001`, new_text: `<${n}>\u0002` }));
            const many = good(await t.multi({ path: e, edits }));
            assert.ok(many.raw.length < 256 * 1024);
            assert.deepEqual([many.edits.length, many.truncated], [44, true]);
            assert.match(t.text(e), /^<0>\u0002/);
        },
    },
    {
        title: 'files: an edit writes no NUL, as a write does not',
        async run(daemon) {
            const t = tools(daemon, 'fc4');
            good(await t.write({ path: 'f', content: 'one two' }));
            bad(await t.write({ path: 'f', content: 'a\u0000b' }), 'invalid_argument');
            bad(await t.edit({ path: 'f', old_text: 'one', new_text: 'a\u0000b' }), 'invalid_argument');
            const r = bad(await t.multi({ path: 'f', edits: [{ old_text: 'two', new_text: '2' }, { old_text: 'one', new_text: '\u0000' }] }), 'invalid_argument');
            assert.equal(r.failed_edit_index, 1);
            assert.equal(t.text('f'), 'one two');
        },
    },
    {
        title: 'files: several files that fail leave no folders behind',
        async run(daemon) {
            const t = tools(daemon, 'fc5');
            const file = (p) => ({ path: p, content: 'x' });
            for (const files of [[file('n'), file('n/x')], [file('n/x/y'), file('n')]]) {
                assert.equal(bad(await t.writeMany({ files }), 'not_a_regular_file').failed_file_index, 1);
            }
            // the last one can not be made: what its owner has closed is seen when it is staged
            await t.run('mkdir closed there; chmod 500 closed');
            bad(await t.writeMany({ files: [file('new/a/b'), file('new/c/d'), file('there/e/f'), file('closed/g/h')] }), 'access_denied');
            assert.deepEqual(good(await t.list({ recursive: true })).entries.map((e) => e.path), ['closed', 'there']);
            good(await t.writeMany({ files: [file('new/a/b'), file('new-er')] }));
        },
    },
    {
        title: 'files: a hole that is replaced makes no room',
        async run(daemon) {
            const t = tools(daemon, 'fc6');
            await t.run('truncate -s 50M hole; for i in 1 2 3 4 5; do fallocate -l 51M big$i || head -c 51M /dev/zero > big$i; done; fallocate -l 1M rest || head -c 1M /dev/zero > rest', { timeout: 60 });
            bad(await t.write({ path: 'hole', content: 'x' }), 'quota_exceeded');
            await t.run('rm big1');
            good(await t.write({ path: 'hole', content: 'x' }));
            await t.run('rm -f big*');
        },
    },
];
