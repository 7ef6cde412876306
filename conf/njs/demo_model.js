/*
 * A scripted stand-in for a model vendor: it speaks the OpenAI chat protocol,
 * streamed and not, so that a fresh clone works without network and key. It is not
 * a language model: it looks for an order number and for a command in the last user
 * message, calls the tools that fit, and puts their results into a sentence.
 *
 * njs 0.7.9: no await inside call arguments.
 */

const NAME = 'toolgate-scripted-demo';
const DISCLAIMER = 'I am a small script, not a language model.';
const PIECE_MS = 12;


function text_of(message) {
    const content = message.content;

    if (typeof content === 'string') {
        return content;
    }
    if (Array.isArray(content)) {
        return content.map(function(part) {
            return part.text || '';
        }).join(' ');
    }
    return '';
}


function ascii_digits(text) {
    return text.replace(/[\u0660-\u0669\u06f0-\u06f9]/g, function(c) {
        return String(c.charCodeAt(0) & 15);
    });
}


/* What the user wants, as calls: [{name, args}], whether offered or not. */
function wanted_calls(text) {
    const calls = [];
    const plain = ascii_digits(text);
    const command = plain.match(/`([^`]{1,2000})`/)
        || plain.match(/\brun(?: the command)?:? +([^.?!\n]{1,2000})/i);
    const rest = plain.replace(/`[^`]*`/g, ' ');

    if (/order|طلب|#/i.test(rest)) {
        const seen = {};
        const numbers = rest.match(/\d{2,12}/g) || [];

        numbers.slice(0, 3).forEach(function(number) {
            if (!seen[number]) {
                seen[number] = true;
                calls.push({name: 'order_status', args: {order_number: number}});
            }
        });
    }

    if (command) {
        calls.push({name: 'run_command', args: {command: command[1].trim()}});
    }

    return calls;
}


function clip(text, n) {
    const s = String(text).trim();

    return s.length > n ? s.slice(0, n) + '…' : s;
}


function say_items(items) {
    return items.map(function(item) {
        return Object.keys(item).map(function(label) {
            return label + ': ' + item[label];
        }).join(', ');
    }).join('; ');
}


/* One sentence for one tool result. */
function say_result(name, content) {
    let result;

    try {
        result = JSON.parse(content);
    } catch (e) {
        return 'The tool ' + name + ' answered: ' + clip(content, 200);
    }
    if (result === null || typeof result !== 'object') {
        return 'The tool ' + name + ' answered: ' + clip(content, 200);
    }

    if (result.error && result.error.code) {
        return 'The tool ' + name + ' was not run (' + result.error.code + '): '
               + clip(result.error.guidance || '', 300);
    }
    if (result.error_type) {
        return 'The tool ' + name + ' failed (' + result.error_type + '): '
               + clip(result.error_message || '', 300);
    }
    if (Array.isArray(result.items)) {
        return result.items.length
               ? 'The shop says: ' + say_items(result.items) + '.'
               : 'The shop says: ' + (result.message || 'nothing found') + '.';
    }
    if (result.stdout !== undefined || result.exit_code !== undefined) {
        return 'The command ended with exit code ' + result.exit_code
               + ' and printed: '
               + clip(result.stdout || result.stderr || '', 1000);
    }

    return 'The tool ' + name + ' answered: ' + clip(content, 300);
}


/* The answer to a history that ends with tool results. */
function answer_from_results(messages, from) {
    const names = {};
    const lines = [];

    for (let i = from; i < messages.length; i++) {
        const m = messages[i];

        (m.tool_calls || []).forEach(function(call) {
            names[call.id] = call.function.name;
        });
        if (m.role === 'tool') {
            lines.push(say_result(names[m.tool_call_id] || 'tool', text_of(m)));
        }
    }

    return lines.join('\n') + '\n(' + DISCLAIMER + ')';
}


/* Decides what the "model" does: {text} or {calls}. */
function decide(request) {
    const messages = request.messages;
    const offered = {};
    let last_user = -1;

    (request.tools || []).forEach(function(tool) {
        if (tool && tool.function) {
            offered[tool.function.name] = true;
        }
    });

    messages.forEach(function(m, i) {
        if (m.role === 'user') {
            last_user = i;
        }
    });

    if (messages.length && messages[messages.length - 1].role === 'tool') {
        return {text: answer_from_results(messages, last_user + 1)};
    }

    const text = last_user < 0 ? '' : text_of(messages[last_user]);
    const wanted = wanted_calls(text);
    const calls = request.tool_choice === 'none' ? []
        : wanted.filter(function(call) {
              return offered[call.name];
          });

    if (calls.length) {
        return {calls: calls};
    }

    if (wanted.length) {
        return {text: 'For this I would need the tool ' + wanted[0].name
                      + ', and it is not offered to me in this call. '
                      + DISCLAIMER};
    }

    return {text: 'You said: “' + clip(text, 200) + '”. ' + DISCLAIMER
                  + ' Give me an order number, as in “Where is order 8812?”, or a'
                  + ' command in backticks, as in “Run `date`”.'};
}


