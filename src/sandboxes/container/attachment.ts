import { PassThrough, type Duplex, type Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { createDemultiplexer } from "./frames.ts";
import { createHandshake, type Handshake } from "./handshake.ts";

/** Input and outputs of a sandboxed command. */
export interface CommandStreams {
  readonly stdin: PassThrough;
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
}

/** The engine's stream of a container's input and output: of `handshake.sh` first, then of the command. */
export class Attachment {
  readonly handshake: Handshake;
  /** Settles when the engine ends the output. */
  readonly ended: Promise<void>;
  readonly #stream: Duplex;
  readonly #command: CommandStreams;
  /** What `handshake.sh` prints, which must not reach the reader of the command's output. */
  readonly #early = new PassThrough();
  readonly #frames: Writable;
  #passedBytes = 0;

  /** @param stream the engine's, in frames */
  constructor(stream: Duplex, command: CommandStreams) {
    this.#stream = stream;
    this.#command = command;
    this.#frames = createDemultiplexer({ stdout: this.#early, stderr: command.stderr });
    this.ended = new Promise((resolve) => this.#frames.once("close", resolve));
    this.#frames.once("close", () => this.#early.end());
    this.#frames.once("error", (error) => {
      command.stderr.write(`${error.message}\n`);
      stream.destroy();
    });
    stream.on("error", () => undefined);
    stream.once("close", () => this.#frames.end());
    stream.on("data", (chunk: Buffer) => (this.#passedBytes += chunk.length));
    stream.pipe(this.#frames);
    this.handshake = createHandshake(stream, this.#early);
  }

  /** Has `handshake.sh` execute the command, and connects the command's streams. Its output then ends by itself. */
  open(): void {
    this.handshake.proceed();
    this.#command.stdin.pipe(this.#stream);
    this.#early.pipe(this.#command.stdout);
  }

  /**
   * Waits until the reader has received all output: for a slow reader without limit, for a silent engine not.
   * @returns whether the engine has ended the output
   */
  async drain(silentMs: number): Promise<boolean> {
    const isRead = (): boolean => !this.#early.writableNeedDrain && !this.#command.stderr.writableNeedDrain;
    for (let before = -1; before !== this.#passedBytes || !isRead();) {
      before = this.#passedBytes;
      const timer = new AbortController();
      const silence = pause(silentMs, false, { ref: false, signal: timer.signal });
      const isOver = await Promise.race([this.ended.then(() => true), silence]);
      timer.abort();
      if (isOver) return true;
    }
    return false;
  }

  close(): void {
    this.#stream.destroy();
    this.#frames.destroy();
  }
}
