// A client of the helper's socket: records in, records out, nothing of the helper's
// own code.
import net from 'node:net';

export const T = { HELLO: 1, CALL: 2, STDOUT: 3, STDERR: 4, EVENT: 5, RESULT: 6, CANCEL: 7, PING: 8 };

export function record(type, payload = '', stream = 0) {
    const body = Buffer.isBuffer(payload) ? payload
        : Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload));
    const head = Buffer.alloc(8);
    head.writeUInt32BE(body.length, 0);
    head[4] = type;
    head.writeUInt16BE(stream, 6);
    return Buffer.concat([head, body]);
}

let callNumber = 0;

export class Client {
    constructor(path) {
        this.path = path;
        this.pending = Buffer.alloc(0);
        this.waiting = new Map();      // stream -> call
        this.records = [];             // all that came
        this.listeners = new Set();
        this.closed = false;
        this.stream = 0;
    }

    static async connect(path, { hello = true } = {}) {
        const client = new Client(path);
        await client.open();
        if (hello) {
            client.socket.write(record(T.HELLO, { protocol: 1 }));
            await client.next((r) => r.type === T.HELLO);
        }
        return client;
    }

    open() {
        return new Promise((resolve, reject) => {
            this.socket = net.createConnection(this.path);
            this.socket.once('connect', resolve);
            this.socket.once('error', reject);
            this.socket.on('error', () => {});
            this.socket.on('data', (data) => this.feed(data));
            this.socket.on('close', () => {
                this.closed = true;
                for (const call of this.waiting.values()) {
                    call.reject(new Error('the connection was closed'));
                }
                this.waiting.clear();
                for (const listener of this.listeners) listener(null);
            });
        });
    }

    feed(data) {
        this.pending = Buffer.concat([this.pending, data]);
        while (this.pending.length >= 8) {
            const length = this.pending.readUInt32BE(0);
            if (this.pending.length < 8 + length) return;
            const r = { type: this.pending[4], stream: this.pending.readUInt16BE(6),
                payload: this.pending.subarray(8, 8 + length), at: performance.now() };
            this.pending = this.pending.subarray(8 + length);
            this.take(r);
        }
    }

    take(r) {
        const call = this.waiting.get(r.stream);
        if (call && (r.type === T.STDOUT || r.type === T.STDERR)) {
            call.chunks.push(r);
            call.onChunk?.(r);
        } else {
            this.records.push(r);
        }
        if (call && r.type === T.RESULT) {
            this.waiting.delete(r.stream);
            const result = JSON.parse(r.payload.toString('utf8'));
            Object.defineProperty(result, 'raw', { value: r.payload });
            Object.defineProperty(result, 'chunks', { value: call.chunks });
            Object.defineProperty(result, 'took', { value: performance.now() - call.started });
            call.resolve(result);
        }
        for (const listener of this.listeners) listener(r);
    }

    // the next record that fits, or null when the connection ends
    next(fits, ms = 5000) {
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                this.listeners.delete(listener);
                reject(new Error('no such record in time'));
            }, ms);
            const listener = (r) => {
                if (r !== null && !fits(r)) return;
                clearTimeout(timer);
                this.listeners.delete(listener);
                resolve(r);
            };
            if (this.closed) { clearTimeout(timer); resolve(null); return; }
            this.listeners.add(listener);
        });
    }

    // resolves when the helper has closed the connection
    async ended(ms = 5000) {
        return await this.next(() => false, ms) === null;
    }

    raw(bytes) { this.socket.write(bytes); }

    call(tool, args, { project = 'p', account = 'a', session = 's', inv = 'inv_1', stream,
        id, onChunk, extra } = {}) {
        this.stream = (this.stream % 65535) + 1;
        const number = this.stream;
        const body = { id: id ?? `call_${++callNumber}`, tool, arguments: args, project,
            account, session, invocation_id: inv, ...(stream ? { stream: true } : {}), ...extra };
        const promise = new Promise((resolve, reject) => {
            this.waiting.set(number, { resolve, reject, chunks: [], onChunk,
                started: performance.now() });
        });
        this.socket.write(record(T.CALL, body, number));
        return promise;
    }

    cancel(id) { this.socket.write(record(T.CANCEL, { id })); }

    close() { this.socket.destroy(); }
}
