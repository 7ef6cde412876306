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
];
