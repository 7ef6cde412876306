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
];
