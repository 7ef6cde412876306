/*
 * The demo's shop: GET /orders/<number>. Every number has an order whose state
 * follows from its digits, so that answers can be told apart; numbers that end in
 * 404 have none.
 */

const STATES = ['received', 'packed', 'shipped', 'out for delivery', 'delivered'];
const CARRIERS = ['Falcon Post', 'Desert Express', 'Harbour Line'];


function reply(r, status, value) {
    r.headersOut['Content-Type'] = 'application/json';
    r.return(status, JSON.stringify(value));
}


function order(r) {
    const m = r.uri.match(/^\/orders\/([0-9]{1,12})$/);

    if (r.method !== 'GET') {
        reply(r, 405, {error: 'only GET'});
        return;
    }
    if (!m) {
        reply(r, 404, {error: 'no such order'});
        return;
    }
    if (m[1].slice(-3) === '404') {
        reply(r, 200, {orders: []});
        return;
    }

    const sum = m[1].split('').reduce(function(a, c) {
        return a + Number(c);
    }, 0);

    reply(r, 200, {orders: [{
        number: m[1],
        status: STATES[sum % STATES.length],
        carrier: CARRIERS[sum % CARRIERS.length],
        eta_days: sum % 7
    }]});
}


export default {order};
