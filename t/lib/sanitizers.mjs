// Lines in which a sanitizer speaks of itself, and of no fault in what it watches.

/** The leak check at a process's end needs to trace it, and now and then cannot. */
export const notChecked = (line) =>
  /LeakSanitizer has encountered a fatal error|LeakSanitizer does not work under ptrace/.test(line);
