/*
 * The table of the helper's tools; see ngx_http_toolgate_helper_table.h. Bounds that the
 * helper keeps by itself (it cuts, it clamps) are told in words and not in the schema: a
 * model that asks for too much gets what there is.
 */

#include "ngx_http_toolgate_helper_table.h"


const ngx_http_toolgate_helper_entry_t  ngx_http_toolgate_helper_table[] = {

    { "run_command",
      "Runs a shell command in this conversation's isolated sandbox (a process "
      "sandbox without network) and returns its output and exit code. Files under "
      "/workspace stay between commands.",
      "{\"type\":\"object\",\"properties\":{"
      "\"command\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":32768,"
      "\"description\":\"The command, run by bash\"},"
      "\"cwd\":{\"type\":\"string\",\"maxLength\":4096,"
      "\"description\":\"Working directory, default /workspace\"},"
      "\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":600,"
      "\"description\":\"Seconds, default 60\"},"
      "\"env\":{\"type\":\"object\",\"maxProperties\":64,"
      "\"additionalProperties\":{\"type\":\"string\",\"maxLength\":4096},"
      "\"description\":\"Extra environment variables\"}},"
      "\"required\":[\"command\"],\"additionalProperties\":false}",
      TG_EFFECT_ACTION },

    { "sandbox_status",
      "Reports what the sandbox is and where its boundary lies. Runs nothing.",
      "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}",
      TG_EFFECT_READ },

    { "workspace_status",
      "Shows the workspace: its root and its first files. Runs nothing.",
      "{\"type\":\"object\",\"properties\":{"
      "},\"additionalProperties\":false}",
      TG_EFFECT_READ },

    { "list_workspace_files",
      "Lists files and directories of the workspace.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Directory or file, "
      "default the root\",\"maxLength\":4095},"
      "\"glob\":{\"type\":\"string\",\"description\":\"Only names or paths "
      "that fit, like *.py\"},"
      "\"recursive\":{\"type\":\"boolean\",\"description\":\"Also what lies "
      "deeper, default false\"},"
      "\"include_dirs\":{\"type\":\"boolean\",\"description\":\"Directories "
      "too, default true\"},"
      "\"max_results\":{\"type\":\"integer\",\"description\":\"Default 500, "
      "at most 5000\"},"
      "\"sort_by\":{\"type\":\"string\",\"description\":\"name (default), "
      "mtime or size\"}"
      "},\"additionalProperties\":false}",
      TG_EFFECT_READ },

    { "read_workspace_file",
      "Reads a text file of the workspace, or some of its lines. A file must "
      "be read before it is edited; do not put both into one parallel batch.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Relative to "
      "/workspace\",\"maxLength\":4095},"
      "\"start_line\":{\"type\":\"integer\",\"description\":\"First line, "
      "from 1\",\"minimum\":1},"
      "\"end_line\":{\"type\":\"integer\",\"description\":\"Last line\","
      "\"minimum\":1},"
      "\"max_chars\":{\"type\":\"integer\",\"description\":\"Default 20000, "
      "1000 to 100000\"},"
      "\"include_line_numbers\":{\"type\":\"boolean\","
      "\"description\":\"Number and tab before each line, default "
      "true; they are not part of the file\"}"
      "},\"required\":[\"path\"],\"additionalProperties\":false}",
      TG_EFFECT_READ },

    { "write_workspace_file",
      "Writes a whole text file into the workspace, with the directories "
      "that it needs.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Relative to "
      "/workspace\",\"maxLength\":4095},"
      "\"content\":{\"type\":\"string\",\"description\":\"All of the file\"},"
      "\"overwrite\":{\"type\":\"boolean\",\"description\":\"Replace a file "
      "that is there, default true\"}"
      "},\"required\":[\"path\",\"content\"],"
      "\"additionalProperties\":false}",
      TG_EFFECT_ACTION },

    { "write_workspace_files",
      "Writes several whole text files into the workspace: all of them or "
      "none.",
      "{\"type\":\"object\",\"properties\":{"
      "\"files\":{\"type\":\"array\",\"description\":\"At most "
      "100 are written\",\"items\":{\"type\":\"object\","
      "\"properties\":{\"path\":{\"type\":\"string\","
      "\"description\":\"Relative to /workspace\","
      "\"maxLength\":4095},\"content\":{\"type\":\"string\","
      "\"description\":\"All of the file\"}},\"required\":[\"path\","
      "\"content\"],\"additionalProperties\":false}},"
      "\"overwrite\":{\"type\":\"boolean\",\"description\":\"Replace files "
      "that are there, default true\"}"
      "},\"required\":[\"files\"],\"additionalProperties\":false}",
      TG_EFFECT_ACTION },

    { "edit_workspace_file",
      "Replaces a piece of a text file that was read before. old_text must "
      "be in the file exactly as often as expected.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Relative to "
      "/workspace\",\"maxLength\":4095},"
      "\"old_text\":{\"type\":\"string\",\"description\":\"The text as it "
      "stands in the file\"},"
      "\"new_text\":{\"type\":\"string\",\"description\":\"What takes its "
      "place\"},"
      "\"expected_replacements\":{\"type\":\"integer\","
      "\"description\":\"How often old_text is there, default 1\","
      "\"minimum\":1},"
      "\"replace_all\":{\"type\":\"boolean\",\"description\":\"All "
      "occurrences, default false\"}"
      "},\"required\":[\"path\",\"old_text\",\"new_text\"],"
      "\"additionalProperties\":false}",
      TG_EFFECT_ACTION },

    { "multi_edit_workspace_file",
      "Makes several edits of one text file that was read before, in their "
      "order: all of them or none.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Relative to "
      "/workspace\",\"maxLength\":4095},"
      "\"edits\":{\"type\":\"array\",\"maxItems\":100,"
      "\"items\":{\"type\":\"object\","
      "\"properties\":{\"old_text\":{\"type\":\"string\","
      "\"description\":\"The text as it stands in the file\""
      "},\"new_text\":{\"type\":\"string\","
      "\"description\":\"What takes its place\"},"
      "\"expected_replacements\":{\"type\":\"integer\","
      "\"description\":\"How often old_text is there, default 1\","
      "\"minimum\":1},\"replace_all\":{\"type\":\"boolean\","
      "\"description\":\"All occurrences, default false\"}},"
      "\"required\":[\"old_text\",\"new_text\"],"
      "\"additionalProperties\":false}},"
      "\"replace_all\":{\"type\":\"boolean\",\"description\":\"For edits "
      "that do not say it, default false\"}"
      "},\"required\":[\"path\",\"edits\"],\"additionalProperties\":false}",
      TG_EFFECT_ACTION },

    { "lint_workspace_file",
      "Checks whether a file can be parsed (python, json) and its lines "
      "(others). Runs nothing of the file.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Relative to "
      "/workspace\",\"maxLength\":4095},"
      "\"language\":{\"type\":\"string\",\"description\":\"auto (default), "
      "python, json, markdown, text\"}"
      "},\"required\":[\"path\"],\"additionalProperties\":false}",
      TG_EFFECT_READ },

    { "search_workspace_files",
      "Searches text in the files of the workspace, hidden ones too, but for "
      ".git.",
      "{\"type\":\"object\",\"properties\":{"
      "\"query\":{\"type\":\"string\",\"description\":\"Text, or a regular "
      "expression; one line\",\"maxLength\":4096},"
      "\"path\":{\"type\":\"string\",\"description\":\"Directory or file, "
      "default the root\",\"maxLength\":4095},"
      "\"is_regex\":{\"type\":\"boolean\",\"description\":\"query is a "
      "regular expression, default false\"},"
      "\"glob\":{\"type\":\"string\",\"description\":\"Only files whose "
      "name or path fits, like *.py\"},"
      "\"case_sensitive\":{\"type\":\"boolean\",\"description\":\"Default "
      "false\"},"
      "\"context_lines\":{\"type\":\"integer\",\"description\":\"Lines "
      "around each, default 0, at most 20\"},"
      "\"max_results\":{\"type\":\"integer\",\"description\":\"Default 100, "
      "at most 5000\"}"
      "},\"required\":[\"query\"],\"additionalProperties\":false}",
      TG_EFFECT_READ },

    { "delete_workspace_file",
      "Deletes a file or an empty directory of the workspace.",
      "{\"type\":\"object\",\"properties\":{"
      "\"path\":{\"type\":\"string\",\"description\":\"Relative to "
      "/workspace\",\"maxLength\":4095}"
      "},\"required\":[\"path\"],\"additionalProperties\":false}",
      TG_EFFECT_ACTION },

    { NULL, NULL, NULL, TG_EFFECT_READ }
};
