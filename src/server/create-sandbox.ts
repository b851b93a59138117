import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Logger } from "../observability.ts";
import { createBubblewrap } from "../sandboxes/bubblewrap.ts";
import { createContainerSandbox } from "../sandboxes/container/container.ts";
import { createUnsandboxed } from "../sandboxes/none.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { readWorkerId } from "./worker-id.ts";

/** Makes the configured sandbox, for the server and for commands. */
export function createSandbox(config: Config, logger: Logger | null = null): Sandbox {
  switch (config.sandbox) {
    case "bubblewrap":
      return createBubblewrap(config.sandboxUids);
    case "container":
      return createContainerSandbox(config.container, {
        serverId: () => readWorkerId(config.data),
        makersFolder: join(config.data, "alive"),
        uids: config.sandboxUids,
        logger,
      });
    case "none":
      return createUnsandboxed();
  }
}
