import { startProcess } from "../../src/sandboxes/process/process.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

/**
 * A process whose bubblewrap has made its child and not yet let it go on, since it can't report it: to be killed. Its
 * arguments: a folder for a pipe that is full, and a mark to find bubblewrap by.
 */
const [folder = "", mark = ""] = process.argv.slice(2);
startProcess(
  "sh",
  [
    "-c",
    `mkfifo ${folder}/full && exec 9<> ${folder}/full && head -c 65536 /dev/zero >&9 &&
       exec bwrap --unshare-pid --die-with-parent --info-fd 9 --dev-bind / / sleep ${mark}`,
  ],
  { environment: { PATH: process.env["PATH"] ?? "" }, signal: AbortSignal.timeout(hangTimeoutMs) },
  { cwd: "/", ends: "descendants" },
);
