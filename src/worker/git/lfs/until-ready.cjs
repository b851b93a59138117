/*
 * `untilReady(act)` for programs that read or write pipes: repeats the read or write of a pipe that does not block, until it can be
 * done. It requires nothing, so that its text can go before a program's.
 */
globalThis.untilReady = (act) => {
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
};
