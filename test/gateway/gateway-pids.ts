import { readdirSync, readFileSync } from "node:fs";

/** The processes of gateways that this process started and that are not gone, the oldest first. */
export function gatewayPids(parent = process.pid): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .filter((pid) => {
      const [state, ppid] = read(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ") ?? [];
      return (
        ppid === String(parent) && state !== "Z" && read(`/proc/${pid}/cmdline`).includes("gateway/process/program")
      );
    })
    .map(Number)
    .toSorted((a, b) => a - b);
}

/** Empty if its process is gone. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
