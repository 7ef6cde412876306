/*
 * Names of tools: which are well formed, and which belong to the built-in tools of
 * every agent. It knows no agent and no tool.
 */

#ifndef TG_TOOL_NAME_H
#define TG_TOOL_NAME_H

#include "tg.h"


#define TG_TOOL_NAME_HTTP_MAX    30
#define TG_TOOL_NAME_CLIENT_MAX  48


/* True for [a-z][a-z0-9_]* of at most max bytes. */
bool tg_tool_name_valid(tg_str_t name, size_t max);

/* True for the name of a built-in tool, whether the agent has it on or not. */
bool tg_tool_name_builtin(tg_str_t name);

#endif /* TG_TOOL_NAME_H */