function random_id(prefix) {
    return prefix + Math.random().toString(36).slice(2, 12)
           + Math.random().toString(36).slice(2, 12);
}


function tokens(text) {
    return Math.max(1, Math.ceil(text.length / 4));
}


function tool_calls_of(calls) {
    return calls.map(function(call) {
        return {
            id: random_id('call_'),
            type: 'function',
            function: {name: call.name, arguments: JSON.stringify(call.args)}
        };
    });
}


function pause(ms) {
    return new Promise(function(resolve) {
        setTimeout(resolve, ms);
    });
}


/* The deltas of a streamed answer, cut as vendors cut them. */
function deltas_of(decision) {
    const deltas = [{role: 'assistant', content: ''}];

    if (decision.text !== undefined) {
        (decision.text.match(/\S+\s*/g) || []).forEach(function(word) {
            deltas.push({content: word});
        });
        return deltas;
    }

    tool_calls_of(decision.calls).forEach(function(call, index) {
        const args = call.function.arguments;
        const half = args.length >> 1;

        deltas.push({tool_calls: [{index: index, id: call.id, type: 'function',
                     function: {name: call.function.name, arguments: ''}}]});
        deltas.push({tool_calls: [{index: index,
                     function: {arguments: args.slice(0, half)}}]});
        deltas.push({tool_calls: [{index: index,
                     function: {arguments: args.slice(half)}}]});
    });

    return deltas;
}


async function answer_stream(r, request, decision, finish, usage) {
    const head = {
        id: random_id('chatcmpl-'),
        object: 'chat.completion.chunk',
        created: Math.floor(Date.now() / 1000),
        model: NAME
    };
    const deltas = deltas_of(decision);

    function send(choices, extra) {
        const chunk = Object.assign({}, head, {choices: choices}, extra || {});

        r.send('data: ' + JSON.stringify(chunk) + '\n\n');
    }

    r.status = 200;
    r.headersOut['Content-Type'] = 'text/event-stream';
    r.sendHeader();

    for (let i = 0; i < deltas.length; i++) {
        send([{index: 0, delta: deltas[i], finish_reason: null}]);
        await pause(PIECE_MS);
    }
    send([{index: 0, delta: {}, finish_reason: finish}]);
    if (request.stream_options && request.stream_options.include_usage) {
        send([], {usage: usage});
    }
    r.send('data: [DONE]\n\n');
    r.finish();
}


function answer_whole(r, decision, finish, usage) {
    const message = {role: 'assistant', content: null};

    if (decision.text !== undefined) {
        message.content = decision.text;
    } else {
        message.tool_calls = tool_calls_of(decision.calls);
    }

    r.headersOut['Content-Type'] = 'application/json';
    r.return(200, JSON.stringify({
        id: random_id('chatcmpl-'),
        object: 'chat.completion',
        created: Math.floor(Date.now() / 1000),
        model: NAME,
        choices: [{index: 0, message: message, finish_reason: finish}],
        usage: usage
    }));
}


function refuse(r, message) {
    r.headersOut['Content-Type'] = 'application/json';
    r.return(400, JSON.stringify({error: {message: message,
        type: 'invalid_request_error', code: 'invalid_request', param: null}}));
}


async function chat(r) {
    let request;

    try {
        request = JSON.parse(r.requestText);
    } catch (e) {
        refuse(r, 'The body is not JSON.');
        return;
    }
    if (!request || !Array.isArray(request.messages)) {
        refuse(r, 'The field messages is missing.');
        return;
    }

    const decision = decide(request);
    const finish = decision.text !== undefined ? 'stop' : 'tool_calls';
    const said = decision.text || JSON.stringify(decision.calls);
    const usage = {prompt_tokens: tokens(r.requestText),
                   completion_tokens: tokens(said)};

    usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;

    if (request.stream) {
        await answer_stream(r, request, decision, finish, usage);
    } else {
        answer_whole(r, decision, finish, usage);
    }
}


export default {chat};
