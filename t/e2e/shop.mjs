// What the tests of the official clients share: an agent with a tool that runs here, a
// model that does what the last message says, and a made-up tool of the client's own.

import { startStack } from '../lib/stack.mjs';
import { startMockModel } from '../lib/mock-model.mjs';
import { startMockTool } from '../lib/mock-tool.mjs';

/** Found in the answer when the tool that runs here has run. */
export const SHIPPED = /"Status":"shipped"/;

const orderStatus = (url) => ({
  name: 'order_status', description: 'Where an order is.',
  config: {
    method: 'GET', url: `${url}/orders/{{args.number}}`,
    parameters: {
      type: 'object', properties: { number: { type: 'string' } }, required: ['number'],
      additionalProperties: false,
    },
    response: {
      items_path: 'data',
      fields: [{ path: 'number', label: 'Order' }, { path: 'status', label: 'Status' }],
    },
  },
});

const addNote = (url) => ({
  name: 'add_note', description: 'Adds a note to an order.', effect: 'action',
  config: {
    method: 'POST', url: `${url}/notes/{{args.number}}`, body: {},
    parameters: {
      type: 'object', properties: { number: { type: 'string' } }, required: ['number'],
      additionalProperties: false,
    },
  },
});

/**
 * The agent "shop" has a tool that runs here; "desk" has one besides that runs in the
 * caller's app, and one that needs a person's approval.
 */
export async function startShop() {
  const model = await startMockModel();
  const tool = await startMockTool();
  let stack;
  try {
    stack = await startStack({
      modelUrl: model.baseUrl, allow: ['127.0.0.1/32'], workers: 1,
      catalog: {
        tools: [orderStatus(tool.url), addNote(tool.url)],
        agents: [{
          name: 'shop', model: 'default', instructions: 'Be brief.',
          tools: { http: [{ tool: 'order_status' }] },
        }, {
          name: 'desk', model: 'default',
          tools: {
            allow_anonymous_actions: true, http: [{ tool: 'order_status' }, { tool: 'add_note' }],
            client: [{
              name: 'get_cart', description: 'The items in the cart.', effect: 'read',
              parameters: { type: 'object', properties: {}, additionalProperties: false },
            }],
            toolset: { approval_mode: 'strict' },
          },
        }],
      },
    });
  } catch (error) {
    await Promise.all([model.close(), tool.close()]);
    throw error;
  }
  return {
    model, tool, stack,
    reset() {
      model.clear();
      tool.clear();
    },
    async close() {
      await Promise.all([model.close(), tool.close()]);
      await stack.stop();
    },
  };
}

/** What a user says for the model to call these tools: { name: arguments }. */
export const asking = (calls) => Object.entries(calls)
  .map(([name, args]) => `@call ${name} ${JSON.stringify(args)}`).join('\n');

/** The tool that every client brings: it keeps count. */
export function weatherTool() {
  const weather = {
    name: 'get_weather', description: 'The weather in a city.', asked: [],
    run: async ({ city }) => {
      weather.asked.push(city);
      return JSON.stringify({ city, sky: 'clear' });
    },
  };
  return weather;
}
