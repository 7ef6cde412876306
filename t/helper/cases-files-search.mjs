// Searches and lints of a workspace: bounds of the answer and of time, links that change
// meanwhile, and files that only look wrong.
import assert from 'node:assert/strict';
import { has } from './daemon.mjs';

const KIB = 1024;
const noPython = () => !has('/usr/bin/python3') && '/usr/bin/python3 is missing';
const noRg = () => !has('/usr/bin/rg') && '/usr/bin/rg is missing';

function tools(daemon, account) {
    const call = (tool) => (args = {}) => daemon.call(tool, args, { account, session: 's' });
    return {
        write: call('write_workspace_file'), lint: call('lint_workspace_file'), search: call('search_workspace_files'),
        run: (command, options) => daemon.run(command, { account, ...options }),
    };
}

function good(r) {
    assert.equal(r.ok, true, JSON.stringify(r).slice(0, 2000));
    return r;
}

export const filesSearchCases = () => [
    {
        title: 'search: results that do not fit are left out whole',
        async run(daemon) {
            const t = tools(daemon, 'fs1');
            await t.run(`awk 'BEGIN { for (n = 0; n < 500; n++) l = l "漢"; for (n = 1; n <= 400; n++) print (n % 60 == 1 && n > 1 && n < 300 ? "M" : "") l }' > f`);
            const r = good(await t.search({ query: 'M', context_lines: 20 }));
            assert.equal(r.truncated, true);
            assert.ok(r.raw.length < 240 * KIB);
            assert.deepEqual(r.results.map((x) => x.line), [61, 121, 181, 241].slice(0, r.match_count));
            assert.ok(r.match_count > 0 && r.match_count < 4);
            for (const x of r.results) assert.deepEqual([x.context_before.length, x.context_after.length], [20, 20]);

            // control characters take six bytes each: one result alone is too much
            await t.run(`awk 'BEGIN { l = sprintf("%500s", ""); gsub(/ /, "\\001", l); for (n = 1; n < 100; n++) print (n == 50 ? "M" : "") l }' > f`);
            const one = good(await t.search({ query: 'M', context_lines: 20 }));
            assert.deepEqual([one.match_count, one.results[0].line], [1, 50]);
        },
    },
    {
        title: 'search: a link that takes a file\'s place meanwhile leads nowhere',
        skip: noRg,
        async run(daemon) {
            const t = tools(daemon, 'fs2');
            await t.run('mkdir d out; echo "NAME=inside" > d/f; echo "NAME=beside" > out/f; ln -s /usr/lib l; ln -s /usr/lib/os-release o');
            const swap = t.run('n=0; while [ ! -e stop ]; do ln -sfn /usr/lib/os-release x; mv -T x d/f; ln -sfn ../out/f x; mv -T x d/f; echo NAME=inside > y; mv -T y d/f; done', { timeout: 60 });
            const seen = new Set();
            const end = performance.now() + 5000;
            while (performance.now() < end) {
                for (const path of ['d/f', 'd']) {
                    const r = await t.search({ query: 'NAME=', path });
                    for (const x of r.results ?? []) seen.add(x.text);
                }
            }
            await t.run('touch stop');
            await swap;
            for (const text of seen) assert.match(text, /^NAME=(inside|beside)$/);
            assert.ok(seen.has('NAME=inside'));
            // a directory is searched by ripgrep, a file by ourselves
            assert.equal(good(await t.search({ query: 'NAME=', path: 'd' })).search_backend, 'rg');
            assert.equal(good(await t.search({ query: 'NAME=', path: 'out/f' })).search_backend, 'builtin');
            for (const path of ['o', 'l']) assert.equal((await t.search({ query: 'NAME=', path })).error_type, 'symlink_not_allowed');
        },
    },
    {
        title: 'search: many binary files are not read to their ends',
        async run(daemon) {
            const t = tools(daemon, 'fs3');
            await t.run('mkdir d; cd d; seq 8000 | xargs truncate -s 1M; echo needle > z', { timeout: 60 });
            const r = good(await t.search({ query: 'needle', context_lines: 1 }));
            assert.ok(r.truncated || r.match_count === 1, JSON.stringify(r));
            assert.ok(r.took < 12000, `${r.took}`);
            await t.run('rm -rf d', { timeout: 60 });
        },
    },
    {
        title: 'lint: what only our parsers do not take is no error',
        async run(daemon) {
            const t = tools(daemon, 'fs4');
            const lint = async (path, content) => {
                good(await t.write({ path, content }));
                const r = await t.lint({ path });
                return [r.ok, r.issues.map((i) => i.severity).join()];
            };
            assert.deepEqual(await lint('a.json', '{"id":18446744073709551615}'), [true, '']);
            assert.deepEqual(await lint('a.json', '[-123456789012345678901234567890]'), [true, '']);
            for (const content of ['1e999', '"\\ud800"', '["\\udc00\\ud800"]', '{"a\\u0000b":1}', '['.repeat(5000) + ']'.repeat(5000)]) {
                assert.deepEqual(await lint('a.json', content), [true, 'warning'], content.slice(0, 20));
            }
            for (const content of ['"\\ud80"', '{"a":}', '[1,]', '', '1 2', '"\\x"']) {
                assert.deepEqual(await lint('a.json', content), [false, 'error'], content);
            }
        },
    },
    {
        title: 'lint: Python beyond bounds is no error, a NUL is one',
        skip: noPython,
        async run(daemon) {
            const t = tools(daemon, 'fs5');
            await t.run(`(head -c 200000 /dev/zero | tr '\\0' '-'; echo 1) > deep.py; printf 'x\\0' > nul.py`);
            const deep = good(await t.lint({ path: 'deep.py' }));
            assert.deepEqual(deep.issues.map((i) => [i.severity, /too_complex/.test(i.message)]), [['warning', true]]);
            assert.equal((await t.lint({ path: 'nul.py' })).error_type, 'lint_failed');
        },
    },
];
