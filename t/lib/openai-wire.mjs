// Pieces of the OpenAI chat wire format, as bytes for scripts of the mock model.
// It knows no server and no client.

export const DONE = 'data: [DONE]\n\n';

export function chunk(delta, finish = null, extra = {}) {
  return {
    id: 'chatcmpl-mock', object: 'chat.completion.chunk', created: 1700000000,
    model: 'mock-model',
    choices: [{ index: 0, delta, finish_reason: finish }], ...extra,
  };
}

export function event(value) {
  return `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
}

/** One event with a piece of text. */
export const text = (content) => event(chunk({ content }));

/** One event with pieces of tool calls; a key that is undefined is not sent. */
export function toolDelta(calls) {
  return event(chunk({
    tool_calls: calls.map(({ index, id, name, args, type }) => ({
      ...(index === undefined ? {} : { index }),
      ...(id === undefined ? {} : { id }),
      ...(type === undefined && id === undefined ? {} : { type: type ?? 'function' }),
      function: {
        ...(name === undefined ? {} : { name }),
        ...(args === undefined ? {} : { arguments: args }),
      },
    })),
  }));
}

export const finish = (reason) => event(chunk({}, reason));

export const usage = (prompt, completion) => event({
  ...chunk({}), choices: [],
  usage: {
    prompt_tokens: prompt, completion_tokens: completion,
    total_tokens: prompt + completion,
  },
});

/** A whole streamed turn that calls tools: [{id, name, args}]. */
export function callTurn(calls) {
  return [
    event(chunk({ role: 'assistant', content: null })),
    ...calls.map(({ id, name, args }, index) => toolDelta([{
      index, id: id ?? `call_${index}`, name,
      args: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
    }])),
    finish('tool_calls'), DONE,
  ];
}

/** A whole streamed turn of text. */
export function textTurn(...pieces) {
  return [
    event(chunk({ role: 'assistant', content: '' })),
    ...pieces.map(text), finish('stop'), DONE,
  ];
}

/** The same turn as one JSON answer. */
export function wholeAnswer({ content = null, calls = [], reason, tokens = [7, 5] }) {
  return {
    id: 'chatcmpl-mock', object: 'chat.completion', created: 1700000000,
    model: 'mock-model',
    choices: [{
      index: 0,
      message: {
        role: 'assistant', content,
        ...(calls.length === 0 ? {} : {
          tool_calls: calls.map(({ id, name, args }, n) => ({
            id: id ?? `call_${n}`, type: 'function',
            function: {
              name, arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}),
            },
          })),
        }),
      },
      finish_reason: reason ?? (calls.length === 0 ? 'stop' : 'tool_calls'),
    }],
    usage: {
      prompt_tokens: tokens[0], completion_tokens: tokens[1],
      total_tokens: tokens[0] + tokens[1],
    },
  };
}
