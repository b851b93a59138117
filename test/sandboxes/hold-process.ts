import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

/** A process that holds a sandbox open, to be killed. Its arguments: workspace, home, and a mark to find what it started by. */
const [workspace = "", home = "", mark = ""] = process.argv.slice(2);
const child = createBubblewrap().start({
  command: "sh",
  arguments: [
    "-c",
    `setsid sh -c 'exec sleep ${mark}' > /dev/null 2>&1 < /dev/null & sleep ${mark} & echo started; wait`,
  ],
  environment: {},
  workspace,
  home,
  readOnly: [],
  signal: AbortSignal.timeout(hangTimeoutMs),
});
child.stdout.pipe(process.stdout);
