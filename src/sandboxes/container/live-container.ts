import { setTimeout as pause } from "node:timers/promises";
import type { SandboxRequest } from "../sandbox.ts";
import type { Inspected } from "./api.ts";
import { Attachment, type CommandStreams } from "./attachment.ts";
import { EngineContainer, type ContainerEngine, type ContainerNames } from "./engine-container.ts";
import { verifyContainer, type Expected } from "./verify.ts";

/** Time to receive the remaining output of a container that was ended. */
const lastWordsMs = 500;

/** What it takes to have a command run in a container that is made. */
export interface LiveContainerParts extends ContainerEngine {
  readonly request: SandboxRequest;
  /** False for a runtime with its own kernel. */
  readonly sameKernel: boolean;
}

/** A created container, until it is gone. */
export class LiveContainer {
  readonly id: string;
  readonly #parts: LiveContainerParts;
  readonly #streams: CommandStreams;
  readonly #container: EngineContainer;
  #attachment: Attachment | null = null;
  #isOpen = false;

  /** @param signal ends the run */
  constructor(parts: LiveContainerParts, names: ContainerNames, streams: CommandStreams, signal: AbortSignal) {
    this.id = names.id;
    this.#parts = parts;
    this.#streams = streams;
    this.#container = new EngineContainer(parts, names, signal);
  }

  /** Whether the output ends without intervention, once all of it was read. */
  get endsOutput(): boolean {
    return this.#isOpen;
  }

  /** Whether the engine could not be reached for the container's state. */
  get isLost(): boolean {
    return this.#container.isLost;
  }

  /** @throws if the container does not start as requested; then the command has not run */
  async start(): Promise<void> {
    const { patience, request, sameKernel } = this.#parts;
    const container = this.#container;
    const attachment = new Attachment(await container.attach(), this.#streams);
    this.#attachment = attachment;
    const { handshake } = attachment;
    await container.start();
    const [description] = await Promise.all([
      container.inspect(),
      container.call("run a container's shell", patience.workMs, () => handshake.ready()),
    ]);
    const expected: Expected = { limits: request.limits, sameKernel };
    await container.call("show what a container has and reaches", patience.answerMs, () =>
      verifyContainer(description, handshake, expected),
    );
    attachment.open();
    this.#isOpen = true;
  }

  /** Waits for the end of a command that was started, and of its output. @returns its exit code; null if it was ended */
  async end(): Promise<number | null> {
    if (this.#attachment === null) throw new Error("the container was not started");
    const { ended } = this.#attachment;
    const code = await this.#container.exit(ended);
    if (code === null) {
      await this.#container.kill();
      await Promise.race([ended, pause(lastWordsMs, undefined, { ref: false })]);
    } else await this.#drain(this.#attachment);
    return code;
  }

  async #drain(attachment: Attachment): Promise<void> {
    const { patience, logger } = this.#parts;
    if (await attachment.drain(patience.endMs)) return;
    logger?.warn({ container: this.id }, "the container engine did not end a container's output");
  }

  /** Null if the engine no longer answers. */
  state(): Promise<Inspected["State"] | null> {
    return this.#container.state();
  }

  async remove(): Promise<void> {
    this.#attachment?.close();
    await this.#container.remove();
  }
}
