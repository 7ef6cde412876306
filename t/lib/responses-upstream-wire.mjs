// Pieces of the wire format of a model that speaks the Responses API, as bytes for
// scripts of the mock model. It knows no server and no client.

let sequence = 0;

/** One event; its name is its type. */
export const say = (type, fields = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`;

const response = (status, more = {}) => ({
  id: 'resp_vendor', object: 'response', created_at: 1700000000, model: 'vendor', status,
  error: null, incomplete_details: null, output: [], usage: null, ...more,
});

export const created = () => say('response.created', { response: response('in_progress') })
  + say('response.in_progress', { response: response('in_progress') });

/** Of a vendor that counts as OpenAI does. */
export const counted = (input, output, cached = 0, reasoning = 0) => ({
  input_tokens: input, input_tokens_details: { cached_tokens: cached }, output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning }, total_tokens: input + output,
});

export const completed = (usage = counted(7, 3), output = []) =>
  say('response.completed', { response: response('completed', { usage, output }) });

export const incomplete = (reason) =>
  say('response.incomplete', { response: response('incomplete', { incomplete_details: { reason } }) });

export const failed = (code, message) =>
  say('response.failed', { response: response('failed', { error: { code, message } }) });

export const messageItem = (text, id = 'msg_1') => ({
  id, type: 'message', role: 'assistant', status: 'completed',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
});

/** A message that comes in these pieces. */
export function message(pieces, { at = 0 } = {}) {
  const id = `msg_${at}`;
  const place = { item_id: id, output_index: at, content_index: 0 };
  const item = { ...messageItem('', id), content: [], status: 'in_progress' };
  return say('response.output_item.added', { output_index: at, item })
    + say('response.content_part.added', { ...place, part: { type: 'output_text', text: '', annotations: [] } })
    + pieces.map((delta) => say('response.output_text.delta', { ...place, delta, logprobs: [], obfuscation: 'xY' })).join('')
    + say('response.output_text.done', { ...place, text: pieces.join(''), logprobs: [] })
    + say('response.content_part.done', { ...place, part: messageItem(pieces.join(''), id).content[0] })
    + say('response.output_item.done', { output_index: at, item: messageItem(pieces.join(''), id) });
}

export const callItem = (name, args, callId) => ({
  id: `fc_${callId}`, type: 'function_call', status: 'completed', call_id: callId, name,
  arguments: typeof args === 'string' ? args : JSON.stringify(args),
});

/** A call whose arguments come in pieces of this many characters. */
export function call(name, args, { at = 0, callId = `call_${at}`, split = 5 } = {}) {
  const item = callItem(name, args, callId);
  const place = { item_id: item.id, output_index: at };
  const pieces = item.arguments.match(new RegExp(`.{1,${split}}`, 'gs')) ?? [];
  return say('response.output_item.added', { output_index: at, item: { ...item, arguments: '', status: 'in_progress' } })
    + pieces.map((delta) => say('response.function_call_arguments.delta', { ...place, delta })).join('')
    + say('response.function_call_arguments.done', { ...place, name, arguments: item.arguments })
    + say('response.output_item.done', { output_index: at, item });
}

/** Reasoning whose summary has these parts. */
export function reasoning(parts, { at = 0 } = {}) {
  const id = `rs_${at}`;
  const item = { id, type: 'reasoning', summary: parts.map((text) => ({ type: 'summary_text', text })), encrypted_content: 'opaque' };
  return say('response.output_item.added', { output_index: at, item: { ...item, summary: [] } })
    + parts.map((delta, n) => say('response.reasoning_summary_text.delta',
      { item_id: id, output_index: at, summary_index: n, delta })).join('')
    + say('response.output_item.done', { output_index: at, item });
}

/** A whole turn of a stream. */
export const turn = (...parts) => created() + parts.join('') + completed();

/** The same turn as one JSON answer. */
export const whole = (output, more = {}) => response('completed', { output, usage: counted(7, 3), ...more });
