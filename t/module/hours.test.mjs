// Business hours in a run: a grant with hours_only is refused outside of them, all others
// are not bound. Hours are always open, always closed, or made from the time it is now.

import test, { before, after } from 'node:test';
import assert from 'node:assert/strict';
import { callsTurn, order, startFixture, stepsOf, textTurn } from './fixture.mjs';

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const every = (intervals) => Object.fromEntries(DAYS.map((day) => [day, intervals]));
const two = (n) => String(n).padStart(2, '0');

/** A zone where it is about noon now, so that no test runs over its midnight. */
function noon() {
  const ahead = 12 - new Date().getUTCHours();
  const local = new Date(Date.now() + ahead * 3600_000);
  return {
    // the names of these zones count westward
    timezone: ahead === 0 ? 'Etc/GMT' : `Etc/GMT${ahead > 0 ? '-' : '+'}${Math.abs(ahead)}`,
    today: DAYS[local.getUTCDay()],
    date: local.toISOString().slice(0, 10),
    clock: (hours) => `${two(local.getUTCHours() + hours)}:${two(local.getUTCMinutes())}`,
  };
}

let f;

before(async () => {
  const { timezone, today, date, clock } = noon();
  const others = (intervals) => ({ ...every(intervals), [today]: [] });
  const agent = (name, business_hours, grants) => ({
    name, model: 'm', business_hours,
    tools: { allow_anonymous_actions: true, http: grants ?? [{ tool: 'order_status', hours_only: true }, { tool: 'do_it' }] },
  });
  const all = [['00:00', '24:00']];
  f = await startFixture({
    agents: [
      agent('open', { timezone: 'Asia/Riyadh', days: every(all) }),
      agent('closed', { timezone: 'Asia/Riyadh', days: {} }),
      agent('now', { timezone, days: { [today]: [['00:00', clock(-3)], [clock(-2), clock(2)], [clock(3), '24:00']] } }),
      agent('break', { timezone, days: { [today]: [['00:00', clock(-2)], [clock(2), '24:00']] } }),
      agent('other-days', { timezone, days: others(all) }),
      agent('holiday', { timezone, days: every(all), closed_dates: ['2020-01-01', date] }),
      agent('unbound', { timezone, days: {} }, [{ tool: 'order_status', hours_only: false }, { tool: 'do_it' }]),
      { ...agent('paused', { timezone, days: {} }, [{ tool: 'do_it', hours_only: true }]), actions_paused: true },
    ],
  });
});
after(() => f?.stop());

async function steps(agent, ...calls) {
  const answer = await f.ask([callsTurn(...calls), textTurn('ok')], { model: agent });
  assert.equal(answer.status, 200, answer.text);
  return stepsOf(answer);
}

const status = { id: 'c1', n: 'order_status', a: order('1') };
const act = { id: 'c2', n: 'do_it', a: JSON.stringify({ kind: 'orders', n: '1' }) };

for (const [agent, code] of [['open', 'ok'], ['now', 'ok'], ['unbound', 'ok'], ['closed', 'outside_business_hours'],
  ['break', 'outside_business_hours'], ['other-days', 'outside_business_hours'], ['holiday', 'outside_business_hours']]) {
  test(`${agent}: ${code}`, async () => {
    assert.deepEqual(await steps(agent, status), [['order_status', code]]);
    assert.equal(f.asked.length, code === 'ok' ? 1 : 0);
    if (code !== 'ok') {
      const { result } = f.told()[0];
      assert.equal(result.ok, false);
      assert.equal(result.error.code, code);
      assert.match(result.error.guidance, /business hours/);
    }
  });
}

test('a grant without hours_only runs beside one that is refused', async () => {
  assert.deepEqual(await steps('closed', status, act),
    [['order_status', 'outside_business_hours'], ['do_it', 'ok']]);
});

test('it is check 4: arguments are looked at before it', async () => {
  assert.deepEqual(await steps('closed', { ...status, a: '{}' }), [['order_status', 'invalid_arguments']]);
});

test('the tool stays in the list outside of hours', async () => {
  await steps('closed', status);
  for (const n of [0, -1]) {
    const names = f.model.request(n).json.tools.map((t) => t.function.name);
    assert.deepEqual(names, ['do_it', 'order_status']);
  }
});

test('actions that are paused are not offered, whatever the hours', async () => {
  assert.deepEqual(await steps('paused', act), [['do_it', 'tool_not_available']]);
});
